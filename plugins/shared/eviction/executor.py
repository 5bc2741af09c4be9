"""Carries preemptions out in the background: evicts victims, and clears lower nominations.

    start ─► PREEMPTING ─► victims but the last, all at once ─► the last victim ─► (nothing)
                 └── failure, or the last victim is already gone ──► (nothing), and the preemptor is tried again at once

A preemptor is kept out of activeQ meanwhile: until its victims are on their way it would only choose them again. It may
come back once its last victim is going, for what brings it back is that deletion's event. If that came before the last
victim was evicted, it did not let the preemptor through, and no other event may. A preemptor that is back may begin
another preemption while the last eviction is still repeated; then the former one has no say any more.

Rule: framework/preemption/executor.go at v1.37.2.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from plugins.shared.eviction.budgets import disruptions_of
from scheduler import framework as fw
from scheduler.framework.preemption.victims import group_that_goes

_logger = logging.getLogger(__name__)

SUCCESS: Final = "success"
ERROR: Final = "error"

MAX_SECONDS: Final = 900.0
"""For one preemption, which is retried within for a few minutes a victim; then the preemptor is tried again."""


CLUSTER: Final = "cluster"
"""In the place of a node's name for a group, whose victims are on any nodes."""


@dataclass(frozen=True, slots=True)
class Preemptor:
    """For whom pods are evicted: a pod, or a group of pods."""

    kind: str
    """As kube-scheduler names it: `pod`, `podgroup` or `compositepodgroup`."""
    key: fw.EntityKey
    uid: str
    priority: int
    name: str
    pods: Sequence[fw.Pod]
    """The pod, or those of the group that are without a node."""

    @property
    def is_group(self) -> bool:
        return self.kind != "pod"

    @classmethod
    def of_pod(cls, pod: fw.Pod) -> "Preemptor":
        return cls("pod", pod.uid, pod.uid, pod.priority, str(pod), (pod,))

    @classmethod
    def of_group(cls, group: fw.PodGroup, pods: Sequence[fw.Pod]) -> "Preemptor":
        return cls(
            "compositepodgroup" if group.minimum_groups else "podgroup",
            group.key,
            group.uid,
            group.priority,
            str(group),
            tuple(pods),
        )


@dataclass(slots=True, eq=False)
class _Preemption:
    """A preemption that is under way."""

    preemptor: Preemptor
    node_name: str
    node: fw.Node | None
    """As it was at the beginning."""
    last_victim: str = ""
    """Its UID; empty as long as there are more."""
    is_known_gone: bool = False
    """Whether the last victim was gone, or had lost its node, before it was evicted."""
    is_held_back: bool = False
    """Whether the preemptor was refused meanwhile by a plugin that registers for no deletion."""


class Executor:
    """The preemptions of one profile that are under way."""

    def __init__(self, handle: fw.Handle, plugin: str) -> None:
        self._handle = handle
        self._plugin = plugin
        self._newest: dict[fw.EntityKey, _Preemption] = {}
        """Preemptor → the last preemption that it began, if that is under way."""
        self.group_count = 0
        """How many of them are for groups."""
        self._disruptions = disruptions_of(handle)
        self._jobs = handle.tasks.jobs("preemption", MAX_SECONDS)

    def is_running(self, key: fw.EntityKey) -> bool:
        """Return whether a pod, or group, has to wait for its own preemption."""
        preemption = self._newest.get(key)
        if preemption is None:
            return False
        victim = self._handle.pods.get(preemption.last_victim)
        return not preemption.last_victim or (victim is not None and not victim.is_deleting)

    def hold_back(self, key: fw.EntityKey) -> bool:
        """Return the same; if a pod has to wait, it is tried when its victims are on their way, without any event."""
        if not self.is_running(key):
            return False
        self._newest[key].is_held_back = True
        return True

    def start(self, preemptor: Preemptor, node_name: str, victims: fw.Victims, *, keeps: bool = False) -> None:
        """Evict the victims, in the background, except those that are already being deleted.

        `keeps`: whether what they free is kept for the preemptor, whatever the priority of others.
        """
        self._handle.preemptions.begin(preemptor.key, preemptor.pods, victims.pods, keeps=keeps)
        self._observe(preemptor, victims)
        staying = [victim for victim in victims.pods if not victim.is_deleting]
        if not staying:
            return
        self._disruptions.add(staying)
        if preemptor.key not in self._newest:
            self.group_count += preemptor.is_group
        preemption = self._newest[preemptor.key] = _Preemption(preemptor, node_name, self._node(node_name))
        self._jobs.start(f"preempt for {preemptor.name}", self._run(preemption, staying))

    def _observe(self, preemptor: Preemptor, victims: fw.Victims) -> None:
        """Rule: observeVictims; that of a group are counted with its attempts."""
        metrics, groups = self._handle.metrics, self._handle.pod_groups
        if not preemptor.is_group:
            metrics.preemption_victims.observe(len(victims.pods))
        elif together := {group.uid for pod in victims.pods if (group := group_that_goes(groups, pod)) is not None}:
            metrics.preemption.workload_disruptions.labels(preemptor.kind).observe(len(together))
        if victims.violations:
            metrics.preemption.pdb_violations.labels(preemptor.kind).inc(victims.violations)

    async def _run(self, preemption: _Preemption, victims: Sequence[fw.Pod]) -> None:
        started = time.perf_counter()
        done = False
        try:
            done = await self._make_room(preemption, victims)
        finally:
            if not done:
                self._disruptions.withdraw(victims)
            self._end(preemption, started, done=done)

    def _end(self, preemption: _Preemption, started: float, *, done: bool) -> None:
        key = preemption.preemptor.key
        if self._newest.get(key) is preemption:
            del self._newest[key]
            self.group_count -= preemption.preemptor.is_group
            is_other_node = self._node(preemption.node_name) is not preemption.node
            if not done:
                self._handle.preemptions.withdraw(key, victims_stay=True)
            if not done or preemption.is_known_gone or preemption.is_held_back or is_other_node:
                # No event may come that would bring it back.
                uids = [pod.uid for pod in preemption.preemptor.pods]
                self._handle.activator.activate(uids)
        result = SUCCESS if done else ERROR
        metrics, seconds = self._handle.metrics, time.perf_counter() - started
        metrics.preemption_goroutines_execution.labels(result).inc()
        metrics.preemption_goroutines_duration.labels(result).observe(seconds)
        metrics.preemption.execution_duration.labels(preemption.preemptor.kind, result).observe(seconds)

    def _node(self, name: str) -> fw.Node | None:
        row = self._handle.nodes.row_of(name)
        return None if row is None else self._handle.nodes.info(row).node

    async def _make_room(self, preemption: _Preemption, victims: Sequence[fw.Pod]) -> bool:
        preemptor, node_name = preemption.preemptor, preemption.node_name
        nominator = self._handle.nominator
        for pod in nominator.nominated_pods(node_name):
            # They may not fit any more; without their nomination they look for another place at once.
            if pod.priority < preemptor.priority and pod.nominated_node_name and pod.uid not in nominator.kept:
                self._handle.evictor.clear_nomination(pod)
        *others, last = victims
        if not all(await fw.together(*(self._preempt(preemptor, node_name, victim) for victim in others))):
            return False
        # Its deletion may be known before we hear that it succeeded: from here on `is_running` looks at the pod.
        preemption.last_victim = last.uid
        preemption.is_known_gone = last.uid not in self._handle.pods or self._handle.preemptions.has_left(last.uid)
        return await self._preempt(preemptor, node_name, last)

    async def _preempt(self, preemptor: Preemptor, node_name: str, victim: fw.Pod) -> bool:
        """Evict one victim, if it still has its node; False if that failed."""
        if self._handle.preemptions.has_left(victim.uid):
            self._disruptions.withdraw([victim])
            return True
        fields = {"preemptor": preemptor.name, "victim": str(victim), "node": node_name}
        note = f"Preempted by {preemptor.kind} {preemptor.uid} on node {node_name}"
        if self._cancel_binding(victim):
            note += " (in kube-scheduler memory)."
            self._disruptions.withdraw([victim])
        else:
            profile = preemptor.pods[0].spec.scheduler_name
            message = f"{profile}: preempting to accommodate a higher priority {preemptor.kind}"
            try:
                existed = await self._handle.evictor.evict(victim, preemptor.pods[0], message)
            except Exception as error:  # noqa: BLE001  whatever it is, the preemptor must not wait for ever
                _logger.error("Tried to preempt pod", extra={**fields, "err": str(error) or type(error).__name__})
                return False
            if not existed:
                self._disruptions.withdraw([victim])
                _logger.info("Victim pod is already deleted", extra=fields)
                return True
        _logger.info("Preemptor pod preempted victim pod", extra=fields)
        self._handle.events.event(victim, "Normal", "Preempted", "Preempting", note)
        return True

    def _cancel_binding(self, victim: fw.Pod) -> bool:
        """End a binding that is on hold or being prepared: the pod goes back to the queue, nothing is deleted."""
        waiting = self._handle.waiting_pods.get(victim.uid)
        if waiting is not None:
            return waiting.preempt(self._plugin, "preempted")
        return self._handle.pods_in_pre_bind.cancel(victim.uid, f"preempted by {self._plugin}")
