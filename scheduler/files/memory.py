"""The memory that this process may use: the machine's, or less under a ulimit or in a container."""

import os
import resource
from collections.abc import Iterable
from typing import Final

from scheduler.files.reading import read

RESERVE: Final = 64 << 20
"""Bytes that are left when `check_memory` says that there are no more."""

_CGROUPS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""In a container, that of version 2 and of version 1."""

_NO_LIMIT: Final = 1 << 62

_STATM: Final = "/proc/self/statm"

_MAX_BYTES: Final = 4096
"""Of a file with a few numbers."""


def memory_of_process() -> int:
    """Return it in bytes."""
    return min(_addresses(), _resident())


def check_memory() -> None:
    """Raise MemoryError while there is a little left; nothing where Linux' books are not found.

    Without any left, libraries in C may crash, and a container is killed without a word.
    """
    try:
        addresses, resident = (int(pages) * resource.getpagesize() for pages in read(_STATM, _MAX_BYTES).split()[:2])
    except (OSError, ValueError):
        return
    if addresses + RESERVE > _addresses() or resident + RESERVE > _resident():
        raise MemoryError


def _addresses() -> int:
    """The address space that ulimit leaves, in bytes."""
    return _least((resource.getrlimit(resource.RLIMIT_AS)[0],))


def _resident() -> int:
    """The memory of the machine, or of the container, in bytes."""
    return _least((os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *map(_limit_in, _CGROUPS)))


def _limit_in(path: str) -> int:
    try:
        text = read(path, _MAX_BYTES).strip()
    except (OSError, ValueError):
        return _NO_LIMIT
    return int(text) if text.isdigit() else _NO_LIMIT


def _least(limits: Iterable[int]) -> int:
    return min((limit for limit in limits if limit > 0), default=_NO_LIMIT)  # negative: there is none
