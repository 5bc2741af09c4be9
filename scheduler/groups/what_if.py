"""Tries the members of a group one after the other on the live tables: a what-if that is taken back as a whole.

    for each member   schedule ─► assume ─► reserve ─► PlacementFeasible: is the group complete? can it not be any more?
    at the end        take back: unreserve ─► forget, the last one first
                      leave:     unreserve ─► leave in the table, to be assumed for good

A member sees those before it on their nodes. One that fits nowhere is left out: the others may be enough. What is
assumed is taken back whatever a plugin raises.

Assumed members are assumed pods like others, which are not published: see `state/cache.py`. So the watch may go on
meanwhile. A member that is deleted or bound by others meanwhile is already where it belongs, and taking it back only
calls Unreserve. But no other decision may be made, as it would count the members: the loop sees to that.

Rule: podGroupSchedulingDefaultAlgorithm in pkg/scheduler/schedule_one_podgroup.go at v1.37.2.
"""

import logging
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Placed, refused_by
from scheduler.cycle.core import Core
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.steps import QUICK, Overtaken, Steps
from scheduler.framework.cycle_state import CycleState, GroupCycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.groups.pod_groups import GroupTree
from scheduler.framework.plugin import PlacementProgress
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status, unschedulable
from scheduler.groups.decision import NONE_PLACED, UNSCHEDULABLE_GROUP, GroupDecision, MemberOutcome
from scheduler.groups.topology.filling import Schedule
from scheduler.process.metrics import PLUGIN_METRICS_SAMPLE_PERCENT
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator

MAX_SCORES: Final = 1 << 21
"""Of nodes, kept for the first members of a group until all are decided about: 32 MB at most."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Search:
    """The search for nodes for the members of one group."""

    framework: Framework
    schedule: Schedule
    """Decides about one pod."""

    tree: GroupTree | None
    """The group; None if it is gone."""

    first: QueuedPod
    """The first pod that is tried with it."""

    layout: int | None
    """The layout of the table in which the rows are counted that `schedule` knows; None if it knows none."""


class Progress:
    """Whether a group is complete, while its members, or the groups that it consists of, are tried one by one."""

    def __init__(self, search: Search, remaining: int, scheduled: int) -> None:
        """`remaining`: how many parts have no node; `scheduled`: how many have."""
        self._framework, tree = search.framework, search.tree
        self._pod, self._state = search.first.pod, CycleState() if tree is None else tree.write(CycleState())
        self._remaining, self._scheduled = remaining, scheduled
        self.status = self._ask()

    def may_go_on(self) -> bool:
        return self.status is None or self.status.code is Code.WAIT

    def fail(self, error: SchedulerError) -> None:
        """One more was tried, and a plugin failed."""
        self.status = Status(Code.ERROR, (f"failed to schedule other pod from a pod group: {error}",))

    def note(self, *, is_placed: bool) -> None:
        """One more was tried."""
        self._remaining -= 1
        self._scheduled += is_placed
        self.status = self._ask()

    def end(self, placed: int) -> Status | None:
        """Return the answer after the last member: one of them has to be placed."""
        if self.status is None:
            return None if placed else NONE_PLACED
        return of_group(self.status) if self.may_go_on() else self.status

    def _ask(self) -> Status | None:
        progress = PlacementProgress(self._remaining, self._scheduled)
        try:
            return self._framework.run_placement_feasible(self._state, self._pod, progress)
        except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
            self._framework.faults.report(error, self._pod)
            return Status(Code.ERROR, (f"failed to evaluate placement feasibility: {as_scheduler_error(error)}",))


class KeptSpace:
    """The space that is kept on nodes for members that were not tried yet, in one what-if.

    A member that goes to a node where space is kept for another may have taken that space. If both ask for the same,
    the other gets the space kept for the first instead. If not, no other member has precedence on that node.
    """

    def __init__(self, nominator: Nominator, members: Iterable[QueuedPod]) -> None:
        self._nominator = nominator
        self._on_node: dict[str, dict[str, Pod]] = {}
        """Node → those for which space is kept there, by UID."""
        for queued in members:
            self._keep(queued.pod, nominator.kept_on(queued.pod.uid))

    def tried(self, pod: Pod, node_name: str) -> None:
        """A member was tried; `node_name`: the node that it has in the what-if, if any."""
        own = self._nominator.kept_on(pod.uid)
        self._on_node.get(own, {}).pop(pod.uid, None)
        others = self._on_node.get(node_name, {}) if node_name != own else {}
        alike = next((each for each in others.values() if each.requests == pod.requests), None)
        for each in (alike,) if alike is not None else tuple(others.values()):
            del others[each.uid]
            self._keep(each, own if alike is not None else "")

    def _keep(self, pod: Pod, node_name: str) -> None:
        if self._nominator.kept_on(pod.uid) != node_name:
            self._nominator.move(pod.uid, node_name)
        if node_name:
            self._on_node.setdefault(node_name, {})[pod.uid] = pod

    def end(self) -> None:
        """The what-if is over: all is kept as before."""
        self._nominator.move_back()


class Assumed:
    """The members that are assumed in one what-if."""

    def __init__(self, framework: Framework, cache: Cache, kept: KeptSpace | None = None) -> None:
        """`kept`: what is kept for them, if anything is kept for anyone."""
        self._framework = framework
        self._cache = cache
        self.kept = kept
        self._members: list[tuple[MemberOutcome, Pod]] = []

    def __len__(self) -> int:
        return len(self._members)

    def add(self, outcome: MemberOutcome) -> None:
        """Assume a member on its node and run Reserve; take it back at once if that refuses, or raises."""
        framework, state, node_name = self._framework, outcome.state, outcome.node_name
        pod = framework.bound(state, outcome.queued.pod, node_name)
        try:
            self._cache.assume(pod, is_what_if=True)
        except ValueError as error:
            raise SchedulerError(str(error)) from error
        self._members.append((outcome, pod))
        try:
            refusal = framework.run_reserve(state, pod, node_name)
        except BaseException:
            self.take_back()
            raise
        if refusal is not None:
            self.take_back()
            outcome.decision, outcome.node_name = refused_by(refusal), ""

    def leave(self) -> None:
        """Leave the last one in the table if no plugin can see that, else take it back.

        A plugin that is asked to reserve for it, or another one than ours at Permit, sees at its real turn only those
        that come before it.
        """
        outcome, _ = self._members[-1]
        can_see = outcome.state.reserving or not self._framework.is_permit_of_tree
        self._end(self._cache.forget if can_see else self._cache.leave)

    def take_back(self) -> None:
        """Take back the last one."""
        self._end(self._cache.forget)

    def _end(self, end: Callable[[Pod], object]) -> None:
        outcome, pod = self._members.pop()
        try:
            for problem in self._framework.run_unreserve(outcome.state, pod, pod.node_name):
                _logger.error("Unreserve failed", extra={"pod": str(pod), "err": str(problem)})
                self._framework.faults.report(problem, pod)
        finally:
            end(pod)

    def take_back_all(self) -> None:
        """Take back those that are left, whatever plugins raise."""
        if self.kept is not None:
            self.kept.end()
        if self._members:
            with ExitStack() as each:
                for _ in self._members:
                    each.callback(self.take_back)


class WhatIf:
    """Makes what-ifs. Its only state is the choice of the cycles that time their plugins."""

    def __init__(self, core: Core) -> None:
        self._cache = core.cache
        self._algorithm = core.algorithm
        self._nominator, self._kept = core.nominator, core.nominator.kept
        self._duration = core.metrics.scheduling_algorithm_duration
        self._sampler = random.Random(0)  # chooses the cycles that time their plugins; no decision depends on it

    def decide(self, search: Search, members: Sequence[QueuedPod], *, leaves: bool = False) -> Steps[GroupDecision]:
        """Decide about the members, one after the other. Raises Overtaken, between steps only.

        `leaves`: whether to leave those in the tables that are to be bound.
        """
        assumed = self.assumed(search.framework, members)
        try:
            decision = yield from self.decide_onto(assumed, search, members)
            end = assumed.leave if leaves and decision.status is None else assumed.take_back
            for left in reversed(range(len(assumed))):
                end()
                if left and not left % QUICK:
                    yield
            self.check(search)
        finally:
            assumed.take_back_all()
        return decision

    def assumed(self, framework: Framework, members: Sequence[QueuedPod]) -> Assumed:
        """Return what keeps the members that a what-if assumes: none so far."""
        return Assumed(framework, self._cache, KeptSpace(self._nominator, members) if self._kept else None)

    def decide_onto(self, assumed: Assumed, search: Search, members: Sequence[QueuedPod]) -> Steps[GroupDecision]:
        """Decide about the members on top of those that are `assumed`, and add those that get a node."""
        framework, placed = search.framework, 0
        scheduled = 0 if search.tree is None else search.tree.members.scheduled_count
        progress = Progress(search, len(members), scheduled)
        if not progress.may_go_on():
            return GroupDecision(status=of_group(progress.status))
        outcomes: list[MemberOutcome] = []
        for queued in members:
            if outcomes:
                yield
                self.check(search)
            outcome = self._decide_member(framework, queued, assumed, search.schedule)
            outcomes.append(outcome)
            if isinstance(outcome.decision, SchedulerError):
                progress.fail(outcome.decision)
                break
            placed += bool(outcome.node_name)
            progress.note(is_placed=bool(outcome.node_name))
            if not progress.may_go_on():
                break
        return GroupDecision(outcomes, progress.end(placed))

    def check(self, search: Search) -> None:
        """Raise Overtaken if rows are others now than those that the search knows."""
        if search.layout not in (None, self._cache.layouts):
            raise Overtaken

    def _decide_member(
        self, framework: Framework, queued: QueuedPod, assumed: Assumed, schedule: Schedule
    ) -> MemberOutcome:
        """Decide about a member, and add it to those that are assumed on their nodes."""
        started = time.perf_counter()
        state = GroupCycleState()
        state.record_plugin_metrics = self._sampler.randrange(100) < PLUGIN_METRICS_SAMPLE_PERCENT
        outcome = MemberOutcome(queued, state, SchedulerError("not decided"))
        try:
            self._schedule(outcome, schedule, started)
            self._keep_scores(outcome, len(assumed))
            if outcome.node_name:
                assumed.add(outcome)
        except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
            framework.faults.report(error, queued.pod)
            outcome.decision, outcome.node_name = as_scheduler_error(error), ""
        if assumed.kept is not None:
            assumed.kept.tried(queued.pod, outcome.node_name)
        outcome.seconds = time.perf_counter() - started
        return outcome

    def _schedule(self, outcome: MemberOutcome, schedule: Schedule, started: float) -> None:
        queued, state = outcome.queued, outcome.state
        if self._cache.table.is_broken:
            self._cache.mend()
        try:
            decision = schedule(state, queued.pod, queued.attempts)
        finally:
            self._duration.observe(time.perf_counter() - started)
        outcome.decision = decision
        outcome.node_name = decision.node_name if isinstance(decision, Placed) else ""

    def _keep_scores(self, outcome: MemberOutcome, number: int) -> None:
        """Let the scores be those of this decision when it is noted, after that about the whole group."""
        state, decision = outcome.state, outcome.decision
        if isinstance(decision, Placed) and state.scored is not None:
            fits = number * self._cache.table.size < MAX_SCORES
            state.scored = state.scored.kept(decision.row) if fits else None

    def fit_there(self, framework: Framework, outcomes: Sequence[MemberOutcome]) -> bool:
        """Return whether members that were placed together fit these nodes now, one after the other."""
        assumed = Assumed(framework, self._cache)
        try:
            for each in outcomes:
                only = np.zeros(self._cache.table.size, np.bool_)
                only[self._cache.table.row_of(each.node_name)] = True
                there = partial(self._algorithm.schedule, framework, runs_post_filter=False, placement=only)
                if not self._decide_member(framework, each.queued, assumed, there).is_placed:
                    return False
            return True
        finally:
            assumed.take_back_all()


def of_group(status: Status | None) -> Status | None:
    """Return the refusal of a group that is not complete."""
    if status is None or status.code is Code.ERROR:
        return status
    return unschedulable(UNSCHEDULABLE_GROUP, *status.reasons)
