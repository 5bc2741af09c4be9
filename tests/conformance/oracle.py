"""kube-scheduler's verdict: builds the Go program in `oracle/` once and talks to it.

It answers a JSON line with a JSON line, in order, and judges many cases at a time. There are two builds, `oracle` and
`groups`, which differ by their edits of kube-scheduler's files: `edits/`.

The kube-scheduler is that of `oracle/go.mod`; `LOADMASTER_REFERENCE=1.37.2` chooses another one, which has a go.mod
below `oracle/`, and a file with what it calls otherwise.
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
from tests.conformance.edits.files import KUBERNETES, Edits, edited_files
from tests.conformance.links import link_all
from tests.controlplane.build import cache_directory, lock, required_version
from tests.controlplane.toolchain import BuildError, find_go

Json = dict[str, Any]
SOURCES: Final = Path(__file__).parent / "oracle"
VARIABLE: Final = "LOADMASTER_REFERENCE"


def version_of(go_mod: Path) -> str:
    """The version of kube-scheduler that a go.mod requires, such as 1.37.2."""
    return required_version(go_mod.read_text(), KUBERNETES).removeprefix("v")


VERSIONS: Final = {version_of(path): path for path in (SOURCES / "go.mod", *sorted(SOURCES.glob("*/go.mod")))}
"""Version of kube-scheduler → its go.mod."""


def chosen() -> str:
    """The version that the environment names, or the first. Raises BuildError for one that there is no go.mod for."""
    version = os.environ.get(VARIABLE) or next(iter(VERSIONS))
    if version not in VERSIONS:
        raise BuildError(f"{VARIABLE}={version} is none of: {', '.join(VERSIONS)}")
    return version


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
    directory, version = cache_directory().parent / "conformance", chosen()
    binary = directory / f"{kind}-{version}-{sources_hash(version)}"
    if binary.is_file():
        return binary
    directory.mkdir(parents=True, exist_ok=True)
    with lock(directory / "build.lock"):
        if not binary.is_file():
            build(binary, kind, version)
    return binary


def sources_hash(version: str) -> str:
    """Changes with any file of the oracle."""
    digest = hashlib.sha256()
    go_mod = VERSIONS[version]
    of_edits = sorted(Path(edits.__file__).parent.glob("*.py"))
    for path in [*sorted(SOURCES.glob("*.go")), go_mod, go_mod.with_suffix(".sum"), *of_edits]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def build(binary: Path, kind: str, version: str) -> None:
    """Compile to `binary`. Takes a minute or two the first time, seconds when the control plane is built already."""
    print(f"Building the conformance {kind} {version} (a minute or two the first time)", file=sys.stderr, flush=True)
    partial = binary.with_name(f"{binary.name}.partial")
    go, modfile, minor = str(find_go(cache_directory())), f"-modfile={VERSIONS[version]}", version.rpartition(".")[0]
    options = ["-mod=readonly", modfile, f"-tags=v{minor.replace('.', '_')}", "-trimpath", "-ldflags=-s -w"]
    with edited_modules(go, modfile, edits.edits_of(kind, minor)) as modules:
        run_go(
            [go, "build", *options, f"-o={partial}", "."], GOMODCACHE=str(modules), GODEBUG="goindex=0"
        )  # the index does not follow links
    for outdated in binary.parent.glob(f"{kind}-{version}-*[0-9a-f]"):
        outdated.unlink()
    partial.rename(binary)


@contextmanager
def edited_modules(go: str, modfile: str, wanted: Edits) -> Iterator[Path]:
    """A module cache with kube-scheduler edited: all that is not edited is built already, under the same names."""
    cache = Path(run_go([go, "env", "GOMODCACHE"]).strip())
    changed: dict[str, str] = {}
    for name, of_module in wanted.items():
        module = Path(run_go([go, "list", "-mod=readonly", modfile, "-m", "-f={{.Dir}}", name]).strip())
        below = module.relative_to(cache)
        changed |= {f"{below}/{file}": text for file, text in edited_files(module, of_module).items()}
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
