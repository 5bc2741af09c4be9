"""kube-scheduler's verdict: builds the Go program in `oracle/` once and talks to it.

It answers a JSON line with a JSON line, in order, and judges many cases at a time. There are two builds, `oracle` and
`groups`, which differ by their edits of kube-scheduler's files: `edits.py`.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self, cast

from tests.conformance import edits
from tests.conformance.links import link_all
from tests.controlplane.build import cache_directory, lock
from tests.controlplane.toolchain import BuildError, find_go

Json = dict[str, Any]
SOURCES: Final = Path(__file__).parent / "oracle"
GO_MOD: Final = SOURCES / "go.mod"


class Oracle:
    """A running oracle. A context manager: leaving it ends the process."""

    def __init__(self, *flags: str, kind: str = "oracle") -> None:
        self._process = subprocess.Popen(
            [find_oracle(kind), *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def judge(self, case: Json) -> Json:
        """The verdict on one case."""
        return next(iter(self.judge_all([case])))

    def judge_all(self, cases: Iterable[Json]) -> Iterator[Json]:
        """The verdicts on `cases`, in their order. Exhaust it before asking again."""
        stdin, stdout = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        lines = [json.dumps(case) for case in cases]
        # From a thread: the oracle stops reading when nobody reads its answers.
        writer = threading.Thread(target=write_lines, args=(stdin, lines), daemon=True)
        writer.start()
        for _ in lines:
            line = stdout.readline()
            if not line:
                raise RuntimeError("the oracle ended early, see its stderr above")
            yield json.loads(line)
        writer.join()


def write_lines(stream: IO[str], lines: Iterable[str]) -> None:
    """Write and flush; a reader that is gone is the other side's business."""
    try:
        for line in lines:
            stream.write(line + "\n")
        stream.flush()
    except BrokenPipeError:
        return


def find_oracle(kind: str = "oracle") -> Path:
    """The path of this kind of binary, built first if its sources changed. Raises BuildError."""
    directory = cache_directory().parent / "conformance"
    binary = directory / f"{kind}-{sources_hash()}"
    if binary.is_file():
        return binary
    directory.mkdir(parents=True, exist_ok=True)
    with lock(directory / "build.lock"):
        if not binary.is_file():
            build(binary, kind)
    return binary


def sources_hash() -> str:
    """Changes with any file of the oracle."""
    digest = hashlib.sha256()
    for path in [*sorted(SOURCES.iterdir()), Path(edits.__file__)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def build(binary: Path, kind: str) -> None:
    """Compile to `binary`. Takes a minute or two the first time, seconds when the control plane is built already."""
    print(f"Building the conformance {kind} (a minute or two the first time)", file=sys.stderr, flush=True)
    partial = binary.with_name(f"{binary.name}.partial")
    go = str(find_go(cache_directory()))
    options = ["-mod=readonly", "-trimpath", "-ldflags=-s -w"]
    with edited_modules(go, edits.edits_of(kind)) as modules:
        run_go(
            [go, "build", *options, f"-o={partial}", "."], GOMODCACHE=str(modules), GODEBUG="goindex=0"
        )  # the index does not follow links
    for outdated in binary.parent.glob(f"{kind}-*[0-9a-f]"):
        outdated.unlink()
    partial.rename(binary)


@contextmanager
def edited_modules(go: str, wanted: edits.Edits) -> Iterator[Path]:
    """A module cache with kube-scheduler edited: all that is not edited is built already, under the same names."""
    cache = Path(run_go([go, "env", "GOMODCACHE"]).strip())
    module = Path(run_go([go, "list", "-mod=readonly", "-m", "-f={{.Dir}}", "k8s.io/kubernetes"]).strip())
    below = module.relative_to(cache)
    changed = {f"{below}/{file}": text for file, text in edits.edited_files(module, wanted).items()}
    with tempfile.TemporaryDirectory() as directory:
        edited = Path(directory) / "mod"
        link_all(cache, edited, changed)
        yield edited


def run_go(command: list[str], **more: str) -> str:
    """What this command says in the directory of the sources. Raises BuildError if it fails."""
    environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"} | more
    result = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildError(f"{' '.join(command[:2])} in {SOURCES} failed:\n{result.stderr.strip()}")
    return result.stdout
