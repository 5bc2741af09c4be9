"""The control group that all pods of a real node are in, under whichever hierarchies the machine has.

cgroup v2 is one hierarchy; v1 has one for each controller; a hybrid machine has both. PIDs of the namespaces are not
those of the machine, so the groups are made and removed from outside.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path("/sys/fs/cgroup")
VARIABLE: Final = "LOADMASTER_NODE_CGROUP"
"""In the environment of the node: the name of its group."""

REMOVE_SECONDS: Final = 10.0
"""A group can be removed once its last process is gone, which the kernel ends a moment after the namespace."""


def create(name: str) -> None:
    """Make the group in each hierarchy."""
    for hierarchy in hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)


def remove(name: str) -> None:
    """Remove the group from each hierarchy, as soon as it is empty."""
    deadline = time.monotonic() + REMOVE_SECONDS
    left = [hierarchy / name for hierarchy in hierarchies()]
    while left := [path for path in left if not remove_tree(path)]:
        if time.monotonic() > deadline:
            print(f"These control groups are still in use: {', '.join(map(str, left))}")
            return
        time.sleep(0.2)


def hierarchies() -> Iterator[Path]:
    """The roots of all hierarchies."""
    if (ROOT / "cgroup.procs").exists():
        yield ROOT
    else:
        yield from (path for path in ROOT.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink())


def remove_tree(path: Path) -> bool:
    """Remove a group and those below it, which must be empty; whether it is gone."""
    for directory, _, _ in os.walk(path, topdown=False):
        with suppress(OSError):  # it has a process yet
            os.rmdir(directory)
    return not path.exists()
