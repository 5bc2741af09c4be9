"""An API server to watch, fed by the test or with a history, and a watch on it with the real kopf."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from aiohttp import web
from aiohttp.test_utils import TestServer

from scheduler.kube.http.client import Client
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.intake import NODES, PODS, Intake, node_intake, pod_intake
from scheduler.kube.informers.relister import Relister
from scheduler.kube.informers.watch import Watch
from scheduler.process.metrics import Metrics
from tests.fakes import FakeClock, sample
from tests.unit.kube.fake_api import FakeHandlers, client_of, kept_fresh, until

BREAK: Final = None
"""In a stream: the connection breaks."""

GONE: Final = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


def discovered(name: str, kind: str, *, namespaced: bool = True) -> dict[str, Any]:
    return {"name": name, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": ["list", "watch"]}


class WatchApi:
    """Discovery, empty lists, and streams that are fed by the test."""

    root = ""
    """The path below which all is, as behind a proxy."""

    watched: Sequence[str] = (PODS, NODES)

    def __init__(self) -> None:
        self.asked: list[str] = []
        """The paths of discovery."""
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
        self._streams: dict[str, asyncio.Queue[Any]] = {resource: asyncio.Queue() for resource in self.watched}
        app = web.Application()
        app.router.add_get(self.root + "/{path:.*}", self._answer)
        self.server = TestServer(app, host="127.0.0.1", handler_cancellation=True)

    @property
    def url(self) -> str:
        return str(self.server.make_url(self.root or "/"))

    def documents(self) -> dict[str, Any]:
        """What discovery answers, by path."""
        namespaces = discovered("namespaces", "Namespace", namespaced=False)  # kopf does nothing without them
        core = [discovered(PODS, "Pod"), discovered(NODES, "Node", namespaced=False), namespaces]
        return {"api": {"versions": ["v1"]}, "apis": {"groups": []}, "api/v1": {"resources": core}}

    def serves(self, path: str) -> bool:
        """Whether it has these objects."""
        return path.rpartition("/")[2] in self._streams

    def send(self, resource: str, type_: str, obj: dict[str, Any]) -> None:
        self._streams[resource].put_nowait({"type": type_, "object": obj})

    def send_raw(self, resource: str, event: Any) -> None:
        self._streams[resource].put_nowait(event)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        if self.serves(path):
            return await self._objects(request, path.rpartition("/")[2])
        self.asked.append(path)
        if status := self.refused.get(""):
            return web.json_response({"kind": "Status", "code": status}, status=status)
        if (found := self.documents().get(path)) is None:
            return web.json_response({"kind": "Status", "code": 404}, status=404)
        return web.json_response(found)

    async def _objects(self, request: web.Request, resource: str) -> web.StreamResponse:
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
            await self._stream(resource, request, response)
        except asyncio.CancelledError:
            self.ended += 1
            raise
        assert request.transport is not None
        request.transport.abort()
        return response

    async def _stream(self, resource: str, request: web.Request, response: web.StreamResponse) -> None:
        """Answer a watch; the connection breaks when this returns."""
        while (event := await self._streams[resource].get()) is not BREAK:
            await response.write(json.dumps(event).encode() + b"\n")


class HistoryApi(WatchApi):
    """Has a history of pods, and sends all that is newer than a watch's version; connections break anywhere."""

    def __init__(self, events: Sequence[dict[str, Any]], breaks: Sequence[int]) -> None:
        """`breaks`: after how many bytes each of the first watches on pods breaks; the next one lasts."""
        super().__init__()
        self._history = events
        self._breaks = list(breaks)

    async def _stream(self, resource: str, request: web.Request, response: web.StreamResponse) -> None:
        if resource != PODS:
            return await super()._stream(resource, request, response)
        since = int(request.query["resourceVersion"])
        missed = (each for each in self._history if int(each["object"]["metadata"]["resourceVersion"]) > since)
        text = _text(missed)
        if self._breaks:
            await response.write(text[: self._breaks.pop(0)])
            return None
        await response.write(text)
        return await super()._stream(resource, request, response)


class NoComparisons(Relister):
    def __init__(self) -> None:
        """Nothing is known."""

    def request(self, resource: str) -> None:
        """Nothing is compared."""

    absent = watch_opened = watch_interrupted = request


class Setup(NoComparisons):
    """A watch on what the API server has, and what it notifies of."""

    def __init__(self, api: WatchApi, client: Client, **how: Any) -> None:
        self.api = api
        self.metrics = Metrics()
        self.clock = FakeClock()
        self.deadlines = Deadlines(self.metrics, self.clock)
        self.listed: list[str] = []
        self.opened: list[str] = []
        self.interrupted: list[str] = []
        self.starts = 0
        self.watch = Watch(client, self.intakes(), self, self.deadlines, self.metrics, self._after_start, **how)

    def intakes(self) -> Sequence[Intake[Any]]:
        self.handlers = FakeHandlers()
        return pod_intake(self.handlers, self.metrics), node_intake(self.handlers, self.metrics)

    def request(self, resource: str) -> None:
        self.listed.append(resource)

    def watch_opened(self, resource: str) -> None:
        self.opened.append(resource)

    def watch_interrupted(self, resource: str) -> None:
        self.interrupted.append(resource)

    def absent(self, resource: str) -> None:
        raise AssertionError(f"{resource} is always there")

    def errors(self, reason: str = "operator", resource: str = "all") -> float:
        """How often kopf was started again, unless another reason is given."""
        return sample(self.metrics, "loadmaster_watch_errors_total", resource=resource, reason=reason)

    def _after_start(self) -> None:
        self.starts += 1


S = TypeVar("S", bound=Setup)


@asynccontextmanager
async def watching(make: type[S], directory: Path, api: WatchApi, *, asked: int, **how: Any) -> AsyncIterator[S]:
    """A watch that was requested `asked` times; `how`: arguments of `Watch`."""
    token = directory / "token"
    token.write_text("first")
    # aiohttp waits a minute for whoever connects at the moment when a test closes the server, and answers nobody then.
    await api.server.start_server(shutdown_timeout=0.1)
    async with (
        api.server,
        client_of(directory, api.url, tokenFile=str(token)) as client,
        kept_fresh(client.credentials),
    ):
        setup = make(api, client, **how)
        task = asyncio.create_task(setup.watch.run())
        await until(lambda: len(api.watches) >= asked)
        try:
            yield setup
        finally:
            task.cancel()
            await asyncio.wait([task])
            for resource in api.watched:
                api.send_raw(resource, BREAK)


@asynccontextmanager
async def a_watch(directory: Path, api: WatchApi | None = None, *, asked: int = 2, **how: Any) -> AsyncIterator[Setup]:
    """A watch on pods and nodes."""
    async with watching(Setup, directory, api or WatchApi(), asked=asked, **how) as setup:
        yield setup


def size_of(events: Sequence[dict[str, Any]]) -> int:
    """How many bytes `HistoryApi` sends for them."""
    return len(_text(events))


def _text(events: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)
