"""Kept connections against a server that fails in every way."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trustme

from scheduler.kube.http.connections import CannotConnect, Connections, Target
from scheduler.kube.http.http1 import Answer
from tests.unit.kube.fake_api import until
from tests.unit.kube.raw_server import CLOSE, OK, RawServer

REQUEST = b"POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
ANSWER = Answer(200, b"ok", "", reusable=True)


@asynccontextmanager
async def a_pool(server: RawServer, keepalive: float = 55.0) -> AsyncIterator[Connections]:
    async with server.serving():
        pool = Connections(Target(f"http://{server.url}", None, ()), ssl.create_default_context(), keepalive)
        try:
            yield pool
        finally:
            server.held.set()
            await pool.close()
            assert pool.open == 0


async def test_a_connection_is_used_again() -> None:
    server = RawServer()
    async with a_pool(server) as pool:
        answers = [await pool.ask(REQUEST, 5.0) for _ in range(3)]

    assert answers == [ANSWER] * 3
    assert (server.connections, server.requests) == (1, [REQUEST] * 3)


async def test_each_connection_has_one_request_at_a_time() -> None:
    server = RawServer()
    async with a_pool(server) as pool:
        for _ in range(3):
            server.held.clear()
            calls = [asyncio.ensure_future(pool.ask(REQUEST, 5.0)) for _ in range(20)]
            await until(lambda: len(server.requests) % 20 == 0 and server.requests)
            server.held.set()
            assert await asyncio.gather(*calls) == [ANSWER] * 20
    assert (server.connections, len(server.requests)) == (20, 60)


async def test_nothing_was_sent_if_no_connection_is_made_in_time() -> None:
    async with a_pool(RawServer()) as pool:
        with pytest.raises(CannotConnect):
            await pool.ask(REQUEST, 0.0)


async def test_nothing_was_sent_if_tls_is_not_agreed_in_time() -> None:
    server = RawServer()
    async with server.serving():
        pool = Connections(Target(f"https://{server.url}", None, ()), ssl.create_default_context())
        with pytest.raises(CannotConnect):
            await pool.ask(REQUEST, 0.05)
        await until(lambda: pool.open == 0)

    assert server.requests == []


async def test_a_cancelled_call_ends_its_connection() -> None:
    server = RawServer()
    async with a_pool(server) as pool:
        server.held.clear()
        call = asyncio.ensure_future(pool.ask(REQUEST, 5.0))
        await until(lambda: server.requests)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: pool.open == 0)
        server.held.set()
        assert await pool.ask(REQUEST, 5.0) == ANSWER

    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((OK, CLOSE), id="closed by the server"),
        pytest.param((OK, b"HTTP/1.1 408 Request Timeout\r\n\r\n"), id="unrequested bytes"),
        pytest.param((OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1),), id="announced"),
        pytest.param((b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",), id="not authorized"),
    ],
)
async def test_a_connection_that_has_ended_is_not_used_again(answer: tuple[bytes, ...]) -> None:
    server = RawServer(answer, (OK,))
    async with a_pool(server) as pool:
        await pool.ask(REQUEST, 5.0)
        await until(lambda: pool.open == 0)
        assert await pool.ask(REQUEST, 5.0) == ANSWER
    assert (server.connections, len(server.requests)) == (2, 2)


async def test_an_old_connection_is_not_used_again() -> None:
    server = RawServer()
    async with a_pool(server, keepalive=0.0) as pool:
        for _ in range(3):
            await pool.ask(REQUEST, 5.0)

    assert server.connections == 3


async def test_idle_connections_are_closed() -> None:
    async with a_pool(RawServer(), keepalive=0.01) as pool:
        await asyncio.gather(*(pool.ask(REQUEST, 5.0) for _ in range(5)))
        await until(lambda: pool.open == 0)


async def test_a_retired_pool_ends_with_its_last_answer() -> None:
    server = RawServer()
    async with a_pool(server) as pool:
        await asyncio.gather(*(pool.ask(REQUEST, 5.0) for _ in range(2)))
        server.held.clear()
        call = asyncio.ensure_future(pool.ask(REQUEST, 5.0))
        await until(lambda: len(server.requests) == 3)
        pool.retire()
        await until(lambda: pool.open == 1)
        server.held.set()
        answer = await call
        await until(lambda: pool.open == 0)

    assert answer == ANSWER


async def test_closing_loses_the_answers_under_way() -> None:
    server = RawServer()
    async with a_pool(server) as pool:
        server.held.clear()
        call = asyncio.ensure_future(pool.ask(REQUEST, 5.0))
        await until(lambda: server.requests)
        await pool.close()

        with pytest.raises(ConnectionError):
            await call


@pytest.mark.parametrize(
    ("trusted", "server_hostname", "works"),
    [
        pytest.param(True, None, True, id="right"),
        pytest.param(True, "kubernetes", True, id="by another name"),
        pytest.param(True, "example.com", False, id="wrong name"),
        pytest.param(False, None, False, id="unknown authority"),
    ],
)
async def test_nothing_is_sent_to_a_server_that_is_not_ours(
    trusted: bool, server_hostname: str | None, works: bool
) -> None:
    authority, server = trustme.CA(), RawServer()
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1", "kubernetes").configure_cert(theirs)
    if trusted:
        authority.configure_trust(ours)
    async with server.serving(theirs):
        pool = Connections(Target(f"https://{server.url}", server_hostname, ()), ours)
        try:
            if works:
                assert [await pool.ask(REQUEST, 5.0) for _ in range(2)] == [ANSWER] * 2
            else:
                with pytest.raises(CannotConnect, match="certificate verify failed"):
                    await pool.ask(REQUEST, 5.0)
        finally:
            await pool.close()
    assert len(server.requests) == (2 if works else 0)
