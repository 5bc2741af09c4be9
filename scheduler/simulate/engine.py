"""The scheduler run over a cluster that is given as data: same tables, plugins, queue and loop, no API server.

A binding takes effect at once, and the watch is us: what is bound comes back as if the API server had told it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from scheduler.api.objects import Node
from scheduler.api.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Placed
from scheduler.cycle.engine import Engine, build_engine
from scheduler.cycle.writers import Writers
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.runtime.metrics import Metrics
from scheduler.runtime.registry import Registry
from scheduler.simulate.explain import explain_nodes
from scheduler.simulate.objects import OtherObjects
from scheduler.simulate.writes import SimulatedApi

Result = dict[str, Any]
"""One pod of the JSON document: see `simulate`."""


def simulate(
    nodes: Iterable[Node],
    pods: Sequence[Pod],
    config: Config,
    registry: Registry,
    others: OtherObjects | None = None,
    *,
    each_alone: bool = False,
    explain: bool = False,
) -> dict[str, list[Result]]:
    """Schedule the pods without a node that name one of the profiles, in queue order, each seeing the earlier placed.

    Of `others`, those that plugins look up are taken out.
    With `each_alone` every pod is judged on the cluster as given, in the given order.

    Return {"pods": [{"namespace", "name", "node", "nominatedNode", "victims", "message", "gated"?, "nodes"?}]}: `gated`
    names the PreEnqueue plugin that holds the pod back; `nodes`, with `explain`, has the verdict on every node. Raises
    ConfigError if a profile cannot be built, or an object that its plugins look up cannot be read.
    """
    world, api = _World(), SimulatedApi()
    engine = build_engine(config, registry, Writers(world, world, world, world, api), Metrics(), lambda: 0.0)
    try:
        cluster = _Cluster(nodes, pods, others or OtherObjects())
        return _simulated(engine, world, api, cluster, each_alone=each_alone, explain=explain)
    finally:
        engine.close()


class _Cluster(NamedTuple):
    nodes: Iterable[Node]
    pods: Sequence[Pod]
    others: OtherObjects


def _simulated(
    engine: Engine, world: "_World", api: SimulatedApi, cluster: _Cluster, *, each_alone: bool, explain: bool
) -> dict[str, list[Result]]:
    nodes, pods, others = cluster
    world.bound = engine.handlers.pod_changed
    api.objects, api.watch = engine.objects, engine.object_handlers
    api.shows = not each_alone  # devices taken back for one pod must not help the next
    for name, each in others.take(engine.watched):
        engine.object_handlers.object_changed(name, each)
    for node in nodes:
        engine.handlers.node_changed(node)
    for pod in pods:
        engine.handlers.pod_changed(pod)
    pending = [
        pod
        for pod in pods
        if not pod.node_name and pod.uid in engine.pods and pod.spec.scheduler_name in engine.frameworks
    ]
    for pod in pending:
        world.results[pod.uid] = _empty(pod) | ({"nodes": {}} if explain else {})
    for queued in engine.queue.pending_pods()["gated"]:
        world.results[queued.pod.uid]["gated"] = queued.gating_plugin
    if each_alone:
        asyncio.run(_judge_each(engine, pending, world, explain=explain))
    else:
        asyncio.run(_schedule_all(engine, world, explain=explain))
    return {"pods": list(world.results.values())}


def _empty(pod: Pod) -> Result:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "node": None,
        "nominatedNode": None,
        "victims": [],
        "message": "",
    }


async def _judge_each(engine: Engine, pods: Iterable[Pod], world: "_World", *, explain: bool) -> None:
    for pod in pods:
        _judge(engine, pod, world.results[pod.uid], explain=explain)
        await _background()


async def _background() -> None:
    """Let what was left to tasks, such as evictions, come to its end. Here it takes no time."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


def _judge(engine: Engine, pod: Pod, result: Result, *, explain: bool) -> None:
    """Say where one pod would go, and change nothing."""
    framework = engine.frameworks[pod.spec.scheduler_name]
    if pod.is_deleting or "gated" in result:
        return
    try:
        if explain:
            result["nodes"] = explain_nodes(framework, engine.algorithm, engine.cache.table, pod)
        decision = engine.algorithm.schedule(framework, CycleState(), pod)
    except PluginError as error:
        result["message"] = str(error)
        return
    if isinstance(decision, Placed):
        result["node"] = decision.node_name
    else:
        result["message"] = decision.message
        result["nominatedNode"] = decision.nominated_node_name or None


async def _schedule_all(engine: Engine, world: "_World", *, explain: bool) -> None:
    """Pop every pod before the first is tried: each has one attempt, whatever the others' placements may wake."""
    popped = []
    while (queued := engine.queue.pop_nowait()) is not None:
        popped.append(queued)
    for queued in popped:
        pod = queued.pod
        framework = engine.frameworks[pod.spec.scheduler_name]
        if explain and not pod.is_deleting:
            try:
                nodes = explain_nodes(framework, engine.algorithm, engine.cache.table, pod)
            except PluginError as error:
                world.results[pod.uid]["message"] = str(error)
            else:
                world.results[pod.uid]["nodes"] = nodes
        engine.loop.schedule_one(queued)
        await engine.loop.finish(seconds=PERMIT_SECONDS)
        await _background()


PERMIT_SECONDS = 1.0
"""How long a Permit plugin may hold a pod in a simulation before it counts as waiting."""


class _World:
    """All writers of a simulation: does at once what it is asked, and records what became of each pod."""

    bound: Callable[[Pod], None]

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.results[pod.uid]["node"] = node_name
        self.results[pod.uid]["message"] = ""
        self.bound(pod)

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        if reason == "FailedScheduling" and pod.uid in self.results:
            self.results[pod.uid]["message"] = note

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        self.results[pod.uid]["message"] = message
        self.results[pod.uid]["nominatedNode"] = nominated_node_name or None

    def nominate(self, pod: Pod, node_name: str) -> None:
        self.results[pod.uid]["nominatedNode"] = node_name

    def forget(self, pod: Pod) -> None:
        """Nothing is waiting to be sent."""

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Only say who would have to go: what the others see stays as it was given."""
        self.results[preemptor.uid]["victims"].append(str(victim))
        return True

    def clear_nomination(self, pod: Pod) -> None:
        """Nominations stay as they were given."""
