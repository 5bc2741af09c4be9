"""The memory of the C library, if that is glibc: Python's own allocator gets large blocks from there.

By itself glibc keeps what was freed in the middle of its heap, and after a few large buffers, such as a page of a list
or the event of a large pod, it takes all further ones from the heap too. So a process stays as large as it once was.
"""

import ctypes
from functools import cache
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
"""From malloc.h."""

MMAP_BYTES: Final = 1 << 20
"""Blocks of at least this size, in bytes, are returned to the system as soon as they are freed. Columns of 100,000
nodes are smaller: they come and go with each decision, and new memory costs more than what is at hand."""


def settle() -> None:
    """Let large blocks have memory of their own, whatever their number. Without glibc nothing happens."""
    library = _library()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES)


def give_back() -> None:
    """Give whole pages that are free back to the system: less than a millisecond where there are few."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


@cache
def _library() -> ctypes.CDLL | None:
    """Once: each look-up makes a class, which is circular and stays until a full collection."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # not of a kind that can be asked, such as Windows
        return None
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
