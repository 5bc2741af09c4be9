"""Loadmaster's verdict on pod groups: one pod group cycle for each group, on an engine that has seen the cluster.

Equals are chosen by name, as the oracle does: nodes, and nodes to preempt on. Members come in the order of their names,
for they are all tried for the first time at the same moment.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final
from unittest import mock

import plugins
import plugins.default_preemption.plugin
from scheduler.api.groups.pod_groups import POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED
from scheduler.api.objects import node_from_dict
from scheduler.api.pods.pod import Pod
from scheduler.config.load import config_from_dict
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.loop import SchedulingLoop
from scheduler.cycle.steps import Steps
from scheduler.engine.engine import Engine
from scheduler.framework.errors import SchedulerError
from scheduler.framework.queued import QueuedGroup, QueuedPod
from scheduler.groups import placements
from scheduler.groups.algorithm import PodGroupAlgorithm
from scheduler.groups.apis.kubernetes import VERSIONS, KubernetesGroups
from scheduler.groups.decision import GroupDecision
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.framework import Framework
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.engine import Simulation, simulation_of
from scheduler.simulate.recording import RecordingWriters
from tests.conformance import ours
from tests.conformance.ours import DEFAULT_CONFIG, as_kube_scheduler_sees, gates_of, others

Json = dict[str, Any]
Verdict = Unplaced | SchedulerError

TYPES: Final = (POD_GROUP_SCHEDULED, POD_GROUP_INITIALLY_SCHEDULED)


def judge(case: Json) -> Json:
    """The verdict on a case, in the oracle's form."""
    if case.get("alone"):
        with candidates_by_name():
            return ours.judge(case)
    gates = gates_of(case)
    config = config_from_dict(case.get("config") or DEFAULT_CONFIG, plugins.IN_TREE, gates=gates)
    profiles = {profile.scheduler_name for profile in config.profiles}
    nodes = tuple(node_from_dict(obj) for obj in case["objects"] if obj["kind"] == "Node")
    pods = tuple(as_kube_scheduler_sees(obj, profiles) for obj in case["objects"] if obj["kind"] == "Pod")
    trees: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        if KubernetesGroups.name_of(pod) and not pod.node_name and not pod.is_deleting:
            trees.setdefault((pod.namespace, root_of(case, pod.namespace, KubernetesGroups.name_of(pod))), []).append(
                pod
            )
    verdicts = []
    for (namespace, name), members in sorted(trees.items(), key=lambda item: item[0]):
        cluster = SimulatedCluster(nodes, pods, others(case))
        with simulation_of(cluster, config, plugins.IN_TREE) as simulation, equals_by_name(simulation.engine):
            witness = Witness(simulation, namespace, name, {KubernetesGroups.name_of(pod) for pod in members} - {name})
            simulation.run(witness.schedule([pod for pod in members if pod.spec.scheduler_name in profiles]))
            verdicts.append(witness.said)
    return {"groups": verdicts}


def root_of(case: Json, namespace: str, name: str) -> str:
    """The group that the tree of a PodGroup begins with; the PodGroup itself if there is no such tree."""
    kinds = {"PodGroup", "CompositePodGroup"} if "CompositePodGroup" in case["gates"] else set()
    parents = {
        (each["kind"], each["metadata"]["name"]): each["spec"].get("parentCompositePodGroupName")
        for each in case["objects"]
        if each["kind"] in kinds and each["metadata"]["namespace"] == namespace
    }
    at = "PodGroup", name
    for _ in range(len(parents) + 1):  # more are a cycle
        if at not in parents:
            return name
        parent = parents[at]
        if parent is None:
            return at[1]
        at = "CompositePodGroup", parent
    return name


@contextmanager
def equals_by_name(engine: Engine) -> Iterator[None]:
    """Choose the smallest name where we draw lots."""
    assert list(engine.cache.table.node_names()) == sorted(engine.cache.table.node_names()), "the first is the smallest"
    with (
        mock.patch.object(engine.algorithm, "select", lambda best, pod, attempt: min(map(int, best))),
        mock.patch.object(placements, "_nominated", lambda fitting: fitting),
        candidates_by_name(),
    ):
        yield


@contextmanager
def candidates_by_name() -> Iterator[None]:
    """Preempt on the node with the smallest name where several are equally good."""
    with mock.patch.object(plugins.default_preemption.plugin, "_offset", return_value=0):
        yield


class Witness:
    """Runs the cycle of one group, and notes what is decided; `parts`: the groups below it with pods that wait."""

    def __init__(self, simulation: Simulation, namespace: str, name: str, parts: Collection[str]) -> None:
        self._simulation = simulation
        self._engine = simulation.engine
        self.said: Json = {
            "namespace": namespace,
            "name": name,
            "gated": {},
            "code": "",
            "message": "",
            "waitingOnPreemption": False,
            "placement": "",
            "members": [],
            "victims": [],
            "condition": None,
            "parts": {name: {"code": "", "message": "", "condition": None} for name in parts},
        }

    async def schedule(self, members: Sequence[Pod]) -> None:
        """Run one cycle for these pods."""
        engine, said = self._engine, self.said
        await self._simulation.start()
        parts = engine.queue.pending_pods()
        for queued in parts["incomplete"]:  # kube-scheduler keeps their nominations: differences.md
            engine.nominator.add(queued.pod)
        held = {queued.pod.uid for queued in (*parts["gated"], *parts["incomplete"])}
        gated = {pod.uid: holder for pod in members if pod.uid in held and (holder := self._holder(pod))}
        said["gated"] = {pod.name: gated[pod.uid] for pod in members if pod.uid in gated}
        is_incomplete = any(queued.pod in members for queued in parts["incomplete"])
        if is_incomplete and not gated:  # no plugin holds them back
            said["gated"] = {pod.name: "incomplete" for pod in members}
        assert engine.pod_groups is not None, "groups are on"
        first = next((entry for entry in _popped(engine.queue) if any(pod.uid in entry for pod in members)), None)
        if first is not None:
            with self._listening(engine.pod_groups):
                engine.loop.schedule_one(first)
                await asyncio.sleep(1)  # of the simulation: what is written in the background is written then
        said["condition"] = self._condition(said["name"])
        for name, part in said["parts"].items():
            part["condition"] = self._condition(name)

    @contextmanager
    def _listening(self, algorithm: PodGroupAlgorithm) -> Iterator[None]:
        """Note what is decided about the group, and what becomes of each member."""
        said = self.said
        decide, place, handle = algorithm.decide_and_leave, SchedulingLoop.place, FailureHandler.handle
        evict = RecordingWriters.evict
        chosen: list[str] = []
        evictions: set[str] = set()

        def decided(framework: Framework, *arguments: Any) -> Steps[GroupDecision]:
            decision = yield from decide(framework, *arguments)
            said["code"], said["message"] = decision.code.label, decision.message
            said["waitingOnPreemption"] = decision.is_waiting_for_preemption
            said["placement"] = decision.placement if decision.status is None else ""
            for part, _ in decision.by_group((), framework.handle.pod_groups.key_of):
                if part.group is not None and part.group.name in said["parts"]:
                    said["parts"][part.group.name] |= {"code": part.code.label, "message": part.message}
            chosen.extend(map(str, victims_of(decision)))
            return decision

        def placed(loop: Any, framework: Any, state: Any, queued: QueuedPod, found: Placed, *timing: Any) -> None:
            said["members"].append({"name": queued.pod.name, "node": found.node_name, "nominatedNode": None})
            place(loop, framework, state, queued, found, *timing)

        def failed(handler: Any, profile: str, queued: QueuedPod, why: Verdict, *rest: Any, **named: Any) -> None:
            said["members"].append(told(queued, why))
            handle(handler, profile, queued, why, *rest, **named)

        async def evicted(writers: Any, victim: Pod, preemptor: Pod, message: str) -> bool:
            evictions.add(str(victim))
            return await evict(writers, victim, preemptor, message)

        with (
            mock.patch.object(RecordingWriters, "evict", evicted),
            mock.patch.object(algorithm, "decide_and_leave", decided),
            mock.patch.object(SchedulingLoop, "place", placed),
            mock.patch.object(FailureHandler, "handle", failed),
        ):
            yield
        # Evictions go on side by side. Members that preempt one by one may choose the same pod.
        said["victims"] = sorted(evictions, key=chosen.index)

    def _holder(self, pod: Pod) -> str:
        for plugin in self._engine.frameworks[pod.spec.scheduler_name].pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if status is not None:
                return f"{plugin.name}: {status.message}"
        return ""

    def _condition(self, name: str) -> Json | None:
        found = [self._engine.objects.get(version, name, self.said["namespace"]) for version in VERSIONS]
        for each in chain.from_iterable(group.status.conditions or () for group in found if group is not None):
            if each.type in TYPES:
                return {"status": each.status, "reason": each.reason, "message": each.message}
        return None


def victims_of(decision: GroupDecision) -> Iterator[Pod]:
    """The pods that are chosen to be evicted, in the order in which they are chosen."""
    for each in decision.members:
        if isinstance(each.decision, Unplaced):
            yield from each.decision.victims
    yield from decision.preemption.victims


def told(queued: QueuedPod, why: Verdict) -> Json:
    """What a member is told that goes back to the queue."""
    reason = "Unschedulable" if isinstance(why, Unplaced) else "SchedulerError"
    why = why if isinstance(why, Unplaced) else Unplaced(str(why))
    return {
        "name": queued.pod.name,
        "reason": reason,
        "message": why.message,
        "unschedulablePlugins": sorted(why.unschedulable_plugins),
        "pendingPlugins": sorted(why.pending_plugins),
        "nominatedNode": why.nominated_node_name,
    }


def _popped(queue: SchedulingQueue) -> Iterator[QueuedGroup]:
    """Pop all, and yield the groups."""
    while (entry := queue.pop_nowait()) is not None:
        if isinstance(entry, QueuedGroup):
            yield entry
