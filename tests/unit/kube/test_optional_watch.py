"""The watch on a resource that comes and goes, against a fake API server that serves it or does not."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.framework.nodes.resources import parse_resource
from scheduler.kube.informers.deadlines import BEGIN_SECONDS, PROGRESS_SECONDS, Deadlines
from scheduler.kube.informers.intake import Intake, object_intake, pod_intake
from scheduler.kube.informers.watch import NOTHING, WatchSession
from scheduler.process.metrics import Metrics
from tests.unit.kube import watch_api
from tests.unit.kube.fake_api import (
    FakeApi,
    FakeHandlers,
    FakeObjectHandlers,
    fake_client,
    object_dict,
    until,
)
from tests.unit.kube.watch_api import BREAK, NoComparisons, WatchApi, discovered, watching

BUDGETS = "budgets.v1.example.com"


class CustomApi(WatchApi):
    """Serves one custom resource, or does not, below a path as behind a proxy."""

    root = "/proxy"
    watched = ("budgets",)
    is_served = False

    def documents(self) -> dict[str, Any]:
        if not self.is_served:
            return super().documents()
        versions = [{"version": "v1"}]
        group = {"name": "example.com", "versions": versions, "preferredVersion": versions[0]}
        resources = [discovered("budgets", "Budget")]
        return {**super().documents(), "apis": {"groups": [group]}, "apis/example.com/v1": {"resources": resources}}

    def serves(self, path: str) -> bool:
        return self.is_served and super().serves(path)


class Setup(watch_api.Setup):
    api: CustomApi

    def intakes(self) -> Sequence[Intake[Any]]:
        self.notified: list[str] = []
        self.others = FakeObjectHandlers()
        return [object_intake(BUDGETS, parse_resource(BUDGETS), self.others, self.metrics)]

    def request(self, resource: str) -> None:
        self.notified.append(f"compare {resource}")

    def absent(self, resource: str) -> None:
        self.notified.append(f"absent {resource}")


@asynccontextmanager
async def a_watch(directory: Path, *, is_served: bool, is_in_trouble: bool = False) -> AsyncIterator[Setup]:
    api = CustomApi()
    api.is_served = is_served
    if is_in_trouble:
        api.refused[""] = 503
    async with watching(Setup, directory, api, asked=0, absent_seconds=0.005) as setup:
        yield setup


async def test_a_resource_that_is_served_is_watched_and_the_watch_goes_on_from_the_last_version(
    tmp_path: Path,
) -> None:
    async with a_watch(tmp_path, is_served=True) as setup:
        await until(lambda: setup.api.watches)
        for type_, version in (("ADDED", 101), ("MODIFIED", 102), ("DELETED", 103)):
            setup.api.send("budgets", type_, object_dict("shop", version))
        await until(lambda: len(setup.others.calls) == 3)
        setup.api.send_raw("budgets", BREAK)
        await until(lambda: len(setup.api.watches) == 2)

    assert setup.others.calls == [f"changed {BUDGETS} shop 101", f"changed {BUDGETS} shop 102", "deleted shop"]
    assert setup.api.watches == [("budgets", "100"), ("budgets", "103")]
    assert setup.notified == [f"compare {BUDGETS}"]
    assert setup.api.lists == [("budgets", NOTHING)]
    assert setup.errors("absent", BUDGETS) == 0


async def test_a_resource_that_is_not_served_is_told_once_looked_for_again_and_watched_when_it_comes(
    tmp_path: Path,
) -> None:
    async with a_watch(tmp_path, is_served=False) as setup:
        await until(lambda: len(setup.api.asked) >= 5)
        assert setup.notified == [f"absent {BUDGETS}"]
        assert set(setup.api.asked) == {"apis/example.com/v1"}
        assert setup.errors("absent", BUDGETS) == 1
        assert setup.errors("operator", BUDGETS) == 0

        setup.clock.advance(BEGIN_SECONDS + 1.0)
        assert setup.deadlines.overdue() == {}, "it is excused"
        setup.api.is_served = True
        await until(lambda: setup.api.watches)
        setup.clock.advance(PROGRESS_SECONDS + 1.0)
        assert setup.deadlines.overdue() == {BUDGETS: PROGRESS_SECONDS + 1.0}, "no longer"
        assert setup.notified == [f"absent {BUDGETS}", f"compare {BUDGETS}"]


async def test_an_api_server_in_trouble_does_not_make_a_resource_absent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_watch(tmp_path, is_served=True, is_in_trouble=True) as setup:
        await until(lambda: len(setup.api.asked) >= 2)
        setup.api.refused.clear()
        await until(lambda: setup.api.watches)

        assert setup.notified == [f"compare {BUDGETS}"]
    assert [record.message for record in caplog.records] == ["The API server does not say whether it serves a resource"]


async def test_a_resource_that_goes_is_absent_and_excused_until_it_comes_again(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=True) as setup:
        await until(lambda: setup.api.watches)
        setup.api.is_served = False
        setup.api.send_raw("budgets", BREAK)
        await until(lambda: len(setup.notified) == 2)
        setup.clock.advance(PROGRESS_SECONDS + 1.0)
        assert setup.deadlines.overdue() == {}
        setup.api.is_served = True
        await until(lambda: len(setup.notified) == 3)

    assert setup.notified == [f"compare {BUDGETS}", f"absent {BUDGETS}", f"compare {BUDGETS}"]
    assert set(setup.interrupted) == {BUDGETS}
    assert setup.errors("absent", BUDGETS) == 1


async def test_an_api_server_that_does_not_say_whether_it_serves_a_resource_is_in_trouble(tmp_path: Path) -> None:
    async with a_watch(tmp_path, is_served=True, is_in_trouble=True) as setup:
        for _ in range(2):
            setup.clock.advance(BEGIN_SECONDS + 1.0)
            await until(lambda: not setup.deadlines.overdue())


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
