"""How many arrays numpy makes, and of how many bytes: what no profiler sees of `a + b`, without a change to what runs.

numpy takes the memory of arrays from a handler that may be exchanged (NEP 49). Ours counts and leaves the rest to the
one that was there. What writes into an array that exists, and what only looks at one, takes no memory and is not
counted.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

SET_HANDLER: Final = 304
GET_HANDLER: Final = 305
"""Where PyDataMem_SetHandler and PyDataMem_GetHandler are in the table of numpy's C API, which only grows."""

_MALLOC: Final = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_CALLOC: Final = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
"""The type of the answer, and those of the arguments: a context, and how much."""


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of numpy/ndarraytypes.h."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


@dataclass(slots=True)
class Arrays:
    """What was made since the counting began."""

    count: int = 0
    bytes: int = 0


_kept: Final[list[Any]] = []
"""What arrays made while counting need until they are freed, whenever that is."""


@contextmanager
def counting_arrays() -> Iterator[Arrays]:
    """Count the arrays that are made in this context, and in tasks that begin in it."""
    made = Arrays()
    former = _set_handler(_counting_handler(_current_handler(), made))
    try:
        yield made
    finally:
        _set_handler(former)


def _counting_handler(current: Any, made: Arrays) -> Any:
    """A handler that counts into `made` and does as the current one does."""
    source = ctypes.cast(_pointer(current, b"mem_handler"), ctypes.POINTER(_Handler)).contents
    # From C, not from Python: an array may outlive everything that Python frees at its end.
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    address = libc.malloc(ctypes.sizeof(_Handler))
    ctypes.memmove(address, ctypes.addressof(source), ctypes.sizeof(_Handler))
    handler = ctypes.cast(address, ctypes.POINTER(_Handler)).contents
    # numpy's own are called with the GIL, which they may release.
    plain_malloc = ctypes.PYFUNCTYPE(*_MALLOC)(source.malloc)
    plain_calloc = ctypes.PYFUNCTYPE(*_CALLOC)(source.calloc)

    def malloc(context: int | None, size: int) -> int | None:
        made.count += 1
        made.bytes += size
        found: int | None = plain_malloc(context, size)
        return found

    def calloc(context: int | None, number: int, size: int) -> int | None:
        made.count += 1
        made.bytes += number * size
        found: int | None = plain_calloc(context, number, size)
        return found

    callbacks = ctypes.CFUNCTYPE(*_MALLOC)(malloc), ctypes.CFUNCTYPE(*_CALLOC)(calloc)
    handler.name = b"counting"
    handler.malloc, handler.calloc = (ctypes.cast(each, ctypes.c_void_p).value for each in callbacks)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(address, _NAME, None)
    _kept.append((capsule, callbacks, current))
    return capsule


_NAME: Final = b"mem_handler"


def _pointer(capsule: Any, name: bytes | None) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address: int = get(capsule, name)
    return address


def _function(index: int) -> int:
    table = ctypes.cast(_pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    address: int | None = table[index]
    assert address is not None
    return address


def _current_handler() -> Any:
    return ctypes.PYFUNCTYPE(ctypes.py_object)(_function(GET_HANDLER))()


def _set_handler(handler: Any) -> Any:
    """Return the one before."""
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_function(SET_HANDLER))(handler)
