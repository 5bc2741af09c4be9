"""`python -m tests.realnode [PYTEST ARGUMENTS]` runs tests/node on a real node; `… install` gets packages."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.controlplane.build import BINARIES, find_binaries
from tests.controlplane.supervisor import die_with_parent
from tests.controlplane.toolchain import BuildError
from tests.image.debian import ImageError
from tests.realnode import cgroups, requirements
from tests.realnode.images import Images, build_images
from tests.realnode.node import NODE_BINARIES

PYTEST = (sys.executable, "-m", "pytest", "--override-ini=testpaths=tests/node")
LACKS = "LOADMASTER_NODE_LACKS"
"""In the environment of the tests: what the machine lacks. They are skipped with that as the reason."""
PREFIX = "loadmaster-node-"
"""A run is called so, with its process id: its control group and its directory."""
IMAGES = "LOADMASTER_NODE_IMAGES"
"""In the environment of the tests: the directory with the images, which says that they run in the namespaces."""


def main(arguments: list[str]) -> int:
    """Return pytest's exit code; 2 if something cannot be built."""
    if arguments[:1] == ["install"]:
        return requirements.install()
    if lacks := requirements.missing():
        print("Skipped: no real node can run here. Missing:", *lacks, sep="\n  ", file=sys.stderr)
        return subprocess.run([*PYTEST, *arguments], env=os.environ | {LACKS: "; ".join(lacks)}, check=False).returncode
    try:
        with timed("binaries"):
            find_binaries((*(name for name in BINARIES if name != "kwok"), *NODE_BINARIES))
        with timed("images"):
            images = build_images()
    except (BuildError, ImageError) as error:
        print(error, file=sys.stderr)
        return 2
    with timed("tests"):
        return run_isolated([*PYTEST, *arguments], images)


def run_isolated(command: list[str], images: Images) -> int:
    """Run `command` in namespaces of its own; leave nothing of it on this machine."""
    remove_leftovers()
    name = f"{PREFIX}{os.getpid()}"
    work = Path(tempfile.gettempdir(), name)
    work.mkdir(mode=0o700)
    cgroups.create(name)
    environment = os.environ | {"TMPDIR": str(work), cgroups.VARIABLE: name, IMAGES: str(images.directory)}
    unshare = ["unshare", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"]
    init = [sys.executable, "-m", "tests.realnode.init"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by way of `finally`
    try:
        return subprocess.run(
            [*unshare, *init, *command],
            env=environment,
            check=False,
            preexec_fn=partial(die_with_parent, os.getpid()),  # and with unshare everything in the namespaces
        ).returncode
    finally:
        remove(name)


def remove_leftovers() -> None:
    """Remove what is left of runs that were killed."""
    for work in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if not Path("/proc", work.name.removeprefix(PREFIX)).exists():
            remove(work.name)


def remove(name: str) -> None:
    """Remove the directory and the control groups of a run."""
    cgroups.remove(name)
    shutil.rmtree(Path(tempfile.gettempdir(), name), ignore_errors=True)


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long a step took."""
    started = time.monotonic()
    yield
    print(f"--- {what}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
