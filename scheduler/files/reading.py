"""Reads files, pipes and devices, within bounds: of bytes for all, of time for pipes.

A path may lead to a device without an end, to a pipe without a writer, or to a file with more than memory holds. A file
that is too large is not read at all; anything else, at most one chunk past the bound.
"""

import io
import os
import select
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

CHUNK: Final = 1 << 16
"""Bytes that are read at once."""


class Unfit(ValueError):
    """A file cannot be read: it is too large, a pipe without data, or not a file."""


class TooLarge(Unfit):
    """There are more bytes than the reader takes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"larger than {limit} bytes")


def read(path: str | Path, limit: int, pipe_seconds: float = 0.0) -> bytes:
    """Return the content of a file, `limit` bytes at most. Raises OSError, Unfit, and ValueError for an invalid path.

    `pipe_seconds`: how long to wait for each chunk of a pipe or a device; 0 if only an ordinary file will do.
    """
    return collected(chunks(path, limit, pipe_seconds), limit)


def chunks(path: str | Path, limit: int | None, pipe_seconds: float = 0.0) -> Iterator[bytes]:
    """Yield the content of a file, bit by bit; arguments and errors are as for `read`. No limit if None."""
    file = io.FileIO(path, opener=_at_once)
    with file:
        status = os.fstat(file.fileno())
        is_ordinary = stat.S_ISREG(status.st_mode)
        if not (is_ordinary or pipe_seconds):
            raise Unfit("this is no ordinary file")
        if limit is not None and status.st_size > limit:
            raise TooLarge(limit)
        parts = stream_chunks(file) if is_ordinary else _awaited_chunks(file, pipe_seconds)
        yield from parts if limit is None else bounded(parts, limit)


def stream_chunks(stream: BinaryIO | io.FileIO) -> Iterator[bytes]:
    """Yield what comes over an open stream, such as standard input. Raises OSError."""
    while data := stream.read(CHUNK):
        yield data


def bounded(parts: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Yield the parts, `limit` bytes at most. Raises TooLarge."""
    left = limit
    for part in parts:
        left -= len(part)
        if left < 0:
            raise TooLarge(limit)
        yield part


def collected(parts: Iterable[bytes], limit: int) -> bytes:
    """Return the parts as one, of `limit` bytes at most. Raises TooLarge."""
    whole = io.BytesIO()  # which, unlike parts that are joined, is never there twice
    for part in bounded(parts, limit):
        whole.write(part)
    return whole.getvalue()


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # opening a pipe would wait for a writer


def _awaited_chunks(file: io.FileIO, seconds: float) -> Iterator[bytes]:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    while poll.poll(seconds * 1000):
        data = file.read(CHUNK)
        if data is None:
            continue  # another reader has read it
        if not data:
            return
        yield data
    raise Unfit(f"nothing has come through this pipe for {seconds:g} s")
