"""Answers that go on: who gets one, when it ends, and that it never waits for a reader with all its bytes in memory."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest
import uvloop

from scheduler.api.reviews import User
from scheduler.serve.port.answers import TEXT, Answer
from scheduler.serve.port.feed import Feed, TooSlow
from scheduler.serve.port.limits import DEFAULTS, Limits
from tests.fakes import sample
from tests.unit.serve.serving import FakeReviews, Served, a_server, any_certificate

SOON = 0.05
PATH = "/debug/stream"


class Source:
    """Streams that say what they are told, and note their end."""

    def __init__(self, chunk: bytes = b"", beat_seconds: float = 60.0) -> None:
        """`chunk`: said without end; empty: what is pushed."""
        self.feeds: list[Feed] = []
        self.ended = 0
        self.made = 0
        self.changed = asyncio.Event()
        self._chunk = chunk
        self._beat_seconds = beat_seconds

    async def __call__(self, _query: Mapping[str, str]) -> Answer:
        return Answer(200, self._endless() if self._chunk else self._pushed(), TEXT, goes_on=True)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.changed.clear()
            await self.changed.wait()

    async def _pushed(self) -> AsyncGenerator[bytes, None]:
        feed = Feed(b"beat\n", max_bytes=1000, beat_seconds=self._beat_seconds)
        feed.push(b"hello\n")
        self.feeds.append(feed)
        self.changed.set()
        try:
            async for chunk in feed.chunks():
                yield chunk
        finally:
            self.ended += 1
            self.changed.set()

    async def _endless(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                self.made += len(self._chunk)
                yield self._chunk
        finally:
            self.ended += 1
            self.changed.set()


@asynccontextmanager
async def streaming(
    source: Source, limits: Limits = DEFAULTS, reviews: FakeReviews | None = None
) -> AsyncIterator[Served]:
    allow = ("*",) if reviews is None else ()
    async with a_server(
        queried={PATH: source},
        limits=limits,
        always_allow=allow,
        tokens=reviews,
        rights=reviews,
        cache_seconds=0.0,
    ) as served:
        yield served


@asynccontextmanager
async def reading(served: Served, token: str = "") -> AsyncIterator[aiohttp.ClientResponse]:
    connector = aiohttp.TCPConnector(ssl=any_certificate())
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"https://127.0.0.1:{served.server.port}{PATH}"
    async with aiohttp.ClientSession(connector=connector) as session, session.get(url, headers=headers) as response:
        yield response


async def test_what_is_pushed_arrives_at_once_and_the_end_is_said() -> None:
    source = Source()
    async with streaming(source) as served, reading(served) as response:
        first = await response.content.readline()
        source.feeds[0].push(b"one\n")
        second = await response.content.readline()
        source.feeds[0].push(b"two\n")
        source.feeds[0].end()
        rest = await response.content.read()

    assert (first, second, rest) == (b"hello\n", b"one\n", b"two\n")
    assert source.ended == 1


async def test_a_stream_outlives_the_time_of_a_request() -> None:
    source = Source(beat_seconds=SOON)
    async with streaming(source, replace(DEFAULTS, request_seconds=SOON)) as served, reading(served) as response:
        beats = [await response.content.readline() for _ in range(4)]

    assert beats == [b"hello\n", b"beat\n", b"beat\n", b"beat\n"]


async def test_the_connection_is_used_again_after_a_stream() -> None:
    source = Source()
    async with streaming(source) as served:
        connector = aiohttp.TCPConnector(ssl=any_certificate(), limit=1)
        async with aiohttp.ClientSession(connector=connector) as session:
            for number in range(2):
                async with session.get(f"https://127.0.0.1:{served.server.port}{PATH}") as response:
                    await response.content.readline()
                    source.feeds[number].end()
                    await response.read()

            assert served.server.connections == {"busy": 0, "quiet": 1}


async def test_a_reader_who_goes_is_noticed_though_nothing_is_said() -> None:
    source = Source()
    async with streaming(source) as served:
        async with reading(served) as response:
            await response.content.readline()
        await source.until(lambda: source.ended == 1)

        assert source.feeds[0].is_over


async def test_there_are_only_so_many() -> None:
    source = Source()
    async with streaming(source, replace(DEFAULTS, streams=1)) as served, reading(served) as response:
        await response.content.readline()

        refused = await served.get(PATH)

        assert refused == (429, "too many streams are open; try again later\n")
        source.feeds[0].end()
        await response.read()
        async with reading(served) as another:
            assert await another.content.readline() == b"hello\n"


async def test_streams_of_one_address_leave_room_for_two_browsers_that_open_the_page() -> None:
    """The API server's proxy is one address; a browser asks for six files at once."""
    all_at_once = asyncio.Barrier(12)

    async def file(_accept: str) -> Answer:
        await all_at_once.wait()
        return Answer(200, b"a file")

    async with (
        a_server(queried={PATH: Source()}, further={"/file": file}, always_allow=("*",)) as served,
        AsyncExitStack() as stack,
    ):
        for _ in range(DEFAULTS.streams):
            await stack.enter_async_context(reading(served))

        others = await asyncio.gather(*(served.get("/file") for _ in range(12)))

        assert others == [(200, "a file")] * 12


async def test_a_head_request_opens_no_stream() -> None:
    source = Source()
    async with streaming(source) as served:
        assert await served.get(PATH, method="HEAD") == (200, "")
        assert source.feeds == []


async def test_the_end_of_the_server_ends_a_stream_in_order() -> None:
    source = Source()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=any_certificate())) as session:
        async with streaming(source) as served:
            response = await session.get(f"https://127.0.0.1:{served.server.port}{PATH}")
            await response.content.readline()

        assert await response.content.read() == b""  # an abort would raise
        assert source.ended == 1


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_reader_who_takes_nothing_is_cut_off_and_little_is_made_for_it(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        made = runner.run(_a_slow_reader())

    assert made < 16 << 20  # sockets take most of it


async def _a_slow_reader() -> int:
    source = Source(chunk=32 * 1024 * b"x")
    async with streaming(source, replace(DEFAULTS, chunk_seconds=4 * SOON)) as served:
        writer = await served.slow_reader(PATH)
        await source.until(lambda: source.ended == 1)
        writer.transport.abort()

        assert sample(served.metrics, "loadmaster_serving_connections_ended_total", reason="slow") == 1
    return source.made


async def test_a_reader_for_whom_too_much_waits_sees_that_something_is_missing() -> None:
    source = Source()
    async with streaming(source) as served, reading(served) as response:
        await response.content.readline()
        source.feeds[0].push(1001 * b"x")

        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_a_source_that_fails_is_told_and_aborts(caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> AsyncGenerator[bytes, None]:
        yield b"hello\n"
        raise RuntimeError("boom")

    async def page(_query: Mapping[str, str]) -> Answer:
        return Answer(200, failing(), TEXT, goes_on=True)

    async with a_server(queried={PATH: page}, always_allow=("*",)) as served, reading(served) as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()

    assert [record.getMessage() for record in caplog.records] == ["A stream failed"]


async def test_who_may_no_longer_see_it_gets_its_end() -> None:
    source = Source(beat_seconds=SOON)
    guest = User(username="guest")
    reviews = FakeReviews({"t": guest}, [("guest", "get", PATH)])
    limits = replace(DEFAULTS, rights_seconds=0.0)
    async with streaming(source, limits, reviews) as served, reading(served, "t") as response:
        await response.content.readline()
        reviews.allowed = ()
        await response.content.read()

    assert source.ended == 1


async def test_a_feed_joins_what_waits() -> None:
    feed = Feed()
    for text in (b"a", b"b", b"c"):
        feed.push(text)
    feed.end()

    assert [chunk async for chunk in feed.chunks()] == [b"abc"]


async def test_a_feed_that_is_over_keeps_nothing() -> None:
    feed = Feed(max_bytes=3)
    feed.push(b"ab")
    feed.push(b"cd")
    feed.push(b"e")

    with pytest.raises(TooSlow):
        await anext(feed.chunks())
    assert feed.is_over
