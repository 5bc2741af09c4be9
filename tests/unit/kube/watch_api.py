"""An API server to watch, fed by the test or with a history, and a watch on it with the real kopf."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.test_utils import TestServer

from scheduler.kube.http.client import Client
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.intake import NODES, PODS, node_intake, pod_intake
from scheduler.kube.informers.watch import Watch
from scheduler.process.metrics import Metrics
from tests.fakes import FakeClock, sample
from tests.unit.kube.fake_api import FakeHandlers, credentials_of, kept_fresh, until

BREAK: Final = None
"""In a stream: the connection breaks."""

GONE: Final = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


class WatchApi:
    """Discovery, empty lists, and streams that are fed by the test."""

    def __init__(self) -> None:
        self.lists: list[tuple[str, str]] = []
        """Resource and field selector of each list."""
        self.watches: list[tuple[str, str]] = []
        """Resource and version of each watch."""
        self.version = 100
        self.rejected: set[str] = set()
        """Tokens that are answered with 401."""
        self.refused: dict[str, int] = {}
        """The status with which watches on a resource are answered, if not with a stream; for "", discovery."""
        self.ended = 0
        """How many watches the other side has closed."""
        self.tokens: list[str] = []
        self._streams: dict[str, asyncio.Queue[Any]] = {PODS: asyncio.Queue(), NODES: asyncio.Queue()}
        app = web.Application()
        app.router.add_get("/api", self._api)
        app.router.add_get("/apis", self._apis)
        app.router.add_get("/api/v1", self._resources)
        app.router.add_get("/api/v1/{resource}", self._objects)
        self.server = TestServer(app, host="127.0.0.1", handler_cancellation=True)

    def send(self, resource: str, type_: str, obj: dict[str, Any]) -> None:
        self._streams[resource].put_nowait({"type": type_, "object": obj})

    def send_raw(self, resource: str, event: Any) -> None:
        self._streams[resource].put_nowait(event)

    async def _api(self, _: web.Request) -> web.Response:
        if status := self.refused.get(""):
            return web.json_response({"kind": "Status", "code": status}, status=status)
        return web.json_response({"versions": ["v1"]})

    async def _apis(self, _: web.Request) -> web.Response:
        return web.json_response({"groups": []})

    async def _resources(self, _: web.Request) -> web.Response:
        kinds = ((PODS, "Pod", True), (NODES, "Node", False), ("namespaces", "Namespace", False))
        resources = [
            {"name": name, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": ["list", "watch"]}
            for name, kind, namespaced in kinds
        ]
        return web.json_response({"resources": resources})

    async def _objects(self, request: web.Request) -> web.StreamResponse:
        resource = request.match_info["resource"]
        self.tokens.append(request.headers["Authorization"].removeprefix("Bearer "))
        if self.tokens[-1] in self.rejected:
            return web.json_response({"kind": "Status", "code": 401}, status=401)
        if "watch" not in request.query:
            self.lists.append((resource, request.query.get("fieldSelector", "")))
            return web.json_response({"metadata": {"resourceVersion": str(self.version)}, "items": []})
        self.watches.append((resource, request.query["resourceVersion"]))
        if status := self.refused.get(resource):
            return web.json_response({"kind": "Status", "code": status}, status=status)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            await self._stream(request, response)
        except asyncio.CancelledError:
            self.ended += 1
            raise
        assert request.transport is not None
        request.transport.abort()
        return response

    async def _stream(self, request: web.Request, response: web.StreamResponse) -> None:
        """Answer a watch; the connection breaks when this returns."""
        resource = request.match_info["resource"]
        while (event := await self._streams[resource].get()) is not BREAK:
            await response.write(json.dumps(event).encode() + b"\n")


class HistoryApi(WatchApi):
    """Has a history of pods, and sends all that is newer than a watch's version; connections break anywhere."""

    def __init__(self, events: Sequence[dict[str, Any]], breaks: Sequence[int]) -> None:
        """`breaks`: after how many bytes each of the first watches on pods breaks; the next one lasts."""
        super().__init__()
        self._history = events
        self._breaks = list(breaks)

    async def _stream(self, request: web.Request, response: web.StreamResponse) -> None:
        if request.match_info["resource"] != PODS:
            return await super()._stream(request, response)
        since = int(request.query["resourceVersion"])
        missed = (each for each in self._history if int(each["object"]["metadata"]["resourceVersion"]) > since)
        text = _text(missed)
        if self._breaks:
            await response.write(text[: self._breaks.pop(0)])
            return None
        await response.write(text)
        return await super()._stream(request, response)


class NoComparisons:
    def request(self, resource: str) -> None:
        """Nothing is compared."""

    absent = watch_opened = watch_interrupted = request


class Setup:
    def __init__(self, api: WatchApi, client: Client, **how: Any) -> None:
        self.api = api
        self.handlers = FakeHandlers()
        self.metrics = Metrics()
        self.clock = FakeClock()
        self.deadlines = Deadlines(self.metrics, self.clock)
        self.listed: list[str] = []
        self.opened: list[str] = []
        self.interrupted: list[str] = []
        self.starts = 0
        self.pods, nodes = pod_intake(self.handlers, self.metrics), node_intake(self.handlers, self.metrics)
        self.watch = Watch(client, (self.pods, nodes), self, self.deadlines, self.metrics, self._after_start, **how)

    def request(self, resource: str) -> None:
        self.listed.append(resource)

    def watch_opened(self, resource: str) -> None:
        self.opened.append(resource)

    def watch_interrupted(self, resource: str) -> None:
        self.interrupted.append(resource)

    def absent(self, resource: str) -> None:
        raise AssertionError(f"{resource} is always there")

    def errors(self) -> float:
        """How often kopf was started again."""
        return sample(self.metrics, "loadmaster_watch_errors_total", resource="all", reason="operator")

    def _after_start(self) -> None:
        self.starts += 1


@asynccontextmanager
async def a_watch(directory: Path, api: WatchApi | None = None, *, asked: int = 2, **how: Any) -> AsyncIterator[Setup]:
    """A watch that was requested `asked` times: on both resources; `how`: arguments of `Watch`."""
    api = api or WatchApi()
    token = directory / "token"
    token.write_text("first")
    # aiohttp waits a minute for whoever connects at the moment when a test closes the server, and answers nobody then.
    await api.server.start_server(shutdown_timeout=0.1)
    async with api.server:
        credentials = await credentials_of(directory, str(api.server.make_url("/")), tokenFile=str(token))
        async with Client(credentials, Metrics()) as client, kept_fresh(credentials):
            setup = Setup(api, client, **how)
            task = asyncio.create_task(setup.watch.run())
            await until(lambda: len(api.watches) >= asked)
            try:
                yield setup
            finally:
                task.cancel()
                await asyncio.wait([task])
                for resource in (PODS, NODES):
                    api.send_raw(resource, BREAK)


def size_of(events: Sequence[dict[str, Any]]) -> int:
    """How many bytes `HistoryApi` sends for them."""
    return len(_text(events))


def _text(events: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)
