"""Reserves nodes for the group that has waited longest in vain, so that small pods which keep coming cannot starve it.

            tried in vain                due: the longest wait of the highest priority
    (none) ──────────────► WAITING ──────────────────────────────────────────────────► RESERVED
                            ▲   ▲                                                       │
                            │   ├── replaced: a group of higher priority is due ◄───────┤  waits on as it did
                            │   └── given up: fits not even on empty nodes, or ◄────────┤  its wait begins again
                            │       nothing has come of it for too long                 │
    (none) ◄── placed, or gone: deleted, incomplete, contradicting itself, short of quota ◄─┤
    (none) ◄── turned off ◄─────────────────────────────────────────────────────────────┘

There is one reservation at a time; otherwise several groups would each hold a part of what they need. Every few seconds
its nodes are chosen again, as pods leave, nodes come and the group itself changes. Groups of kube-scheduler's rules get
none.

Reservations are not written anywhere. After a restart, or with another leader, a group has waited for as long as the
conditions of its pods say.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import counted, shortened
from scheduler.config.types import GroupBackfill, LoadmasterSettings
from scheduler.cycle.core import Core
from scheduler.cycle.failure import UNSCHEDULABLE
from scheduler.cycle.steps import Steps
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.groups.pod_groups import GroupKey, PodGroup
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.group_events import NodesReserved, ReservationEnded
from scheduler.groups.rejector_events import RESERVATION_EASED, RESERVATION_ENDED
from scheduler.groups.reservations.planning import Plan, Planner
from scheduler.groups.reservations.reservation import Reservation
from scheduler.groups.reservations.reserved_nodes import ReservedNodes
from scheduler.groups.reservations.run_times import NEVER, RunTimes
from scheduler.groups.topology.levels import TopologyLevels
from scheduler.process.instruments import Counter
from scheduler.process.time_slice import TimeSlice
from scheduler.runtime.framework import Framework
from scheduler.runtime.guards.plugin_faults import is_of_tree

PAUSE: Final = 5.0
"""Seconds between two looks, at least. An estimate is at most as old, and backfill allows for that."""

SHARE: Final = 0.05
"""Of the time, that looks may take: in a cluster in which they take long there are fewer."""

PATIENCE: Final = 600.0
"""Seconds that a reservation lasts without any progress while no announced end is ahead."""

RETRY_SECONDS: Final = 20.0
"""After which nodes are looked for again for a group that no reservation would help."""

MAX_TRIES: Final = 8
"""Groups that are planned for in one look, until one of them would fit."""

MAX_ASKED: Final = 8
"""Nodes of a plan about which plugins of others are asked."""

MAX_NAME: Final = 200
"""Characters of a group's name in what is said to other pods."""

MAX_NODES: Final = 5
"""Names of reserved nodes in a sentence."""

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Wait:
    """A group that waits."""

    since: float
    """When its wait for a reservation began, by the queue's clock."""

    not_before: float = 0.0
    """When it is considered again: no reservation would have helped it the last time."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """The group that nodes are reserved for, and how it gets on."""

    group: PodGroup
    plan: Plan
    since: float
    """When the first nodes were, by the queue's clock."""

    missing: int
    """The least number of pods that did not fit at any time."""

    progress: float
    """When that was so first, or when an announced end was ahead last."""


class _Candidate(NamedTuple):
    key: GroupKey
    group: PodGroup
    pod: Pod


class Reservations:
    """Keeps `ReservedNodes` up to date."""

    def __init__(
        self, core: Core, nodes: ReservedNodes, levels: TopologyLevels, groups: AdaptedGroups, outcomes: Counter
    ) -> None:
        """`outcomes` counts reservations by outcome."""
        self._table = core.cache.table
        self._algorithm = core.algorithm
        self._nodes = nodes
        self._levels = levels
        self._groups = groups
        self._frameworks = core.frameworks
        self._queue = core.queue
        self._events = core.writers.group_events
        self._outcomes = outcomes
        self._now = core.now
        self._stream = core.stream
        self.wall_clock: Callable[[], float] = time.time
        """Seconds since 1970, as the kubelets have it."""
        self._seconds = 0.0
        self._backfill = GroupBackfill.NEVER
        self._pause = PAUSE
        """Seconds until the next look."""
        self._waits: dict[GroupKey, _Wait] = {}
        self.reserved: Reserved | None = None
        """The group that nodes are reserved for."""
        self._spare: Mapping[tuple[str, str], int] = {}
        """The amounts that were free in addition to those that are kept, when these were looked at last."""

    def use(self, settings: LoadmasterSettings) -> None:
        """Go by these settings from now on."""
        self._seconds, self._backfill = settings.group_reservation_seconds, settings.group_backfill
        if not self._seconds:
            self._waits.clear()
            self._end("turned off")

    # What the cycle reports.

    def refused(self, group: PodGroup, pods: Collection[Pod]) -> None:
        """A group was tried in vain; `pods`: those that have no node."""
        self._groups.damaged.refused(group, partial(self._waited_before, pods))
        if self._seconds and group.is_ours and group.key not in self._waits and self._waiting(group.key) is not None:
            self._waits[group.key] = _Wait(self._now() - self._waited_before(pods))

    def placed(self, group: PodGroup) -> None:
        """A group has its nodes."""
        self._groups.damaged.forget(group)
        self._waits.pop(group.key, None)
        if self.reserved is not None and self.reserved.group.key == group.key:
            self._end("placed")

    def _waited_before(self, pods: Iterable[Pod]) -> float:
        """Return for how many seconds all of these pods have been refused already, as their conditions say.

        So it is after a restart. Without such a condition, a pod was never refused.
        """
        now = self.wall_clock()
        return max(0.0, min((now - _refused_since(pod, now) for pod in pods), default=0.0))

    # What is done now and then.

    async def run(self, ready: Callable[[], Awaitable[None]], sleep: Callable[[float], Awaitable[None]]) -> None:
        """Look for ever; `ready` returns when decisions may be made."""
        while True:
            await sleep(self._pause)
            if self._waits or self.reserved is not None:
                await ready()
                self._pause = max(PAUSE, await self._look_in_slices() / SHARE)

    async def _look_in_slices(self) -> float:
        """Look, while other tasks run now and then; return the seconds that it took without them."""
        time_slice, worked, began = TimeSlice(), 0.0, time.perf_counter()
        for _ in self.look():
            if time_slice.is_over:
                worked += time.perf_counter() - began
                await time_slice.give_way()
                began = time.perf_counter()
        return worked + time.perf_counter() - began

    def look(self) -> Steps[None]:
        """Choose the group and its nodes by what is known now, in steps between which anything may happen."""
        for _ in range(MAX_TRIES):
            candidate, reserved = self._candidate(), self.reserved
            if reserved is not None and (candidate is None or reserved.group.key not in self._waits):
                return self._end("gone")
            if candidate is None or (yield from self._reserve(candidate)):
                return

    def _reserve(self, candidate: _Candidate) -> Steps[bool]:
        """Reserve nodes for a group, or choose them again; return whether that is all for now.

        It is when a reservation has ended: the pods that it refused are tried before another one is made.
        """
        framework = self._frameworks[candidate.pod.spec.scheduler_name]
        try:
            plan = yield from self._plan(framework, candidate)
            is_refused = plan is not None and self._is_refused(framework, candidate.pod, plan)
        except Exception as error:
            framework.faults.report(error, candidate.pod)
            if not isinstance(error, PluginError):
                _logger.exception("Choosing nodes for a pod group failed", extra={"podGroup": str(candidate.group)})
            return candidate.key in self._waits and self._give_up(candidate, "choosing nodes for it failed")
        if candidate.key not in self._waits:
            return False  # placed meanwhile, or turned off
        if plan is None:
            return self._give_up(candidate, "it would not fit on any nodes, were they empty")
        if is_refused:
            return self._give_up(candidate, "another plugin refuses its pods on these nodes")
        if self.reserved is None or self.reserved.group.key != candidate.key:
            if plan.fitting == plan.needed:
                return self._give_up(candidate, "it lacks no nodes")
            self._end("replaced")
        reserved = self._after(candidate.group, plan)
        if self._now() > reserved.progress + PATIENCE:
            return self._give_up(candidate, f"nothing has come of it for {PATIENCE / 60:.0f} minutes")
        self._set(reserved, candidate.pod)
        return True

    def _candidate(self) -> _Candidate | None:
        """Return the group that nodes are to be reserved for; forget those that do not wait any more."""
        due = self._now() - self._seconds
        current = None if self.reserved is None else self.reserved.group.key
        best: tuple[tuple[int, bool, float], _Candidate] | None = None
        for key, wait in tuple(self._waits.items()):
            found = self._waiting(key)
            if found is None:
                del self._waits[key]
            elif wait.since <= due and wait.not_before <= self._now():
                rank = found.group.priority, key == current, -wait.since
                if (best is None or rank > best[0]) and not self._lacks_quota(found):
                    best = rank, found
        return None if best is None else best[1]

    def _waiting(self, key: GroupKey) -> _Candidate | None:
        """Return a group with one of its pods if it lacks nodes, and nothing else."""
        pods = self._groups.members_by_group.some_unscheduled(key, 1)
        group = self._groups.of(pods[0]) if pods else None
        if group is None or group.problem or pods[0].spec.scheduler_name not in self._frameworks:
            return None
        members = self._groups.members(pods[0])
        if members.scheduled_count >= group.minimum or members.ready_count < max(group.minimum, members.count):
            return None
        return _Candidate(key, group, pods[0])

    def _lacks_quota(self, found: _Candidate) -> bool:
        """Return whether a group waits for its share: nodes would not help it."""
        shares = self._frameworks[found.pod.spec.scheduler_name].handle.shares
        return shares.refusal_of_group(found.group, self._groups.members(found.pod)) is not None

    def _plan(self, framework: Framework, candidate: _Candidate) -> Steps[Plan | None]:
        members = self._groups.members(candidate.pod)
        pods = [pod for pod in members.unscheduled if not pod.spec.scheduling_gates]
        if not pods:
            return None
        outlook = yield from self._levels.outlook(framework, candidate.group, pods)
        run_times = RunTimes(self._groups, trusts_promises=self._trusts_promises)
        planner = Planner(self._table, run_times, self.wall_clock())
        return (yield from planner.plan(outlook, pods, members.scheduled))

    def _is_refused(self, framework: Framework, pod: Pod, plan: Plan) -> bool:
        """Return whether plugins of others refuse a pod on the first of these nodes, were they empty."""
        asked = {plugin.name for plugin in framework.plugins.at["filter"] if not is_of_tree(type(plugin))}
        if not asked:
            return False
        state = GroupCycleState()
        self._algorithm.search(framework, state, pod, nominated_first=False)
        for name in islice(plan.kept, MAX_ASKED):
            row = self._table.row_of(name)
            if row is not None:
                with self._table.what_if(row, remove=tuple(self._table.pods_on(name))):
                    if framework.filtering.run_one(state, pod, row, only=asked) is None:
                        return False
        return True

    def _after(self, group: PodGroup, plan: Plan) -> Reserved:
        """Return how the group gets on, with its new plan."""
        now, before, missing = self._now(), self.reserved, plan.needed - plan.fitting
        if before is None:
            return Reserved(group, plan, now, missing, now)
        # Only less than ever before is progress, or a group that changes all the time would keep its nodes for ever.
        # An announced end that is ahead is waited for; after it, patience counts.
        is_progress = missing < before.missing or 0 < plan.seconds < NEVER
        missing, progress = min(missing, before.missing), now if is_progress else before.progress
        return replace(before, group=group, plan=plan, missing=missing, progress=progress)

    def _set(self, reserved: Reserved, pod: Pod) -> None:
        before, was = self.reserved, self._nodes.reservation
        made = self._reservation(reserved)
        self.reserved = reserved
        if made != was:
            self._nodes.reserve(made)
            if NodesReserved in self._stream.listeners:
                self._stream.publish(NodesReserved(made))
        table, spare = self._table, self._spare
        self._spare = made.spare(table)
        if before is None:
            _logger.info("Nodes are reserved for a pod group", extra=_fields(reserved))
            self._events.group_event(reserved.group, pod, "Normal", "NodesReserved", "Scheduling", self.text(reserved))
        elif was is not None and (
            not set(was.nodes) <= set(made.nodes)
            or made.backfill_seconds > was.backfill_seconds
            or any(amount > spare.get(place, 0) for place, amount in self._spare.items())
        ):
            self._queue.move_all(RESERVATION_EASED, None, None)

    def _reservation(self, reserved: Reserved) -> Reservation:
        group, plan = reserved.group, reserved.plan
        resources = sorted({resource for kept in plan.kept.values() for resource in kept})
        seconds = 0.0 if plan.seconds == NEVER or self._backfill is GroupBackfill.NEVER else plan.seconds
        return Reservation(
            group.key,
            group.priority,
            tuple(plan.kept),
            {resource: tuple([kept.get(resource, 0) for kept in plan.kept.values()]) for resource in resources},
            max(0.0, seconds - self._pause),
            self._trusts_promises,
            f'node(s) reserved for the pod group "{shortened(str(group), MAX_NAME)}" {self._until(plan)}',
        )

    @property
    def _trusts_promises(self) -> bool:
        return self._backfill is not GroupBackfill.ENFORCED

    def _give_up(self, candidate: _Candidate, why: str) -> bool:
        """Let others have nodes reserved; return whether this group had. Then it waits as one that was refused now."""
        if self.reserved is None or self.reserved.group.key != candidate.key:
            self._waits[candidate.key].not_before = self._now() + RETRY_SECONDS
            return False
        self._waits[candidate.key].since = self._now()
        fields = {**_fields(self.reserved), "reason": why}
        _logger.info("Nodes are no longer reserved for a pod group, which does not fit", extra=fields)
        note = f"nodes are no longer reserved for it: {why}"
        self._events.group_event(candidate.group, candidate.pod, "Warning", "ReservationGivenUp", "Scheduling", note)
        self._end("given up")
        return True

    def _end(self, outcome: str) -> None:
        """End the reservation, if there is one, and wake those that it has refused."""
        reserved, self.reserved = self.reserved, None
        if reserved is None:
            return
        self._nodes.reserve(None)
        self._spare = {}
        self._outcomes.labels(outcome).inc()
        if ReservationEnded in self._stream.listeners:
            self._stream.publish(ReservationEnded())
        self._queue.move_all(RESERVATION_ENDED, None, None)

    # What is said of it.

    def text(self, reserved: Reserved) -> str:
        """Return a sentence about the nodes that are reserved for a group, and what it waits for there."""
        plan, names = reserved.plan, tuple(reserved.plan.kept)
        more = f" and {len(names) - MAX_NODES:,} more" if len(names) > MAX_NODES else ""
        since = _to_the_minute(self.wall_clock() - (self._now() - reserved.since))
        text = (
            f"{counted(len(names), 'node')} reserved for it since {since} ({', '.join(names[:MAX_NODES])}{more}); "
            f"{plan.fitting:,} of {counted(plan.needed, 'pod')} would fit there now"
        )
        if plan.seconds == NEVER:
            late = f"; past the time that they were expected to run: {', '.join(plan.late)}" if plan.late else ""
            they_end = "it ends" if plan.leaving == 1 else "they end"
            leaving = f"{counted(plan.leaving, 'pod')} of which nobody knows when {they_end}"
            return f"{text}, the others once there is space: it may take the end of {leaving}{late}"
        return f"{text}, all of them {self._until(plan).removeprefix('until ')}" if plan.seconds else text

    def _until(self, plan: Plan) -> str:
        if plan.seconds == NEVER or not plan.seconds:
            return "until it fits"
        return f"until about {_to_the_minute(self.wall_clock() + plan.seconds)}"


def _to_the_minute(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds + 30, UTC):%Y-%m-%d %H:%M} UTC"


def _refused_since(pod: Pod, now: float) -> float:
    """Return when a pod was refused first, as its condition says, in seconds since 1970; `now` if it says nothing."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.reason == UNSCHEDULABLE and condition.last_transition_time:
            try:
                return datetime.fromisoformat(condition.last_transition_time).timestamp()
            except ValueError:
                return now
    return now


def _fields(reserved: Reserved) -> dict[str, object]:
    plan = reserved.plan
    seconds = None if plan.seconds == NEVER else round(plan.seconds)
    return {"podGroup": str(reserved.group), "nodes": len(plan.kept), "fitting": plan.fitting, "seconds": seconds}
