"""The watch on the Lease: hints for the lock, whatever the stream brings."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import TestServer

from scheduler.kube.election.lease import Lease
from scheduler.kube.election.lease_lock import LeaseLock
from scheduler.kube.election.lease_watch import LeaseWatch
from scheduler.kube.http.client import Client
from scheduler.kube.http.retries import RetryPolicy
from scheduler.process.metrics import Metrics
from tests.unit.kube.fake_api import credentials_of, until

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class FakeLock:
    """Keeps what it is told."""

    namespace = "kube-system"
    name = "loadmaster"

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def observe(self, lease: Lease | None, version: str) -> None:
        self.told.append(("" if lease is None else lease.holder, version))

    def describe(self) -> str:
        return "kube-system/loadmaster"


class Streams:
    """Answers each watch with the next of these: lines, then the end."""

    def __init__(self, *streams: list[bytes] | int) -> None:
        self.queries: list[dict[str, str]] = []
        self._streams = list(streams)
        app = web.Application()
        app.router.add_get(PATH, self._watch)
        self.server = TestServer(app, host="127.0.0.1")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(dict(request.query))
        stream = self._streams.pop(0) if self._streams else []
        if isinstance(stream, int):
            return web.Response(status=stream)
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in stream:
            await response.write(chunk)
            await asyncio.sleep(0)
        return response


def an_event(type_: str, holder: str, version: int) -> bytes:
    lease: dict[str, Any] = {"metadata": {"resourceVersion": str(version)}, "spec": {"holderIdentity": holder}}
    return json.dumps({"type": type_, "object": lease}).encode() + b"\n"


@asynccontextmanager
async def a_watch(directory: Path, streams: Streams) -> AsyncIterator[FakeLock]:
    lock = FakeLock()
    async with streams.server:
        credentials = await credentials_of(directory, str(streams.server.make_url("/")))
        async with Client(credentials, Metrics(), never_reuses=True) as client:
            running = asyncio.ensure_future(
                LeaseWatch(client, cast("LeaseLock", lock), 5.0, RetryPolicy(0.01, 0.02)).run()
            )
            try:
                yield lock
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running


async def told(directory: Path, streams: Streams, done: Callable[[FakeLock], bool]) -> list[tuple[str, str]]:
    async with a_watch(directory, streams) as lock:
        await until(lambda: done(lock))
        return lock.told


async def test_changes_and_the_deletion_are_told(tmp_path: Path) -> None:
    events = an_event("ADDED", "a", 5) + an_event("MODIFIED", "", 7) + an_event("DELETED", "", 9)
    streams = Streams([events[:50], events[50:]])

    assert await told(tmp_path, streams, lambda lock: len(lock.told) == 3) == [("a", "5"), ("", "7"), ("", "9")]
    assert streams.queries[0] == {
        "watch": "1",
        "fieldSelector": "metadata.name=loadmaster",
        "timeoutSeconds": "300",
    }


async def test_a_watch_that_ends_is_opened_again_whatever_ended_it(tmp_path: Path) -> None:
    gone = b'{"type":"ERROR","object":{"code":410}}\n'
    streams = Streams(
        403,
        [an_event("ADDED", "a", 1)],
        [gone],
        [b"no json\n"],
        [an_event("MODIFIED", "b", 2)],
        [b'{"type":"ADDED","object":{}}\n'],
        [b"[" * 5000 + b"\n"],
        [an_event("MODIFIED", "c", 3)],
    )

    assert await told(tmp_path, streams, lambda lock: len(lock.told) == 3) == [("a", "1"), ("b", "2"), ("c", "3")]


async def test_a_line_without_end_is_not_kept(tmp_path: Path) -> None:
    streams = Streams([b"x" * (1 << 20)] * 6, [an_event("ADDED", "a", 1)])

    assert await told(tmp_path, streams, lambda lock: bool(lock.told)) == [("a", "1")]
