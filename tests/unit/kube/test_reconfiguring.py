"""Another configuration may need pods and nodes as JSON, or need them no longer."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from scheduler.engine.profiles import Resources
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import Deadlines
from scheduler.kube.informers.further_watches import FurtherWatches
from scheduler.kube.informers.intake import node_intake, pod_intake
from scheduler.kube.informers.relister import Relister
from scheduler.kube.reconfiguring import ReconfigurableCluster
from scheduler.kube.writes.recorder import Recorder
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from tests.unit.kube.fake_api import (
    FakeApi,
    FakeHandlers,
    fake_client,
    node_dict,
    object_list,
    pod_dict,
    until,
    watch_line,
)

WHOLE, NAMES = Resources(whole_nodes=True), Resources()
LIST_NODES = "GET /api/v1/nodes"
LIST_PODS = "GET /api/v1/pods"
RAW_PODS = Resources(raw_pods=True)


def a_noted_pod() -> dict[str, Any]:
    pod = pod_dict("a")
    pod["metadata"]["annotations"] = {"note": "mine"}
    return pod


class NoWatches:
    """Nothing is watched besides pods and nodes."""

    async def open(self, resources: Resources) -> None: ...
    async def close(self, names: Iterator[str]) -> None: ...
    def keep_only(self, resources: Resources) -> None: ...


@dataclass
class Stage:
    api: FakeApi
    handlers: FakeHandlers
    cluster: ReconfigurableCluster
    nodes: Any

    def note(self) -> str | None:
        """The annotation of the pod, if its JSON is kept."""
        (pod,) = self.handlers.pods.values()
        return pod.annotations["note"] if pod.raw_json else None

    def kept(self) -> dict[str, bool]:
        """Whether there is JSON of each node."""
        return {node.name: bool(node.raw_json) for node in self.handlers.nodes.values()}


@asynccontextmanager
async def a_stage(directory: Path) -> AsyncIterator[Stage]:
    """A relister that has listed nodes a and b."""
    api = FakeApi().on(LIST_PODS, object_list(a_noted_pod(), version=10))
    api.on(LIST_NODES, object_list(node_dict("a"), node_dict("b"), version=10))
    async with fake_client(directory, api) as client:
        metrics, handlers = Metrics(), FakeHandlers()
        tasks = Tasks(metrics)
        pods, nodes = pod_intake(handlers, metrics), node_intake(handlers, metrics)
        schedule, deadlines = ComparisonSchedule(), Deadlines(metrics)
        relister = Relister(client, (pods, nodes), schedule, nullcontext, deadlines, metrics, 0.0, settle=0.0)
        watches = cast("FurtherWatches", NoWatches())
        events = cast("Recorder", None)
        cluster = ReconfigurableCluster(client, pods, nodes, relister, watches, events, NAMES, "one")
        tasks.start("relister", relister.run())
        for resource in ("pods", "nodes"):
            relister.request(resource)
        await relister.synced.wait()
        try:
            yield Stage(api, handlers, cluster, nodes)
        finally:
            await tasks.close()
            assert not tasks.failed


async def test_nodes_are_read_anew_when_they_are_wanted_whole_and_once_only(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        before = stage.kept()

        await stage.cluster.open(WHOLE)
        lists = len(stage.api.seen(LIST_NODES))
        await stage.cluster.open(WHOLE)

        assert before == {"a": False, "b": False}
        assert stage.kept() == {"a": True, "b": True}
        assert len(stage.api.seen(LIST_NODES)) == lists


async def test_what_the_watch_reports_is_kept_whole_too(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.cluster.open(WHOLE)

        stage.nodes.from_line(watch_line("MODIFIED", node_dict("a", version=11)))

        assert stage.kept()["a"]


async def test_they_stay_as_long_as_they_are_wanted_and_are_given_back_then(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        await stage.cluster.open(WHOLE)
        await stage.cluster.open(NAMES)  # the old extenders may still be asked
        meanwhile = stage.kept()

        await stage.cluster.close((), whole_nodes=True)
        await until(lambda: not any(stage.kept().values()))

        assert meanwhile == {"a": True, "b": True}


async def test_pods_are_read_again_when_a_plugin_reads_raw_pods_and_when_none_does_any_more(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        before = stage.note()

        await stage.cluster.open(RAW_PODS)
        needed = stage.note()
        await stage.cluster.open(NAMES)  # the old plugins may still be asked
        meanwhile = stage.note()
        stage.cluster.keep_only(NAMES)
        await until(lambda: stage.note() is None)
        lists = len(stage.api.seen(LIST_PODS))
        stage.cluster.keep_only(NAMES)
        await stage.cluster.open(NAMES)

        assert (before, needed, meanwhile) == (None, "mine", "mine")
        assert len(stage.api.seen(LIST_PODS)) == lists
