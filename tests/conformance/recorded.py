"""Cases with kube-scheduler's verdict, kept in files so that checking them needs no Go.

A line of a file is `{"case": …, "expected": …}`. `generated.jsonl.gz` is made by `record` and compressed (`zcat`
shows it); a `failed-*.jsonl` is what `run` left behind of a difference, small enough to keep for good.
"""

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
CASES: Final = Path(__file__).parent / "cases"


def read_cases(directory: Path = CASES) -> Iterator[Json]:
    """Every recorded case of every file."""
    for path in sorted(directory.glob("*.jsonl*")):
        yield from read_file(path)


def read_file(path: Path) -> Iterator[Json]:
    """The recorded cases of one file."""
    content = path.read_bytes()
    for line in (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines():
        yield json.loads(line)


def write_cases(path: Path, cases: Iterable[Json]) -> Path:
    """Write `cases` to `path`, a line each; compressed if its name ends in `.gz`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(to_line(case) + "\n" for case in cases).encode()
    # Without the time of writing, so that the same cases make the same file.
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return path


def to_line(case: Json) -> str:
    """The shortest JSON."""
    return json.dumps(case, separators=(",", ":"), ensure_ascii=False)
