"""The watches on what plugins look up, as the configuration changes: opened, told more, and closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from scheduler.cycle.object_handlers import ObjectEventHandlers
from scheduler.engine.profiles import Resources
from scheduler.framework.nodes.resources import parse_resource
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.further_watches import FurtherWatches
from scheduler.kube.informers.intake import Intake, node_intake, pod_intake
from scheduler.kube.informers.relister import Relister
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.state.objects import ObjectStore
from tests.unit.kube.fake_api import (
    FakeApi,
    FakeHandlers,
    fake_client,
    node_dict,
    object_dict,
    object_list,
    pod_dict,
)
from tests.unit.queue.fakes import QueueUnderTest

BUDGETS = "budgets.v1.example.com"
LIST_BUDGETS = "GET /apis/example.com/v1/budgets"


class WithoutKopf(FurtherWatches):
    """What watches, does nothing."""

    def _start(self, intake: Intake[Any]) -> "asyncio.Task[None]":
        async def forever() -> None:
            await asyncio.Event().wait()

        return self._tasks.start(f"watch on {intake.resource}", forever())


class Stage:
    """A relister that runs, and further watches, without kopf: the test lists what kopf would ask to be listed."""

    def __init__(self, api: FakeApi, client: Any) -> None:
        self.api = api
        self.metrics = Metrics()
        self.tasks = Tasks(self.metrics)
        self.store = ObjectStore()
        queue = QueueUnderTest()
        self.handlers = ObjectEventHandlers(self.store, queue, (), lambda: None, self.metrics)
        deadlines = Deadlines(self.metrics)
        schedule = ComparisonSchedule()
        pods = FakeHandlers()
        intakes = pod_intake(pods, self.metrics), node_intake(pods, self.metrics)
        self.relister = Relister(client, intakes, schedule, nullcontext, deadlines, self.metrics, 0.0, settle=0.0)
        self.watches = WithoutKopf(
            client, self.relister, self.handlers, deadlines, self.metrics, self.tasks, lambda _: None, lambda: None
        )

    async def open(self, *parts: str) -> None:
        """Open the watch on budgets; `parts`: what is read of them, everything if nothing is said."""
        read = {BUDGETS: frozenset(parts)} if parts else {}
        opening = asyncio.create_task(self.watches.open(Resources({BUDGETS: parse_resource(BUDGETS)}, read)))
        await asyncio.sleep(0)
        self.relister.request(BUDGETS)
        await opening

    def budget(self) -> dict[str, Any]:
        found = self.store.get(BUDGETS, "shop", "default")
        assert found is not None
        content: dict[str, Any] = found.content
        return content


@asynccontextmanager
async def a_stage(directory: Path) -> AsyncIterator[Stage]:
    api = FakeApi().on("GET /api/v1/pods", object_list(pod_dict("a"), version=10))
    api.on("GET /api/v1/nodes", object_list(node_dict("n"), version=10))
    api.on(LIST_BUDGETS, object_list(object_dict("shop", 1, spec={"pool": "blue", "limit": 5}), version=10))
    async with fake_client(directory, api) as client:
        stage = Stage(api, client)
        stage.tasks.start("relister", stage.relister.run())
        for resource in ("pods", "nodes"):
            stage.relister.request(resource)
        await stage.relister.synced.wait()
        stage.watches.start()
        try:
            yield stage
        finally:
            await stage.tasks.close()
            assert not stage.tasks.failed


async def test_what_is_opened_is_listed_when_that_returns(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.open()

        assert [each.metadata.name for each in stage.store.list(BUDGETS)] == ["shop"]
        assert BUDGETS in stage.watches
        before = len(stage.api.seen(LIST_BUDGETS))
        await stage.watches.open(Resources({BUDGETS: parse_resource(BUDGETS)}))
        assert len(stage.api.seen(LIST_BUDGETS)) == before, "what is opened again as it is costs nothing"


async def test_objects_of_which_more_is_read_are_read_anew_and_never_less(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.open("spec.pool")
        little = stage.budget()["spec"]

        await stage.open("spec.limit")
        more = stage.budget()["spec"]
        await stage.watches.open(Resources({BUDGETS: parse_resource(BUDGETS)}, {BUDGETS: frozenset({"spec.pool"})}))

        assert little == {"pool": "blue"}
        assert more == {"pool": "blue", "limit": 5}
        assert stage.budget()["spec"] == more


async def test_what_nobody_reads_any_more_is_not_kept(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.open()
        whole = stage.budget()["spec"]

        stage.watches.keep_only(Resources({BUDGETS: parse_resource(BUDGETS)}, {BUDGETS: frozenset({"spec.pool"})}))
        await stage.relister.compared([BUDGETS])

        assert whole == {"pool": "blue", "limit": 5}
        assert stage.budget()["spec"] == {"pool": "blue"}
        listed = len(stage.api.seen(LIST_BUDGETS))
        stage.watches.keep_only(Resources({BUDGETS: parse_resource(BUDGETS)}, {BUDGETS: frozenset({"spec.pool"})}))
        await stage.relister.compared([BUDGETS])
        assert len(stage.api.seen(LIST_BUDGETS)) == listed


async def test_what_is_closed_is_forgotten(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.open()

        await stage.watches.close([BUDGETS])

        assert BUDGETS not in stage.watches
        assert list(stage.watches.resources) == []
        await stage.open()
        assert stage.budget()["spec"]["pool"] == "blue"
