"""A path may lead to anything: what is read is bounded in bytes, and in time."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.files.reading import CHUNK, TooLarge, Unfit, bounded, chunks, collected, read

LIMIT = 3 * CHUNK


def test_a_file_of_as_many_bytes_as_may_be_is_read_and_a_larger_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * LIMIT)

    assert read(path, LIMIT) == b"a" * LIMIT
    with pytest.raises(TooLarge, match=f"larger than {LIMIT - 1} bytes"):
        read(path, LIMIT - 1)


def test_of_a_file_that_is_too_large_nothing_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 5 << 30)

    with pytest.raises(TooLarge):
        next(chunks(path, LIMIT))


def test_a_device_without_an_end_is_read_up_to_the_bound() -> None:
    with pytest.raises(TooLarge):
        read("/dev/zero", LIMIT, pipe_seconds=1.0)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "pipe"])
def test_where_only_a_file_will_do_nothing_else_is_waited_for(path: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(Unfit, match="this is no ordinary file"):
        read(tmp_path / path, LIMIT)


def test_a_pipe_in_which_nothing_comes_is_not_waited_for_any_longer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(Unfit, match=r"nothing has come through this pipe for 0\.01 s"):
        read(tmp_path / "pipe", LIMIT, pipe_seconds=0.01)


@pytest.mark.parametrize(
    ("size", "limit", "expected"), [(100, 100, b"a" * 100), (0, 100, b""), (CHUNK, CHUNK, b"a" * CHUNK)]
)
def test_a_pipe_is_read_to_its_end(size: int, limit: int, expected: bytes) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a" * size)
    os.close(writing)

    found = read(f"/dev/fd/{reading}", limit, pipe_seconds=20.0)

    os.close(reading)
    assert found == expected


def test_a_pipe_that_never_ends_is_read_up_to_the_bound() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a" * 101)

    with pytest.raises(TooLarge):
        read(f"/dev/fd/{reading}", 100, pipe_seconds=20.0)
    os.close(reading)
    os.close(writing)


def test_a_file_whose_size_nobody_says_is_read() -> None:
    assert b"Name:" in read("/proc/self/status", LIMIT)


@pytest.mark.parametrize(("path", "error"), [("", FileNotFoundError), ("/", IsADirectoryError), ("a\0b", ValueError)])
def test_a_path_that_leads_nowhere_is_the_usual_error(path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(path, LIMIT)


def test_parts_are_taken_no_further_than_the_bound() -> None:
    taken = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield b"0123456789"

    with pytest.raises(TooLarge):
        collected(endless(), 95)
    assert len(taken) == 10
    assert list(bounded([b"ab", b"c"], 3)) == [b"ab", b"c"]
