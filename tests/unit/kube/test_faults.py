"""Each kind of call against answers that are none: the end is the same, memory is bounded, no connection is left."""

import asyncio
import collections
import itertools
import os
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import orjson
import pytest

from scheduler.framework.errors import ApiError, BindRejected, ClusterError
from scheduler.kube.http import http1
from scheduler.kube.http.client import MAX_ANSWER_BYTES, AnswerLost, AnswerTooLong, Client, Reply
from scheduler.kube.http.connections import CannotConnect, Connections, Target
from scheduler.kube.http.http1 import MAX_HEAD, AnswerReader, BadAnswer
from scheduler.kube.http.operations import MAX_PAUSE_SECONDS, CallLimit, Operation
from scheduler.kube.writes.api_writer import PluginWriter
from scheduler.kube.writes.binder import ApiBinder
from scheduler.kube.writes.events import Events
from scheduler.kube.writes.evictor import ApiEvictor
from scheduler.kube.writes.recorder import Recorder
from scheduler.kube.writes.status import Condition, PodStatuses
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.testing import a_pod
from tests.unit.kube.fake_api import client_of, until
from tests.unit.kube.raw_server import CLOSE, RawServer

POD: Final = a_pod("web", uid="uid-web")
OBJECT: Final = {
    "metadata": {"name": "web", "uid": "uid-web", "resourceVersion": "2"},
    "spec": {"nodeName": "n1"},
    "status": {},
}

Answer = tuple[bytes, ...]


def an_answer(status: int, body: object = OBJECT, *headers: str) -> Answer:
    content = orjson.dumps(body)
    lines = (f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}", *headers)
    return ("\r\n".join((*lines, "", "")).encode() + content,)


CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MEGABYTE: Final = bytes(1 << 20)

LOST: Final[dict[str, Answer]] = {
    "closed": (CLOSE,),
    "cut in the head": (b"HTTP/1.1 200 OK\r\nContent-", CLOSE),
    "cut in the body": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", CLOSE),
    "no HTTP": (b"\x00\xff\r\n\r\n", CLOSE),
    "a head without end": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * MAX_HEAD, CLOSE),
    "cut in a chunk": (CHUNKED + b"ff\r\n{}", CLOSE),
    "a failed gateway": (*an_answer(500, {}), CLOSE),
    "a body of 17 MiB that says so": (
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (17 << 20),
        *([MEGABYTE] * 17),
        CLOSE,
    ),
}
"""After these nobody knows whether the call was carried out."""


class Calls:
    """One of each kind of call, over one client."""

    def __init__(self, client: Client) -> None:
        metrics = Metrics()
        self.tasks = Tasks(metrics)
        self.statuses = PodStatuses(client, self.tasks)
        self.events = Events(client, metrics, self.tasks, lambda: False)
        self.binder = ApiBinder(client, metrics, timeout=5.0)
        self.evictor = ApiEvictor(client, self.statuses)
        self.writer = PluginWriter(client, timeout=5.0)

    async def bind(self) -> None:
        await self.binder.bind(POD, "n1")

    async def evict(self) -> None:
        assert await self.evictor.evict(POD, POD, "make room")

    async def patch_status(self) -> None:
        self.statuses.set(POD, Condition("False", "Unschedulable", "no room"))
        await until(lambda: not self.statuses.busy)

    async def send_event(self) -> None:
        self.events.start()
        Recorder(self.events, ["loadmaster"]).event(POD, "Normal", "X", "Y", "note")
        await self.events.close(grace=10.0)

    async def write(self) -> None:
        await self.writer.patch("PersistentVolume", "web", "", {"spec": {"nodeName": "n1"}})

    async def close(self) -> None:
        await self.tasks.close()


async def with_calls(directory: Path, server: RawServer, call: Callable[[Calls], Awaitable[None]]) -> None:
    """Make a call. No connection is left."""
    async with server.serving(), client_of(directory, f"http://{server.url}") as client:
        calls = Calls(client)
        try:
            await call(calls)
        finally:
            await calls.close()


def verbs(server: RawServer) -> list[str]:
    return [request.split(b" ", 1)[0].decode() for request in server.requests]


@pytest.mark.parametrize("fault", LOST.values(), ids=LOST)
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(Calls.bind, ["POST", "GET"], id="bind: a read settles it"),
        pytest.param(Calls.evict, ["PATCH", "PATCH", "DELETE"], id="evict: again"),
        pytest.param(Calls.patch_status, ["PATCH", "PATCH"], id="status: again"),
        pytest.param(Calls.send_event, ["POST", "POST"], id="event: again"),
        pytest.param(Calls.write, ["PATCH", "PATCH"], id="a plugin's write: again"),
    ],
)
async def test_a_lost_answer_is_made_up_for(
    tmp_path: Path, call: Callable[[Calls], Awaitable[None]], expected: list[str], fault: Answer
) -> None:
    server = RawServer(fault, an_answer(200))

    await with_calls(tmp_path, server, call)

    assert verbs(server) == expected


REDIRECT: Final = an_answer(307, {}, "Location: http://127.0.0.1:1/elsewhere")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (Calls.bind, BindRejected),
        (Calls.evict, ClusterError),
        (Calls.patch_status, None),
        (Calls.send_event, None),
        (Calls.write, ApiError),
    ],
)
async def test_a_redirection_is_a_refusal(
    tmp_path: Path, call: Callable[[Calls], Awaitable[None]], error: type[Exception] | None
) -> None:
    server = RawServer(REDIRECT)
    if error is None:
        await with_calls(tmp_path, server, call)
    else:
        with pytest.raises(error):
            await with_calls(tmp_path, server, call)

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0.5", 0.5),
        ("86400", MAX_PAUSE_SECONDS),
        ("inf", MAX_PAUSE_SECONDS),
        ("9" * 1000, MAX_PAUSE_SECONDS),
        ("1e999", MAX_PAUSE_SECONDS),
        ("nan", 0.0),
        ("-1", 0.0),
        ("-inf", 0.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
        ("soon", 0.0),
        ("", 0.0),
    ],
)
@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_a_server_cannot_hold_us_back_for_long(tmp_path: Path, verb: str, header: str, seconds: float) -> None:
    server = RawServer(an_answer(500, {}, f"Retry-After: {header}"))
    replies: list[Reply] = []

    async def call(calls: Calls) -> None:
        operation = Operation(verb, "x", CallLimit(1))
        replies.append(await calls.writer._client.call(operation, "/x"))

    await with_calls(tmp_path, server, call)

    assert replies[0].retry_after == seconds


async def test_a_read_takes_no_more_than_it_may_and_a_page_of_a_list_is_asked_for_again_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.kube.http.client.MAX_ANSWER_BYTES", 1000)
    server = RawServer(an_answer(200, "x" * 2000), an_answer(200, "x" * 2000), an_answer(200, {}))
    operation = Operation("GET", "pods", CallLimit(1))
    async with server.serving(), client_of(tmp_path, f"http://{server.url}") as client:
        page = await client.page(operation, "/api/v1/pods", 500, "&continue=next")
        server.answers.extend([an_answer(200, "x" * 2000)] * 2)
        server.answers.popleft()
        with pytest.raises(AnswerTooLong):
            await client.page(operation, "/api/v1/pods", 1, "")

    assert page.body == b"{}"
    asked = [request.split(b" ", 2)[1] for request in server.requests[:3]]
    assert asked == [b"/api/v1/pods?limit=%d&continue=next" % limit for limit in (500, 62, 7)]


async def test_an_answer_to_a_read_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    server = RawServer((CHUNKED, *([b"100000\r\n" + MEGABYTE + b"\r\n"] * 40), CLOSE))
    outcomes: list[object] = []

    async def call(calls: Calls) -> None:
        operation = Operation("GET", "x", CallLimit(1))
        outcomes.append(await calls.writer._client.attempt(operation, "/x"))

    await with_calls(tmp_path, server, call)

    assert isinstance(outcomes[0], AnswerTooLong)
    assert str(MAX_ANSWER_BYTES) in str(outcomes[0])
    assert issubclass(AnswerTooLong, AnswerLost)


@pytest.mark.parametrize(
    ("start", "more"),
    [
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="interim answers"),
        pytest.param(CHUNKED, b"1\r\nx\r\n", id="small chunks"),
        pytest.param(CHUNKED, b"1;" + b"e" * 1000 + b"\r\nx\r\n", id="extensions of chunks"),
        pytest.param(CHUNKED + b"0\r\n", b"X: y\r\n", id="trailers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", b"x" * 1000, id="a body"),
    ],
)
def test_an_answer_without_end_is_read_up_to_a_bound(
    start: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http1, "MAX_ANSWER", 1 << 20)
    reader, block, fed = AnswerReader(), more * (10_000 // len(more)), 0

    def feed(data: bytes) -> None:
        nonlocal fed
        reader.feed(data)
        fed += len(data)

    feed(start)
    with pytest.raises(BadAnswer, match="more than"):
        collections.deque(map(feed, itertools.repeat(block)), maxlen=0)

    assert 1_000_000 < fed <= 1 << 20


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_calls_that_are_cancelled_while_they_connect_leave_no_descriptor() -> None:
    server = RawServer()  # it speaks no TLS, so that no connection is ever made
    async with server.serving():
        pool = Connections(Target(f"https://{server.url}", None, ()), ssl.create_default_context())
        before = descriptors()
        for ticks in range(60):
            calls = [asyncio.ensure_future(pool.ask(b"x", 5.0)) for _ in range(3)]
            for _ in range(ticks // 3):
                await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError | CannotConnect) for each in ended)
        await until(lambda: descriptors() <= before)
        await pool.close()
        assert pool.open == 0
