"""kopf against a fake API server: what it lists, what arrives, what happens when the watch breaks."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.test_utils import TestServer

from scheduler.framework.metrics import Metrics
from scheduler.kube.client import Client
from scheduler.kube.credentials import load_credentials
from scheduler.kube.intake import NODES, PODS, node_intake, pod_intake
from scheduler.kube.watch import NOTHING, Watch
from tests.fakes import run, sample
from tests.unit.kube.fake_api import FakeHandlers, kubeconfig_text, node_dict, pod_dict, until

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
        self.tokens: list[str] = []
        self._streams: dict[str, asyncio.Queue[Any]] = {PODS: asyncio.Queue(), NODES: asyncio.Queue()}
        app = web.Application()
        app.router.add_get("/api", self._api)
        app.router.add_get("/apis", self._apis)
        app.router.add_get("/api/v1", self._resources)
        app.router.add_get("/api/v1/{resource}", self._objects)
        self.server = TestServer(app, host="127.0.0.1")

    def send(self, resource: str, type_: str, obj: dict[str, Any]) -> None:
        self._streams[resource].put_nowait({"type": type_, "object": obj})

    def send_raw(self, resource: str, event: Any) -> None:
        self._streams[resource].put_nowait(event)

    async def _api(self, _: web.Request) -> web.Response:
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
        response = web.StreamResponse()
        await response.prepare(request)
        while (event := await self._streams[resource].get()) is not BREAK:
            await response.write(json.dumps(event).encode() + b"\n")
        assert request.transport is not None
        request.transport.abort()
        return response


class Setup:
    def __init__(self, api: WatchApi, client: Client) -> None:
        self.api = api
        self.handlers = FakeHandlers()
        self.metrics = Metrics()
        self.listed: list[str] = []
        self.starts = 0
        pods, nodes = pod_intake(self.handlers, self.metrics), node_intake(self.handlers, self.metrics)
        self.watch = Watch(client, (pods, nodes), self, self.metrics, self._after_start)

    def request(self, resource: str) -> None:
        self.listed.append(resource)

    def absent(self, resource: str) -> None:
        raise AssertionError(f"{resource} is always there")

    def _after_start(self) -> None:
        self.starts += 1


@asynccontextmanager
async def a_watch(directory: Path) -> AsyncIterator[Setup]:
    """A watch that has begun on both resources."""
    api = WatchApi()
    token = directory / "token"
    token.write_text("first")
    async with api.server:
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(str(api.server.make_url("/")), tokenFile=str(token)))
        # Whether credentials are old enough to be read again is not of interest here.
        credentials = await load_credentials(str(kubeconfig), now=iter(range(0, 10**6, 10)).__next__)
        async with Client(credentials, Metrics()) as client:
            setup = Setup(api, client)
            task = asyncio.create_task(setup.watch.run())
            await until(lambda: len(api.watches) == 2)
            try:
                yield setup
            finally:
                task.cancel()
                await asyncio.wait([task])
                for resource in (PODS, NODES):
                    api.send_raw(resource, BREAK)


def test_kopf_gets_empty_lists_and_watches_from_their_version(tmp_path: Path) -> None:
    async def scenario() -> Setup:
        async with a_watch(tmp_path) as setup:
            return setup

    setup = run(scenario())
    assert sorted(setup.api.lists) == [(NODES, NOTHING), (PODS, NOTHING)]
    assert sorted(setup.api.watches) == [(NODES, "100"), (PODS, "100")]
    assert sorted(setup.listed) == [NODES, PODS]
    assert setup.starts == 1


def test_events_arrive(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        async with a_watch(tmp_path) as setup:
            setup.api.send(NODES, "ADDED", node_dict("n", 101))
            await until(lambda: setup.handlers.nodes)
            setup.api.send(PODS, "ADDED", pod_dict("a", 102))
            setup.api.send(PODS, "MODIFIED", pod_dict("a", 103, nodeName="n"))
            setup.api.send(PODS, "DELETED", pod_dict("a", 104))
            await until(lambda: len(setup.handlers.calls) == 4)
            return setup.handlers.calls

    assert run(scenario()) == ["changed n 101", "changed a 102", "changed a 103", "deleted a"]


def test_a_failing_handler_does_not_end_the_watch(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        async with a_watch(tmp_path) as setup:
            setup.handlers.fail_on = "a"
            setup.api.send(PODS, "ADDED", pod_dict("a", 102))
            setup.api.send(PODS, "ADDED", pod_dict("b", 103))
            await until(lambda: setup.handlers.calls)
            return setup.handlers.calls

    assert run(scenario()) == ["changed b 103"]


def test_after_a_broken_connection_the_watch_goes_on_from_the_last_version(tmp_path: Path) -> None:
    async def scenario() -> Setup:
        async with a_watch(tmp_path) as setup:
            setup.api.send(PODS, "ADDED", pod_dict("a", 102))
            await until(lambda: setup.handlers.pods)
            setup.api.send_raw(PODS, BREAK)
            await until(lambda: len(setup.api.watches) >= 3)
            return setup

    setup = run(scenario())
    assert setup.api.watches[-1] == (PODS, "102")
    assert setup.listed.count(PODS) == 1


def test_after_410_gone_a_comparison_is_asked_for(tmp_path: Path) -> None:
    async def scenario() -> Setup:
        async with a_watch(tmp_path) as setup:
            setup.api.version = 200
            setup.api.send_raw(PODS, GONE)
            await until(lambda: len(setup.api.watches) >= 3)
            return setup

    setup = run(scenario())
    assert setup.api.watches[-1] == (PODS, "200")
    assert setup.listed.count(PODS) == 2


def test_kopf_is_started_again_when_it_ends(tmp_path: Path) -> None:
    async def scenario() -> Setup:
        async with a_watch(tmp_path) as setup:
            setup.api.send_raw(PODS, {"type": "ERROR", "object": {"code": 500}})
            await until(lambda: len(setup.api.watches) >= 4)
            return setup

    setup = run(scenario())
    assert setup.starts == 2
    assert setup.listed.count(PODS) == 2
    assert sample(setup.metrics, "loadmaster_watch_errors_total", resource="all", reason="operator") == 1


def test_tasks_of_others_survive_the_end_of_kopf(tmp_path: Path) -> None:
    async def scenario() -> bool:
        async with a_watch(tmp_path) as setup:
            ours = asyncio.create_task(asyncio.Event().wait())
            setup.api.send_raw(PODS, {"type": "ERROR", "object": {"code": 500}})
            await until(lambda: len(setup.api.watches) >= 4)
            survived = not ours.done()
            ours.cancel()
            return survived

    assert run(scenario())


def test_after_a_401_the_watch_goes_on_with_a_new_token(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        async with a_watch(tmp_path) as setup:
            setup.api.rejected.add("first")
            (tmp_path / "token").write_text("second")
            setup.api.send_raw(PODS, BREAK)
            await until(lambda: len(setup.api.watches) >= 3)
            return setup.api.tokens

    assert "second" in run(scenario())
