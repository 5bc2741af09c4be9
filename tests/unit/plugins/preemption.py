"""A cluster whose full nodes are to be made free, and who would have to go."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from plugins.default_preemption.plugin import DefaultPreemption
from plugins.node_resources.fit import NodeResourcesFit
from plugins.node_unschedulable import NodeUnschedulable
from plugins.shared.eviction.budgets import POD_DISRUPTION_BUDGET
from scheduler import framework as fw
from scheduler.api.objects import PodCondition, PodStatus
from scheduler.api.unstructured import Unstructured
from scheduler.cycle.algorithm import Algorithm, Unplaced
from scheduler.runtime.framework import Framework
from scheduler.runtime.profile import POINTS, ProfilePlugins
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.testing import Objects, a_node, a_pod, an_object, started
from tests.fakes import Eviction, FakeWorld, Metrics, a_handle, settle
from tests.unit.plugins.cluster import a_cluster

START = datetime(2026, 1, 1, tzinfo=UTC)
LEAVING = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


class Outcome(NamedTuple):
    """What became of a pod that fits nowhere."""

    node: str | None
    """None for a nomination that stays as it is, empty for one that ends."""
    victims: list[str]
    message: str


@dataclass(frozen=True)
class Scene:
    """A profile over some nodes, and the world around it."""

    table: NodeTable
    plugin: DefaultPreemption
    framework: Framework
    nominator: Nominator
    pods: dict[str, fw.Pod]
    world: FakeWorld
    metrics: Metrics

    def preempt(self, pod: fw.Pod, attempt: int = 0) -> Outcome:
        """Let a pod be tried, and its preemption come to its end."""

        async def act() -> Unplaced:
            self.pods[pod.uid] = pod
            decision = Algorithm(self.table).schedule(self.framework, fw.CycleState(), pod, attempt)
            await settle()
            assert isinstance(decision, Unplaced), decision
            return decision

        before = len(self.world.written(Eviction))
        decision = asyncio.run(act())
        victims = sorted(name_of(each.victim) for each in self.world.written(Eviction)[before:])
        return Outcome(decision.nominated_node_name, victims, decision.message)


def a_scene(
    *nodes: fw.Node,
    pods: Mapping[str, Iterable[fw.Pod]] | None = None,
    budgets: Iterable[Unstructured] = (),
    filters: Iterable[fw.Plugin] = (),
    arguments: Mapping[str, Any] | None = None,
    kind: type[DefaultPreemption] = DefaultPreemption,
    others: Mapping[str, Iterable[Unstructured]] | None = None,
) -> Scene:
    """Put it together: `pods` by the name of their node; `filters` come after NodeResourcesFit.

    `kind` is the plugin that preempts, `others` are more objects, by resource.
    """
    placed = {name: [each.bound_to(name) for each in on_node] for name, on_node in (pods or {}).items()}
    table, nominator, world, metrics = a_cluster(*nodes, pods=placed), Nominator(), FakeWorld(), Metrics()
    known = {each.uid: each for on_node in placed.values() for each in on_node}
    objects = Objects({POD_DISRUPTION_BUDGET: budgets, **(others or {})})
    handle = a_handle(table, nominator)
    handle = replace(handle, objects=objects, pods=known, evictor=world, events=world, metrics=metrics)
    plugin = started(kind(**(arguments or {})), handle)
    made = (NodeUnschedulable(), NodeResourcesFit(), *filters, plugin)
    at = {point: tuple(each for each in made if isinstance(each, kinds)) for point, kinds in POINTS.items()}
    framework = Framework(ProfilePlugins(at, {each.name: 1 for each in made}), handle, table, nominator, metrics)
    return Scene(table, plugin, framework, nominator, known, world, metrics)


def name_of(pod: str) -> str:
    """The name of a pod that is given as `namespace/name`."""
    return pod.rpartition("/")[2]


def node(name: str, cpu: int = 4, **wishes: Any) -> fw.Node:
    return a_node(name, cpu=cpu, **wishes)


def pod(
    name: str,
    priority: int,
    cpu: int = 1,
    *,
    started: int | None = 0,
    labels: Mapping[str, str] | None = None,
    leaving: bool = False,
    nominated: str = "",
    policy: str | None = None,
    conditions: Iterable[PodCondition] = (),
) -> fw.Pod:
    """A pod that started this many seconds after the others; with None it has not."""
    status = PodStatus(
        start_time=None if started is None else START + timedelta(seconds=started),
        nominated_node_name=nominated,
        conditions=tuple(conditions) or None,
    )
    made = a_pod(name, priority=priority, requests={"cpu": cpu}, labels=labels, status=status)
    spec = msgspec.structs.replace(made.spec, preemption_policy=policy)
    deleted = "2026-01-01T00:00:00Z" if leaving else None
    metadata = msgspec.structs.replace(made.metadata, deletion_timestamp=deleted)
    return fw.Pod(metadata=metadata, spec=spec, status=status)


def a_budget(allowed: int, disrupted: Iterable[str] = (), name: str = "budget", **labels: str) -> Unstructured:
    """A PodDisruptionBudget in the namespace `default`, for pods with these labels."""
    status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")}
    return an_object(name, namespace="default", spec={"selector": {"matchLabels": labels}}, status=status)
