"""Cases with kube-scheduler's verdict, kept in files so that checking them needs no Go.

A line of a file is `{"case": …, "expected": …}`. `generated.jsonl` is made by `record`; a `failed-*.jsonl` is what
`run` left behind of a difference, small enough to keep for good.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]
CASES: Final = Path(__file__).parent / "cases"


def read_cases(directory: Path = CASES) -> Iterator[Json]:
    """Every recorded case of every file."""
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def write_cases(path: Path, cases: Iterable[Json]) -> Path:
    """Write `cases` to `path`, a line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(to_line(case) + "\n" for case in cases), encoding="utf-8")
    return path


def to_line(case: Json) -> str:
    """The shortest JSON."""
    return json.dumps(case, separators=(",", ":"), ensure_ascii=False)
