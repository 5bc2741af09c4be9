"""Unpacks gzip within bounds: data packed far more densely than real text was made to fill memory."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

MAGIC: Final = b"\x1f\x8b"

MAX_RATIO: Final = 400
"""Packed to unpacked bytes. Objects that are all alike reach a third of it, a bomb a thousand."""

FREE: Final = 16 << 20
"""Unpacked bytes before the ratio is looked at."""

PIECE: Final = 1 << 16
"""Bytes that are unpacked at once."""


class BadGzip(ValueError):
    """The packed data is damaged, or was made to fill memory."""

    def __init__(self, at: int, problem: str) -> None:
        """`at`: packed bytes before the place, about."""
        super().__init__(problem)
        self.at = at


class NoGzip(BadGzip):
    """The data, or the data after its first members, does not begin as gzip does."""

    def __init__(self, at: int) -> None:
        super().__init__(at, "no gzip data")


class TooDense(BadGzip):
    """More comes out than real texts have."""

    def __init__(self, at: int) -> None:
        super().__init__(at, f"unpacks to more than {MAX_RATIO} times its size")


class CutOff(BadGzip):
    """The end is missing; all that came before it was right."""

    def __init__(self, at: int) -> None:
        super().__init__(at, "its end is missing")


def unpacked(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what gzip packed, which may be several members one after the other, bit by bit. Raises BadGzip.

    The caller bounds how many bytes that may be.
    """
    taken = given = 0
    member: zlib._Decompress | None = None
    for part in parts:
        taken += len(part)
        rest = part
        while rest:
            if member is None:
                if not rest.startswith(MAGIC[: len(rest)]):
                    raise NoGzip(taken - len(rest))
                member = zlib.decompressobj(wbits=31)
            try:
                piece = member.decompress(rest, PIECE)
            except zlib.error as error:
                raise BadGzip(taken - len(rest), str(error)) from error
            given += len(piece)
            if given > FREE and given > MAX_RATIO * taken:
                raise TooDense(taken - len(rest))
            yield piece
            rest = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member = None
    if member is not None:
        raise CutOff(taken)
