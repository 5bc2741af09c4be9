"""What one client can take: each limit with a real connection."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from scheduler.api.reviews import User
from scheduler.serve.port.answers import Answer
from scheduler.serve.port.limits import MAX_HEAD_LINE, Limits
from tests.fakes import sample
from tests.unit.serve.serving import FakeReviews, Served, a_server, any_certificate

SOON = 0.05
NEVER = 60.0
PATIENT = Limits(
    handshake_seconds=NEVER, head_seconds=NEVER, request_seconds=NEVER, idle_seconds=NEVER, close_seconds=SOON
)
GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


def ended(served: Served, reason: str) -> float:
    return sample(served.metrics, "loadmaster_serving_connections_ended_total", reason=reason)


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client's connection, after TLS."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port, ssl=any_certificate())
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What comes before the server ends the connection, in whichever way."""
    received = b""
    try:
        while data := await reader.read(65536):
            received += data
    except (ConnectionError, ssl.SSLError):
        pass
    return received


async def answer_of(reader: asyncio.StreamReader) -> bytes:
    """One answer, whose body is `ok`."""
    return await reader.readuntil(b"ok")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        pytest.param(b"", SOON, id="nothing"),
        pytest.param(b"\x16\x03\x01\x02\x00", SOON, id="half of it"),
        pytest.param(GET, NEVER, id="what is no TLS ends at once"),
    ],
)
async def test_a_handshake_that_does_not_come_whole_ends_the_connection(said: bytes, seconds: float) -> None:
    async with a_server(limits=replace(PATIENT, handshake_seconds=seconds)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
        writer.write(said)

        received = await rest_of(reader)

        writer.close()
        assert said or received == b""
        assert ended(served, "handshake") == 1


@pytest.mark.parametrize("said", [b"", GET[:-2], b"G"])
async def test_a_head_that_does_not_come_whole_ends_the_connection(said: bytes) -> None:
    async with a_server(limits=replace(PATIENT, head_seconds=SOON)) as served, connected(served) as (reader, writer):
        writer.write(said)

        assert await rest_of(reader) == b""
        assert ended(served, "head") == 1


async def test_each_byte_of_a_head_does_not_begin_its_time_again() -> None:
    async with a_server(limits=replace(PATIENT, head_seconds=SOON)) as served, connected(served) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nA: ")
        end = asyncio.create_task(rest_of(reader))
        while not end.done():
            writer.write(b"x")
            await asyncio.wait([end], timeout=SOON / 5)

        assert ended(served, "head") == 1


async def test_a_connection_that_is_left_alone_ends() -> None:
    async with a_server(limits=replace(PATIENT, idle_seconds=SOON)) as served, connected(served) as (reader, writer):
        writer.write(GET)

        assert (await rest_of(reader)).startswith(b"HTTP/1.1 200 OK")
        assert ended(served, "idle") == 1


async def test_a_connection_is_kept_for_the_next_request() -> None:
    async with a_server(limits=PATIENT) as served, connected(served) as (reader, writer):
        for _ in range(3):
            writer.write(GET)
            assert (await answer_of(reader)).startswith(b"HTTP/1.1 200 OK")

        assert served.server.connections == {"busy": 0, "quiet": 1}


async def test_an_answer_that_nobody_reads_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    limits = replace(PATIENT, request_seconds=20 * SOON)
    async with a_server(limits=limits) as served:
        for number in range(400):  # 8 MB of text, more than sockets take
            served.metrics.api_calls.labels("GET", f"{number}{20_000 * 'x'}", "200").inc()
        writer = await served.slow_reader("/metrics")
        while ended(served, "request") == 0:  # noqa: ASYNC110  a metric has no event
            await asyncio.sleep(SOON / 5)
        writer.transport.abort()

        assert served.server.connections == {"busy": 0, "quiet": 0}
    assert caplog.records == []


async def test_one_address_has_its_share_and_others_get_theirs() -> None:
    limits = replace(PATIENT, connections_per_address=3)
    async with a_server(limits=limits) as served:
        silent = [await asyncio.open_connection("127.0.0.1", served.server.port) for _ in range(8)]

        health = await served.get("/livez")

        assert health == (200, "ok")
        assert sum(served.server.connections.values()) <= 3
        assert ended(served, "evicted") == 6
        for _, writer in silent:
            writer.close()


async def test_more_handshakes_than_an_address_may_have_are_refused() -> None:
    limits = replace(PATIENT, burst=2, handshakes_per_second=0.001)
    async with a_server(limits=limits) as served:
        async with connected(served), connected(served):
            with pytest.raises((ConnectionError, ssl.SSLError)):
                async with connected(served):
                    pass

        assert ended(served, "rate") == 1


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % (b"a" * 2 * MAX_HEAD_LINE), id="a long path"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nA: %s\r\n\r\n" % (b"a" * 2 * MAX_HEAD_LINE), id="a long header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: a\r\n" * 100 + b"\r\n", id="many headers"),
        pytest.param(b"\x00\x01\x02 nothing\r\n\r\n", id="no HTTP"),
        pytest.param(b"GET * HTTP/1.1\r\nHost: x\r\n\r\n", id="no path"),
        pytest.param(b"GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", id="two hosts"),
    ],
)
async def test_a_head_out_of_bounds_is_a_bad_request_and_no_line_of_the_log(
    head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_server(limits=PATIENT) as served, connected(served) as (reader, writer):
        writer.write(head)

        assert (await rest_of(reader)).startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert caplog.records == []


async def test_a_page_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_accept: str) -> Answer:
        raise ZeroDivisionError

    async with a_server(further={"/broken": broken}, always_allow=("*",)) as served:
        status, _ = await served.get("/broken")

    assert status == 500
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


@pytest.mark.parametrize(
    "head",
    [
        b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_a_body_is_refused_before_it_is_read(head: bytes) -> None:
    async with a_server(limits=PATIENT) as served, connected(served) as (reader, writer):
        writer.write(head)

        assert (await rest_of(reader)).startswith(b"HTTP/1.1 413")


async def test_random_tokens_are_asked_about_a_few_at_a_time_and_health_goes_on() -> None:
    cluster = FakeReviews({"p": User(username="p")}, held=asyncio.Event())
    limits = replace(PATIENT, burst=100, connections_per_address=40)
    async with a_server(tokens=cluster, rights=cluster, limits=limits) as served:
        flood = [asyncio.create_task(served.get("/metrics", f"random-{number}")) for number in range(30)]
        while cluster.at_once < 4:  # noqa: ASYNC110
            await asyncio.sleep(0)

        health = await served.get("/livez")
        assert cluster.held is not None
        cluster.held.set()
        answers = await asyncio.gather(*flood)

    assert health == (200, "ok")
    assert cluster.most_at_once == 4
    assert {status for status, _ in answers} == {401}


async def test_closing_ends_connections_in_any_state() -> None:
    async with a_server(limits=PATIENT) as served:
        silent = await asyncio.open_connection("127.0.0.1", served.server.port)
        shaking = await asyncio.open_connection("127.0.0.1", served.server.port)
        shaking[1].write(b"\x16\x03\x01\x02\x00")
        reader, idle = await asyncio.open_connection("127.0.0.1", served.server.port, ssl=any_certificate())
        idle.write(GET)
        await answer_of(reader)

    for each, writer in (silent, shaking, (reader, idle)):
        assert await rest_of(each) == b""
        writer.close()
