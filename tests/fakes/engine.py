"""A plugin's handle and a profile for tests, and what tests ask of the engine's parts."""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from scheduler import testing
from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.nodes import BoolColumn
from scheduler.framework.nodes.resources import KNOWN
from scheduler.framework.plugin import Plugin
from scheduler.framework.queued import QueuedGroup, QueuedPod
from scheduler.process import metrics as metrics_module
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_breaker import Breaker
from scheduler.runtime.guards.plugin_budgets import Budgets
from scheduler.runtime.guards.plugin_limits import NO_LIMITS, Limits
from scheduler.runtime.handle import EngineHandle
from scheduler.runtime.plugin_calls import PluginCalls
from scheduler.runtime.profile import POINTS, ProfilePlugins
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from tests.fakes.world import FakeWorld

Metrics = metrics_module.Metrics


CHECKS: Final = deque[Callable[[], None]](maxlen=8)
"""What is asserted at the end of a test: the last ones only, as a generated test adds one an example."""


def a_handle(
    table: NodeTable | None = None,
    nominator: Nominator | None = None,
    *,
    world: FakeWorld | None = None,
    profile: str = "default-scheduler",
) -> EngineHandle:
    """A plugin author's handle over `table`, or no nodes, that writes to a fake world.

    It knows no object of any resource of Kubernetes.
    """
    world, objects = world or FakeWorld(), ObjectStore()
    objects.watch(KNOWN)
    return replace(
        testing.a_handle(NodeTable(4) if table is None else table, objects),
        profile_name=profile,
        nominator=Nominator() if nominator is None else nominator,
        binder=_Binder(world),
        events=world,
        evictor=world,
    )


class _Binder:
    """What a Bind plugin sees of a world: that it went well, but not what went wrong before."""

    def __init__(self, world: FakeWorld) -> None:
        self._world = world

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self._world.bind(pod, node_name)


def a_framework(
    *plugins: Plugin,
    table: NodeTable | None = None,
    nominated: Nominator | Mapping[str, Collection[Pod]] | None = None,
    weights: Mapping[str, int] | None = None,
    percentage: int = 0,
    metrics: Metrics | None = None,
    profile: str = "default-scheduler",
    limits: Limits = NO_LIMITS,
    events: FakeWorld | None = None,
) -> Framework:
    """A profile with these plugins at each point that they extend, in this order, over `table` or one node `n`.

    `nominated` may be pods by the name of the node to which they are nominated.
    """
    if table is None:
        table = testing.a_cluster(testing.a_node("n"))
    nominator = nominated if isinstance(nominated, Nominator) else _nominator(nominated or {})
    at = {point: tuple(p for p in plugins if isinstance(p, kinds)) for point, kinds in POINTS.items()}
    every_weight = {plugin.name: (weights or {}).get(plugin.name, 1) for plugin in plugins}
    made = ProfilePlugins(at, every_weight, {plugin.name: plugin for plugin in plugins}, every_weight)
    handle = a_handle(table, nominator, world=events, profile=profile)
    return Framework(made, handle, table, nominator, metrics or Metrics(), percentage, limits)


def plugin_calls(metrics: Metrics | None = None, profile: str = "default-scheduler") -> PluginCalls:
    """What calls the plugins of a profile without a word about their limits."""
    metrics, events = metrics or Metrics(), FakeWorld()
    breaker = Breaker(NO_LIMITS, profile, events)
    budgets = Budgets(metrics, events, NO_LIMITS, {}, breaker.note)
    return PluginCalls(metrics, profile, budgets, breaker, (), EventStream())


def _nominator(nominated: Mapping[str, Collection[Pod]]) -> Nominator:
    nominator = Nominator()
    for name, pods in nominated.items():
        for pod in pods:
            nominator.add(pod, name)
    return nominator


def sample(metrics: Metrics, name: str, **labels: str) -> float:
    """The value of one sample; 0 if there is none."""
    return metrics.registry.get_sample_value(name, labels) or 0.0


def everything(table: NodeTable) -> BoolColumn:
    """All rows in use."""
    return table.in_use.copy()


def names_of(table: NodeTable, rows: Sequence[int]) -> list[str]:
    return [table.names()[row] for row in rows]


def pop(queue: SchedulingQueue) -> QueuedPod:
    queued = queue.pop_nowait()
    assert queued is not None, "nothing to pop"
    assert isinstance(queued, QueuedPod), queued.key
    return queued


def next_pod(queue: SchedulingQueue) -> QueuedPod | None:
    """Pop a pod where there are no groups; None if there is none."""
    queued = queue.pop_nowait()
    assert not isinstance(queued, QueuedGroup), queued.key
    return queued


def pop_group(queue: SchedulingQueue) -> QueuedGroup:
    queued = queue.pop_nowait()
    assert isinstance(queued, QueuedGroup), queued
    return queued


def where(queue: SchedulingQueue, uid: str) -> str:
    """Say in which part of the queue a pod is; empty if in none."""
    for name, pods in queue.pending_pods().items():
        if any(queued.pod.uid == uid for queued in pods):
            return name
    return "in flight" if any(queued.pod.uid == uid for queued in queue.in_flight_pods()) else ""


def nominated_node(nominator: Nominator, uid: str) -> str:
    """Return the node to which a pod is nominated; empty if to none."""
    names = [name for name, pods in nominator.by_node() if any(pod.uid == uid for pod in pods)]
    assert len(names) <= 1, f"{uid} is nominated to {names}"
    return names[0] if names else ""
