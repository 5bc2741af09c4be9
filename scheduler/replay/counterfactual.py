"""The state that another configuration would have reached: its own placements count for its next decision.

    pods, nodes and objects come and go as in the trace
        an attempt of the trace ─┬─ placed ─► counts on the node that this configuration chooses
                                 └─ not ────► WAITING ─► tried again after a deletion or change, and at the end

Victims of preemption go at once. Consequences of the recorded decisions, such as the deletion of a victim or the volume
of a claim, are applied as well: the longer the trace, the rougher the answer.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any, Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.config.types import Config
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.binding import BindingCycle
from scheduler.engine.engine import Engine
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError, SchedulerError
from scheduler.framework.queued import QueuedPod
from scheduler.process.progress import SILENT, Progress
from scheduler.replay.player import Compare, Player
from scheduler.replay.replayed_groups import decided_together
from scheduler.replay.trace import lines
from scheduler.replay.trace.lines import Line
from scheduler.replay.trace.trace_file import Trace
from scheduler.replay.trace.trace_time import TraceClock, turns
from scheduler.runtime.framework import Framework
from scheduler.runtime.registry import Registry

TRIES: Final = 2
"""Of one attempt: the second after preemption has evicted pods."""

RETRY_MILLISECONDS: Final = 1_000
"""Of the trace's time, between two tries of the pods that wait: the shortest backoff. It bounds the time that a trace
takes in which many pods wait."""


class Counterfactual(Player):
    """Plays a trace for a configuration that decides for itself. If it has one profile, that takes all pods."""

    def __init__(
        self, trace: Trace, clock: TraceClock, config: Config, registry: Registry, progress: Progress = SILENT
    ) -> None:
        """Raises ConfigError as Player does."""
        super().__init__(trace, clock, config, registry, evictor=self)
        self._progress = progress
        self._waiting: dict[str, tuple[Framework, Pod]] = {}
        """UID → pods that found no node."""
        self._together: dict[str, tuple[str, ...]] = {}
        """UID → those of the pods that were tried together with it."""
        self._own: dict[str, str] = {}
        """UID → node of the pods that this configuration has placed."""
        self._numbers: dict[str, int] = {}
        """UID → number of its latest attempt."""
        self._has_changed = False
        """Whether a deletion or change came since the waiting pods were tried."""
        self._retried_at = 0
        """When that was, in milliseconds of the trace's time."""
        self._evicted: set[str] = set()

    async def run(self) -> None:
        """Play the whole trace, then try the pods that wait once more."""
        await self.play(lambda _attempt, _replayed: None)
        await self._try_waiting()

    @property
    def evicted(self) -> int:
        return len(self._evicted)

    # --- framework.handle.Evictor ---

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Remove a pod at once; False if it is gone already."""
        existed = self.engine.pods.pop(victim.uid, None) is not None
        self._forget(victim.uid)
        self._evicted.add(victim.uid)
        return existed

    def clear_nomination(self, pod: Pod) -> None: ...

    # --- lines of the trace ---

    async def _play(self, line: Line, compare: Compare) -> None:
        match line:
            case lines.Decide():
                await self._first_try(line.profile, [(line.uid, line.attempt)], lambda _: self._pod_of(line))
            case lines.DecideGroup():
                await self._first_try(line.profile, line.members, lambda uid: self._member(line, uid))
            case lines.Count() if line.uid in self._own:
                self.engine.cache.confirm(self._pod_of(line).bound_to(self._own[line.uid]))
            case lines.Count() if line.uid in self._waiting or line.uid in self._evicted:
                pass
            case lines.Count() | lines.SetNode():
                await super()._play(line, compare)
                self._has_changed = True
            case lines.RemovePod():
                await super()._play(line, compare)
                self._forget(line.uid)
            case lines.Nominate() if self.begun_at:
                pass
            case (
                lines.Uncount() | lines.EndNomination() | lines.AskExtenders() | lines.Decided() | lines.Assume()
                | lines.PreBind() | lines.DecideMember() | lines.GroupSteps() | lines.Bound() | lines.Undo()
                | lines.Answer() | lines.Preempt() | lines.Reserve() | lines.EndReservation()
            ):  # fmt: skip
                pass  # consequences of the recorded decisions
            case _:
                await super()._play(line, compare)

    async def _first_try(self, profile: str, attempts: Sequence[tuple[str, int]], pod_of: Callable[[str], Pod]) -> None:
        """Try a pod, or the pods of a group together; `attempts`: UIDs and numbers."""
        self._progress.done += len(attempts)
        new = [each for each in attempts if each[0] not in self._evicted and self.engine.cache.get(each[0]) is None]
        if not new:
            return
        framework = self._profile(profile)
        for uid, number in new:
            self._numbers[uid] = number - 1
            self._waiting[uid] = framework, pod_of(uid)
            if len(attempts) > 1 and self.engine.pod_groups is not None:
                self._together[uid] = tuple([member for member, _ in new])
        await self._try(new[0][0])
        if self._has_changed and self.clock.milliseconds >= self._retried_at + RETRY_MILLISECONDS:
            await self._try_waiting()

    def _profile(self, name: str) -> Framework:
        frameworks = self.engine.frameworks
        if name not in frameworks and len(frameworks) == 1:
            return next(iter(frameworks.values()))
        return super()._profile(name)

    def _set_pod(self, pod: Pod) -> None:
        """Show plugins a pod on the node that this configuration chose, not on the recorded one."""
        uid = pod.uid
        if uid in self._own:
            super()._set_pod(pod.bound_to(self._own[uid]))
        elif uid not in self._evicted and not (uid in self._waiting and pod.node_name):
            super()._set_pod(pod)

    # --- attempts ---

    async def _try_waiting(self) -> None:
        self._has_changed, self._retried_at = False, self.clock.milliseconds
        tried = set[str]()
        for uid in tuple(self._waiting):
            if uid not in tried:
                tried.update(self._together.get(uid, ()))
                await self._try(uid)

    async def _try(self, uid: str) -> None:
        for _ in range(TRIES):
            found = self._waiting.get(uid)
            if found is None:
                return
            together = [self._waiting[other][1] for other in self._together.get(uid, ()) if other in self._waiting]
            if not (self._place_group(found[0], together) if together else self._place(*found)):
                return
            await turns()  # the victims go

    def _place(self, framework: Framework, pod: Pod) -> bool:
        """Try to place a pod; True if pods are evicted for it."""
        state = CycleState()
        try:
            decision = self.engine.algorithm.schedule(framework, state, pod, self._next_number(pod))
        except Exception:  # noqa: BLE001  a plugin's fault: the pod waits
            return False
        return self._settle(framework, state, pod, decision)

    def _place_group(self, framework: Framework, pods: Sequence[Pod]) -> bool:
        """Try to place pods together; True if pods are evicted for them."""
        members = [QueuedPod(pod, 0.0, self._next_number(pod)) for pod in pods]
        verdicts = decided_together(self.engine, framework, members)
        evicts = False
        for pod in pods:
            state, verdict = verdicts[pod.uid]
            if not isinstance(verdict, SchedulerError):
                evicts |= self._settle(framework, state, pod, verdict)
        return evicts

    def _next_number(self, pod: Pod) -> int:
        number = self._numbers[pod.uid] = self._numbers.get(pod.uid, 0) + 1
        return number

    def _settle(self, framework: Framework, state: CycleState, pod: Pod, decision: Placed | Unplaced) -> bool:
        """Let a decision take effect; True if pods are evicted for it."""
        engine = self.engine
        if isinstance(decision, Unplaced):
            engine.nominator.add(pod, decision.nominated_node_name)
            return bool(decision.nominated_node_name)
        try:
            placed = framework.bound(state, pod, decision.node_name)
        except PluginError:
            return False
        engine.cache.assume(placed)
        engine.nominator.delete(pod.uid)
        if _is_reserved(BindingCycle(framework, state, placed, placed.node_name)):
            self._own[pod.uid] = decision.node_name
            del self._waiting[pod.uid]
        else:
            engine.cache.forget(placed)
        return False

    def _forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._together.pop(uid, None)
        self._own.pop(uid, None)
        self.engine.nominator.delete(uid)
        self.engine.cache.remove(uid)
        self._has_changed = True


def _is_reserved(binding: BindingCycle) -> bool:
    try:
        if binding.reserve() is None:
            return True
    except Exception:  # noqa: BLE001  a plugin's fault: the pod waits
        pass
    binding.unreserve()
    return False


def utilisation(engine: Engine, profiles: Container[str]) -> dict[str, Any]:
    """Return {"pods", "pending", "nodes", "nodesUsed", "cpu": {"requested", "allocatable", "ofUsed"}, "memory": …}.

    cpu in thousandths of a core, memory in bytes; `ofUsed`: allocatable of nodes that have pods. `profiles`: whose pods
    are pending if they have no node.
    """
    table = engine.cache.table
    in_use = table.in_use
    used = in_use & (table.pod_count > 0)
    pending = sum(
        pod.spec.scheduler_name in profiles and not pod.is_deleting and engine.cache.get(pod.uid) is None
        for pod in engine.pods.values()
    )
    found: dict[str, Any] = {
        "pods": int(table.pod_count[in_use].sum()),
        "pending": pending,
        "nodes": table.count,
        "nodesUsed": int(np.count_nonzero(used)),
    }
    for resource in ("cpu", "memory"):
        allocatable = table.allocatable(resource)
        found[resource] = {
            "requested": int(table.requested(resource)[in_use].sum()),
            "allocatable": int(allocatable[in_use].sum()),
            "ofUsed": int(allocatable[used].sum()),
        }
    return found
