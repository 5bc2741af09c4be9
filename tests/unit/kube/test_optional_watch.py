"""The watch on a resource that comes and goes, against a fake API server that serves it or does not."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from scheduler.framework.nodes.resources import parse_resource
from scheduler.kube.http.client import Client
from scheduler.kube.identity.credentials import load_credentials
from scheduler.kube.informers.deadlines import BEGIN_SECONDS, PROGRESS_SECONDS, Deadlines
from scheduler.kube.informers.intake import object_intake, pod_intake
from scheduler.kube.informers.watch import NOTHING, Watch, WatchSession
from scheduler.process.metrics import Metrics
from tests.fakes import FakeClock, sample
from tests.unit.kube.fake_api import (
    FakeApi,
    FakeHandlers,
    FakeObjectHandlers,
    fake_client,
    kubeconfig_text,
    object_dict,
    until,
)
from tests.unit.kube.watch_api import NoComparisons

BUDGETS = "budgets.v1.example.com"


def discovered(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "singularName": "", "kind": kind, "namespaced": kind == "Budget", "verbs": ["list", "watch"]}


class CustomApi:
    """Discovery and one custom resource, below a path as behind a proxy."""

    def __init__(self) -> None:
        self.is_served = False
        self.is_in_trouble = False
        self.asked: list[str] = []
        """Paths of all requests; `list` and `watch` for those of budgets."""
        self.selectors: list[str] = []
        self.versions: list[str] = []
        """From which each watch was to go on."""
        self.streams: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        app = web.Application()
        app.router.add_get("/proxy/{path:.*}", self._answer)
        self.server = TestServer(app, host="127.0.0.1")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        if self.is_in_trouble:
            self.asked.append(path)
            return web.json_response({"kind": "Status", "code": 503, "message": "later"}, status=503)
        if path == "apis/example.com/v1/budgets" and self.is_served:
            return await self._budgets(request)
        self.asked.append(path)
        core: dict[str, dict[str, Any]] = {
            "api": {"versions": ["v1"]},
            "api/v1": {"resources": [discovered("namespaces", "Namespace")]},  # kopf does nothing without them
        }
        found = core.get(path)
        if path == "apis":
            versions = [{"version": "v1"}]
            group = {"name": "example.com", "versions": versions, "preferredVersion": versions[0]}
            found = {"groups": [group] if self.is_served else []}
        if path == "apis/example.com/v1" and self.is_served:
            found = {"resources": [discovered("budgets", "Budget")]}
        if found is None:
            return web.json_response({"kind": "Status", "code": 404, "message": "not found"}, status=404)
        return web.json_response(found)

    async def _budgets(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            self.asked.append("list")
            self.selectors.append(request.query.get("fieldSelector", ""))
            return web.json_response({"metadata": {"resourceVersion": "100"}, "items": []})
        self.asked.append("watch")
        self.versions.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        while (event := await self.streams.get()) is not None:
            await response.write(json.dumps(event).encode() + b"\n")
        return response


class Setup:
    def __init__(self, api: CustomApi, client: Client) -> None:
        self.api = api
        self.handlers = FakeObjectHandlers()
        self.metrics = Metrics()
        self.clock = FakeClock()
        self.deadlines = Deadlines(self.metrics, self.clock)
        self.notified: list[str] = []
        self.interrupted: list[str] = []
        intake = object_intake(BUDGETS, parse_resource(BUDGETS), self.handlers, self.metrics)
        self.watch = Watch(client, [intake], self, self.deadlines, self.metrics, absent_seconds=0.005)

    def request(self, resource: str) -> None:
        self.notified.append(f"compare {resource}")

    def watch_opened(self, resource: str) -> None:
        """Nothing is checked here."""

    def watch_interrupted(self, resource: str) -> None:
        self.interrupted.append(resource)

    def absent(self, resource: str) -> None:
        self.notified.append(f"absent {resource}")

    def errors(self, reason: str) -> float:
        return sample(self.metrics, "loadmaster_watch_errors_total", resource=BUDGETS, reason=reason)


@asynccontextmanager
async def a_watch(directory: Path, *, is_served: bool, is_in_trouble: bool = False) -> AsyncIterator[Setup]:
    api = CustomApi()
    api.is_served, api.is_in_trouble = is_served, is_in_trouble
    async with api.server:
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(str(api.server.make_url("/proxy"))))
        async with Client(await load_credentials(str(kubeconfig)), Metrics()) as client:
            setup = Setup(api, client)
            task = asyncio.create_task(setup.watch.run())
            try:
                yield setup
            finally:
                task.cancel()
                await asyncio.wait([task])
                api.streams.put_nowait(None)


async def test_a_resource_that_is_served_is_watched(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=True) as setup:
        await until(lambda: "watch" in setup.api.asked)
        for type_, version in (("ADDED", 101), ("MODIFIED", 102), ("DELETED", 103)):
            setup.api.streams.put_nowait({"type": type_, "object": object_dict("shop", version)})
        await until(lambda: len(setup.handlers.calls) == 3)

    assert setup.handlers.calls == [f"changed {BUDGETS} shop 101", f"changed {BUDGETS} shop 102", "deleted shop"]
    assert setup.notified == [f"compare {BUDGETS}"]
    assert setup.api.selectors == [NOTHING]
    assert setup.errors("absent") == 0


async def test_the_watch_on_it_goes_on_from_the_last_version(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=True) as setup:
        for version in (101, 102):
            setup.api.streams.put_nowait({"type": "MODIFIED", "object": object_dict("shop", version, spec={})})
        setup.api.streams.put_nowait(None)
        await until(lambda: len(setup.api.versions) == 2)

    assert setup.handlers.calls == [f"changed {BUDGETS} shop 101", f"changed {BUDGETS} shop 102"]
    assert setup.api.versions == ["100", "102"]
    assert setup.notified == [f"compare {BUDGETS}"]


async def test_a_resource_that_is_not_served_is_told_once_and_looked_for_again(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=False) as setup:
        await until(lambda: len(setup.api.asked) >= 5)

    assert setup.notified == [f"absent {BUDGETS}"]
    assert set(setup.api.asked) == {"apis/example.com/v1"}
    assert setup.errors("absent") == 1
    assert setup.errors("operator") == 0


async def test_an_api_server_in_trouble_does_not_make_a_resource_absent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_watch(tmp_path, is_served=True, is_in_trouble=True) as setup:
        await until(lambda: len(setup.api.asked) >= 2)
        setup.api.is_in_trouble = False
        await until(lambda: "watch" in setup.api.asked)

        assert setup.notified == [f"compare {BUDGETS}"]
    assert [record.message for record in caplog.records] == ["The API server does not say whether it serves a resource"]


async def test_a_resource_that_comes_later_is_watched_then(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=False) as setup:
        await until(lambda: setup.notified)
        setup.api.is_served = True
        await until(lambda: "watch" in setup.api.asked)

        assert setup.notified == [f"absent {BUDGETS}", f"compare {BUDGETS}"]


async def test_a_resource_that_goes_is_absent_until_it_comes_again(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=True) as setup:
        await until(lambda: "watch" in setup.api.asked)
        setup.api.is_served = False
        setup.api.streams.put_nowait(None)
        await until(lambda: len(setup.notified) == 2)
        setup.api.is_served = True
        await until(lambda: len(setup.notified) == 3)

    assert setup.notified == [f"compare {BUDGETS}", f"absent {BUDGETS}", f"compare {BUDGETS}"]
    assert set(setup.interrupted) == {BUDGETS}
    assert setup.errors("absent") == 1


async def test_a_resource_that_is_not_served_is_excused_until_it_is(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=False) as setup:
        await until(lambda: setup.notified)
        setup.clock.advance(BEGIN_SECONDS + 1.0)
        overdue = [setup.deadlines.overdue()]
        setup.api.is_served = True
        await until(lambda: "list" in setup.api.asked)
        setup.clock.advance(PROGRESS_SECONDS + 1.0)

        assert [*overdue, setup.deadlines.overdue()] == [{}, {BUDGETS: PROGRESS_SECONDS + 1.0}]


async def test_a_resource_that_went_is_excused(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=True) as setup:
        await until(lambda: "watch" in setup.api.asked)
        setup.api.is_served = False
        setup.api.streams.put_nowait(None)
        await until(lambda: len(setup.notified) == 2)
        setup.clock.advance(PROGRESS_SECONDS + 1.0)

        assert setup.deadlines.overdue() == {}


async def test_an_api_server_that_does_not_say_whether_it_serves_a_resource_is_in_trouble(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=True, is_in_trouble=True) as setup:
        for _ in range(2):
            setup.clock.advance(BEGIN_SECONDS + 1.0)
            await until(lambda: not setup.deadlines.overdue())

        assert True


async def test_only_the_lists_of_what_is_watched_are_made_empty(tmp_path: Path) -> None:
    paths = ("/api/v1/pods", "/apis/metrics.k8s.io/v1/pods", "/api/v1/namespaces/a/pods", "/api/v1", "/apis")

    api, listed, metrics = FakeApi(), list[str](), Metrics()
    async with fake_client(tmp_path, api) as client:
        intake = pod_intake(FakeHandlers(), metrics)
        session = WatchSession(client, [intake], listed.append, NoComparisons(), Deadlines(metrics))
        for path in (*paths, "/api/v1/pods?watch=true"):
            async with await session.request("GET", str(api.server.make_url(path))):
                """What is asked for is seen on the other side."""
    emptied = [request.path for request in api.requests if "fieldSelector" in request.query]

    assert emptied == ["/api/v1/pods"]
    assert listed == []  # the fake API server has no pods: 404
