"""What is taken from a watch's stream, and what kopf gets to read of it; with the real kopf: test_watch.py."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import cast

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.kube.informers.watch_stream import WatchResponse
from tests.fakes import run

ERROR = b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n'
BOOKMARK = b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}\n'


def line(version: str, padding: str = "") -> bytes:
    return json.dumps({"type": "ADDED", "object": {"version": version, "padding": padding}}).encode() + b"\n"


def bookmark(version: str) -> bytes:
    return b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%b"}}}\n' % version.encode()


class FakeContent:
    def __init__(self, pieces: Iterable[bytes], error: Exception | None) -> None:
        self._pieces = pieces
        self._error = error

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        if self._error is not None:
            raise self._error


class FakeResponse:
    """As much of aiohttp's as is needed."""

    status = 200
    headers: Mapping[str, str] = MappingProxyType({"Content-Type": "application/json"})
    closed = False

    def __init__(self, pieces: Iterable[bytes], error: Exception | None = None) -> None:
        self.content = FakeContent(pieces, error)


class Reader:
    """Reads a stream as kopf does."""

    def __init__(
        self, pieces: Iterable[bytes], error: Exception | None = None, now: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.taken: list[str] = []
        self.read: list[bytes] = []
        self.pieces = 0
        """How many were reported as progress."""
        self.taken_when_read: list[int] = []
        response = cast("aiohttp.ClientResponse", FakeResponse(pieces, error))
        self._stream = WatchResponse(response, self._take, self._progress, now)

    def _progress(self) -> None:
        self.pieces += 1

    def _take(self, line: bytes | bytearray) -> str | None:
        assert isinstance(line, bytes | bytearray)
        event = json.loads(line)
        if event["type"] != "ADDED":
            return None
        self.taken.append(event["object"]["version"])
        return self.taken[-1]

    async def run(self) -> None:
        async for piece in self._stream.content.iter_chunked(1024 * 1024):
            self.read.append(piece)
            self.taken_when_read.append(len(self.taken))


def read(pieces: Iterable[bytes]) -> Reader:
    reader = Reader(pieces)
    run(reader.run())
    return reader


def test_for_each_piece_kopf_reads_the_version_up_to_which_it_was_taken_in() -> None:
    reader = read([line("1") + line("2"), line("3")[:5], line("3")[5:]])

    assert reader.taken == ["1", "2", "3"]
    assert reader.read == [bookmark("2"), bookmark("3")]
    assert reader.taken_when_read == [2, 3]
    assert reader.pieces == 3, "each is progress, even half a line"


@pytest.mark.parametrize("own", [ERROR, BOOKMARK], ids=["an error", "a bookmark"])
def test_what_is_for_kopf_reaches_it_unchanged_and_after_what_came_before(own: bytes) -> None:
    assert read([line("1") + line("2") + own]).read == [bookmark("2") + own]
    assert read([own]).read == [own]


def test_an_event_of_unknown_version_is_not_told() -> None:
    assert read([line("")]).read == []
    assert read([line("1") + line("")]).read == [bookmark("1")]


def test_a_version_is_told_as_json() -> None:
    (read_by_kopf,) = read([line('a"b')]).read

    assert json.loads(read_by_kopf)["object"]["metadata"]["resourceVersion"] == 'a"b'


@given(cuts=st.sets(st.integers(1, 320)))
def test_it_does_not_matter_where_the_stream_is_cut(cuts: set[int]) -> None:
    text = line("1") + line("2", "ü" * 20) + b"\n" + BOOKMARK + line("11") + ERROR
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]

    reader = read([text[start:end] for start, end in pairwise(edges)])

    assert reader.taken == ["1", "2", "11"]
    read_by_kopf = [json.loads(each) for piece in reader.read for each in piece.splitlines()]
    assert read_by_kopf[-1] == json.loads(ERROR)
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in read_by_kopf[:-1]]
    assert versions == sorted(versions)
    assert {2, 9, 11} <= set(versions) <= {1, 2, 9, 11}


def test_a_line_may_be_huge() -> None:
    text = line("1", "x" * 5_000_000) + line("2")

    reader = read([text[start : start + 65_536] for start in range(0, len(text), 65_536)])

    assert reader.taken == ["1", "2"]


async def test_a_stream_that_breaks_raises_after_all_that_came_was_told() -> None:
    reader = Reader([line("1"), line("2") + line("3")[:9]], aiohttp.ClientPayloadError("broken"))

    with pytest.raises(aiohttp.ClientPayloadError, match="broken"):
        await reader.run()

    assert reader.taken == ["1", "2"]
    assert reader.read == [bookmark("1"), bookmark("2")]


async def test_others_get_their_turn_during_a_long_piece_and_kopf_is_told_before() -> None:
    ticks = iter(range(10**6))
    versions = [str(version) for version in range(1, 11)]
    # A millisecond goes by with each look at the clock: one when a stretch begins, one after each event.
    reader = Reader([b"".join(map(line, versions))], now=lambda: next(ticks) / 1000)
    seen: list[int] = []

    async def other() -> None:
        while len(reader.taken) < len(versions):
            seen.append(len(reader.taken))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(other())
        tasks.create_task(reader.run())

    assert reader.taken == versions
    assert longest_step([*seen, len(versions)]) <= 3
    assert reader.read == [bookmark(str(count)) for count in reader.taken_when_read]
    assert len(reader.read) >= 4


def longest_step(counts: Sequence[int]) -> int:
    return max(after - before for before, after in pairwise(counts))
