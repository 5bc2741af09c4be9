"""What gzip packed is unpacked bit by bit, and never into more than real texts would be."""

import gzip
import tracemalloc
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice, repeat

import pytest

from scheduler.files.unpacking import BadGzip, CutOff, NoGzip, TooDense, unpacked

TEXT = bytes(range(256)) * 1000


def in_parts(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize("members", [1, 3])
def test_members_are_unpacked_however_they_come(size: int, members: int) -> None:
    data = gzip.compress(TEXT[:2000]) * members

    assert b"".join(unpacked(in_parts(data, size))) == TEXT[:2000] * members


def test_nothing_is_nothing() -> None:
    assert list(unpacked([])) == []


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"text", NoGzip),
        (gzip.compress(b"a", mtime=0) + b"text", NoGzip),
        (gzip.compress(TEXT, mtime=0)[:-1], CutOff),
        (gzip.compress(TEXT, mtime=0)[:-4] + b"\0" * 4, BadGzip),
        (gzip.compress(TEXT, mtime=0)[:15], CutOff),
        (b"\x1f\x8b\x08\0", CutOff),
    ],
)
def test_what_is_damaged_is_said(data: bytes, error: type[BadGzip]) -> None:
    with pytest.raises(error):
        list(unpacked(in_parts(data, 1 << 16)))


def one_member() -> Iterator[bytes]:
    packer = zlib.compressobj(9, wbits=31)
    for _ in range(10):
        yield packer.compress(b" " * (10 << 20))
    yield packer.flush()


def many_members() -> Iterator[bytes]:
    return repeat(gzip.compress(b" " * (1 << 20)), 100)


def a_member_in_one_part() -> Iterator[bytes]:
    yield b"".join(one_member())


@pytest.mark.parametrize("bomb", [one_member, many_members, a_member_in_one_part])
def test_a_bomb_is_refused_before_it_takes_memory(bomb: Callable[[], Iterator[bytes]]) -> None:
    parts = list(bomb())
    tracemalloc.start()

    with pytest.raises(TooDense, match="unpacks to more than 400 times its size"):
        deque(unpacked(parts), maxlen=0)
    _, peak = tracemalloc.get_traced_memory()

    tracemalloc.stop()
    assert peak < 4 << 20


def test_members_without_content_take_time_by_their_number() -> None:
    nothing = gzip.compress(b"", mtime=0) * 3000

    pieces = unpacked(islice(repeat(nothing), 10))

    assert sum(map(len, pieces)) == 0
