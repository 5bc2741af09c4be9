"""The proxy between a client of bytes and a server of bytes: each trouble is what the client sees."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import orjson
import pytest
import trustme

from tests.chaos.proxy import Proxy
from tests.chaos.trouble import Share, Treatment, Trouble
from tests.chaos.wire import chunk
from tests.controlplane.processes import free_port
from tests.unit.kube.fake_api import until
from tests.unit.kube.raw_server import RawServer

GET = b"GET /api/v1/x HTTP/1.1\r\nHost: x\r\n\r\n"
LIST = b"GET /api/v1/pods?limit=500 HTTP/1.1\r\nHost: x\r\n\r\n"
WATCH = b"GET /api/v1/pods?watch=true HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = orjson.dumps(
    {"metadata": {"name": "web", "namespace": "chaos", "uid": "u1"}, "target": {"kind": "Node", "name": "n1"}}
)
BIND = b"POST /api/v1/namespaces/chaos/pods/web/binding HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def line(uid: str, node: str = "") -> bytes:
    pod = {"kind": "Pod", "metadata": {"name": uid, "uid": uid}, "spec": {"nodeName": node}}
    return orjson.dumps({"type": "MODIFIED", "object": pod}) + b"\n"


@dataclass(frozen=True, slots=True)
class Client:
    """One connection through the proxy."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, request: bytes) -> None:
        self.writer.write(request)

    async def answer(self, length: int) -> bytes:
        return await self.reader.readexactly(length)


@asynccontextmanager
async def a_proxy(server: RawServer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    async with (
        server.serving(),
        Proxy(free_port(), server.port, tls, None, Trouble(random.Random(1))) as proxy,
    ):
        proxy.incarnation = "loadmaster-0#1"
        yield proxy
        server.held.set()
    assert proxy.open == 0


@asynccontextmanager
async def a_client(proxy: Proxy, tls: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, ssl=tls)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


async def is_silent(client: Client) -> bool:
    """Whether nothing comes, not even an end, in a tenth of a second."""
    reading = asyncio.create_task(client.reader.read(1))
    done, _ = await asyncio.wait([reading], timeout=0.1)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    return not done


async def test_requests_and_answers_pass_unchanged_over_one_connection() -> None:
    server = RawServer((OK,), (CREATED,))
    async with a_proxy(server) as proxy, a_client(proxy) as client:
        client.send(GET)
        first = await client.answer(len(OK))
        client.send(BIND)
        second = await client.answer(len(CREATED))

    assert (first, second) == (OK, CREATED)
    assert (server.connections, server.requests) == (1, [GET, BIND])
    assert not proxy.treated


async def test_it_ends_tls_with_its_own_certificate() -> None:
    ca, tls, trusting = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    ca.issue_cert("localhost", "127.0.0.1").configure_cert(tls)
    ca.configure_trust(trusting)
    async with a_proxy(RawServer((OK,)), tls) as proxy, a_client(proxy, trusting) as client:
        client.send(GET)

        assert await client.answer(len(OK)) == OK


async def test_a_binding_is_recorded_with_what_the_api_server_answered() -> None:
    async with a_proxy(RawServer((CREATED,))) as proxy, a_client(proxy) as client:
        client.send(BIND)
        await client.answer(len(CREATED))
        (post,) = proxy.record.posts

    assert (post.uid, post.pod, post.node) == ("u1", "chaos/web", "n1")
    assert (post.status, post.incarnation, post.forwarded) == (201, "loadmaster-0#1", True)


async def test_a_lost_answer_is_recorded_though_the_client_never_knows() -> None:
    server = RawServer((CREATED,))
    async with a_proxy(server) as proxy, a_client(proxy) as client:
        proxy.trouble.shares.append(Share(Treatment.LOSE, 1.0))
        client.send(BIND)
        with pytest.raises(ConnectionResetError):
            await client.answer(1)
        (post,) = proxy.record.posts

    assert server.requests == [BIND]
    assert (post.status, post.treatment) == (201, "lose the answer")
    assert proxy.treated == {"lose the answer": 1}


async def test_a_cut_answer_breaks_off_in_its_middle() -> None:
    async with a_proxy(RawServer((OK,))) as proxy, a_client(proxy) as client:
        proxy.trouble.shares.append(Share(Treatment.CUT, 1.0))
        client.send(GET)

        assert await client.answer(len(OK) - 1) == OK[:-1]
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await client.answer(1)


async def test_a_failure_afterwards_reaches_the_client_as_an_error_of_something_that_was_done() -> None:
    async with a_proxy(RawServer((CREATED,))) as proxy, a_client(proxy) as client:
        proxy.trouble.shares.append(Share(Treatment.BROKEN, 1.0))
        client.send(BIND)

        assert (await client.reader.readline()) == b"HTTP/1.1 504 Timeout\r\n"
        assert proxy.record.successes().keys() == {"u1"}


async def test_what_is_throttled_never_reaches_the_api_server_and_says_when_to_come_again() -> None:
    server = RawServer((OK,))
    async with a_proxy(server) as proxy, a_client(proxy) as client:
        proxy.trouble.shares.append(Share(Treatment.THROTTLE, 1.0, retry_after="7"))
        client.send(GET)
        head = await client.reader.readuntil(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 429 ")
    assert b"\r\nRetry-After: 7\r\n" in head
    assert server.requests == []


async def test_a_binding_that_is_denied_never_reaches_the_api_server_and_everything_else_does() -> None:
    server = RawServer((OK,))
    async with a_proxy(server) as proxy, a_client(proxy) as client:
        proxy.trouble.shares.append(Share(Treatment.DENY, 1.0, bindings_only=True))
        client.send(GET)
        assert await client.answer(len(OK)) == OK
        client.send(BIND)
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 403 ")

    assert server.requests == [GET]


async def test_trouble_for_writes_leaves_reads_alone() -> None:
    async with a_proxy(RawServer((OK,))) as proxy, a_client(proxy) as client:
        proxy.trouble.shares.append(Share(Treatment.INTERNAL, 1.0, writes_only=True))
        client.send(GET)

        assert await client.answer(len(OK)) == OK


async def test_while_frozen_nothing_moves_and_afterwards_everything_does() -> None:
    async with a_proxy(RawServer((OK,))) as proxy, a_client(proxy) as client:
        proxy.trouble.thawed.clear()
        client.send(GET)

        assert await is_silent(client)
        proxy.heal()
        assert await client.answer(len(OK)) == OK


async def test_a_half_open_connection_is_silent_until_the_network_lives_and_others_work() -> None:
    async with a_proxy(RawServer((OK,))) as proxy, a_client(proxy) as old:
        old.send(GET)
        await old.answer(len(OK))
        proxy.strand()
        old.send(GET)
        async with a_client(proxy) as new:
            new.send(GET)

            assert await new.answer(len(OK)) == OK
            assert await is_silent(old)
            proxy.heal()
            with pytest.raises(ConnectionResetError):
                await old.answer(1)


async def test_while_it_refuses_nobody_connects_and_old_connections_stay() -> None:
    async with a_proxy(RawServer((OK,))) as proxy, a_client(proxy) as old:
        old.send(GET)
        await old.answer(len(OK))
        proxy.refuse()

        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", proxy.port)
        old.send(GET)
        assert await old.answer(len(OK)) == OK
        proxy.accept()
        async with a_client(proxy) as new:
            new.send(GET)
            assert await new.answer(len(OK)) == OK


async def test_slowed_down_an_answer_comes_piece_by_piece() -> None:
    async with a_proxy(RawServer((OK,))) as proxy, a_client(proxy) as client:
        proxy.trouble.bytes_per_second = 100.0
        client.send(GET)
        pieces: list[bytes] = []
        while sum(len(piece) for piece in pieces) < len(OK):
            pieces.append(await client.reader.read(1000))

    assert b"".join(pieces) == OK
    assert len(pieces) > 5


async def test_a_reset_ends_all_connections() -> None:
    async with a_proxy(RawServer((OK,))) as proxy, a_client(proxy) as client:
        client.send(GET)
        await client.answer(len(OK))
        proxy.reset()

        with pytest.raises(ConnectionResetError):
            await client.answer(1)


async def test_an_api_server_that_ends_in_the_middle_resets_the_client() -> None:
    async with a_proxy(RawServer((OK[:-1], b""))) as proxy, a_client(proxy) as client:
        client.send(GET)

        with pytest.raises(ConnectionResetError):
            await client.answer(len(OK))


async def test_an_idle_connection_can_be_closed_and_a_busy_one_stays() -> None:
    watched = line("u1", "n1")
    server = RawServer((OK,), (STREAM, chunk(watched)))
    async with a_proxy(server) as proxy, a_client(proxy) as idle, a_client(proxy) as busy:
        idle.send(GET)
        await idle.answer(len(OK))
        busy.send(WATCH)
        await busy.answer(len(STREAM + chunk(watched)))
        proxy.close_idle()

        assert await idle.reader.read() == b""
        assert await is_silent(busy)


async def test_what_a_watch_told_is_recorded_with_the_first_time() -> None:
    lines = line("u1") + line("u1", "n1") + line("u2", "n2")
    async with a_proxy(RawServer((STREAM, chunk(lines[:70]), chunk(lines[70:]), chunk(b"")))) as proxy:
        async with a_client(proxy) as client:
            client.send(WATCH)
            await client.reader.readuntil(b"\r\n0\r\n\r\n")
        told = proxy.record.told["loadmaster-0#1"].bound

    assert told.keys() == {"u1", "u2"}


async def test_what_a_list_told_is_recorded_too() -> None:
    page = orjson.dumps({"kind": "PodList", "items": [{"metadata": {"uid": "u1"}, "spec": {"nodeName": "n1"}}]})
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(page), page)
    async with a_proxy(RawServer((answer,))) as proxy, a_client(proxy) as client:
        client.send(LIST)
        await client.answer(len(answer))
        client.send(LIST)  # so that the first one is through
        await client.answer(len(answer))

        assert proxy.record.told["loadmaster-0#1"].bound.keys() == {"u1"}


@pytest.mark.parametrize("ending", ["reset", "close", "end"])
async def test_a_watch_is_cut_in_the_middle_of_a_line(ending: str) -> None:
    first, second = line("u1", "n1"), line("u2", "n2")
    server = RawServer((STREAM, chunk(first), chunk(second)))
    server.held.clear()
    async with a_proxy(server) as proxy, a_client(proxy) as client:
        client.send(WATCH)
        await until(lambda: bool(server.requests))
        proxy.cut_watches(ending)
        server.held.set()
        await client.answer(len(STREAM))
        rest = b""
        try:
            while part := await client.reader.read(1000):
                rest += part
        except ConnectionResetError:
            assert ending == "reset"

        assert first[: len(first) // 2] in rest
        assert first not in rest
        assert rest.endswith(chunk(b"")) == (ending == "end")
        assert not proxy.record.told["loadmaster-0#1"].bound


async def test_a_watch_is_told_that_its_version_is_too_old() -> None:
    async with a_proxy(RawServer((STREAM, chunk(line("u1", "n1"))))) as proxy, a_client(proxy) as client:
        client.send(WATCH)
        await client.answer(len(STREAM + chunk(line("u1", "n1"))))
        proxy.expire_watches()
        rest = await client.reader.read()

    assert b'"type":"ERROR"' in rest
    assert b'"code":410' in rest
    assert rest.endswith(chunk(b""))


async def test_who_has_read_a_pod_or_renewed_a_lease_is_recorded_once_it_has_been_answered() -> None:
    read = b"GET /api/v1/namespaces/chaos/pods/web HTTP/1.1\r\nHost: x\r\n\r\n"
    renew = b"PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/loadmaster HTTP/1.1\r\nHost: x\r\n\r\n"
    async with a_proxy(RawServer((OK,), (OK,), (OK,))) as proxy, a_client(proxy) as client:
        client.send(GET)
        await client.answer(len(OK))
        assert (proxy.record.reads, proxy.renewed) == ([], 0.0)

        client.send(read)
        await client.answer(len(OK))
        client.send(renew)
        await client.answer(len(OK))
        await until(lambda: proxy.renewed)

        assert [(each.pod, each.incarnation) for each in proxy.record.reads] == [("chaos/web", "loadmaster-0#1")]
        assert proxy.renewed > 0
