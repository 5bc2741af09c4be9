"""Decides about a group of pods at once: a what-if on the live tables, all of which is taken back.

    for each member:  schedule ─► assume ─► reserve ─► PlacementFeasible: is the group complete? can it not be any more?
    at the end:       unreserve, forget, in reverse order

A member sees those before it on their nodes. One that fits nowhere is left out: the others may be enough. What is only
assumed is taken back whatever a plugin raises.

A decision about thousands of pods takes a second, so it is made in steps, of a member each, and the event loop has its
turn every few milliseconds. It is sound all the same:

- No other decision is made meanwhile: the loop decides about nobody else, and an explanation or a what-if waits
  (`Pauses.ready`).
- What is assumed stays so between the steps, and to everyone else is what every pod is whose binding is under way:
  watch, bindings that fail, comparison with the API server and a rebuilt table can deal with it (`assumed.py`).
- Each member is decided about and assumed within one step, on the tables of that moment. kube-scheduler decides about
  all on those of the beginning.
- What others do meanwhile to a node that was chosen is looked at in the end: do the members fit it still, as far as
  spec and node alone say? If not, all is decided again (`Overtaken`), after a few times in one go. So it is if a node
  comes or goes while rows are named by a placement. What they do while members are bound, is looked at before each
  binding, as for every pod (`last_look.py`).
- A member that is deleted or bound by others meanwhile is left out when the decision takes effect (`cycle.py`).

The victims of a preemption for a group are chosen in steps, too, if its pods are alike: see `counting.py`. If they are
not, pods of others are as if gone meanwhile, so that is done in one go (`preemption.py`).

With placements, this is done in each of them: see `placements.py`. With a level of a topology, in the domains that may
hold the group: see `topology/levels.py`.

Rule: podGroupSchedulingDefaultAlgorithm in pkg/scheduler/schedule_one_podgroup.go at v1.37.2.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import numpy as np

from scheduler.api.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING, COSCHEDULING
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.core import Core
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.steps import MAX_OVERTAKEN, QUICK, Overtaken, Steps, in_one_go
from scheduler.framework.columns import BoolColumn
from scheduler.framework.cycle_state import CycleState, GroupCycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.plugin import PlacementProgress
from scheduler.framework.pod_groups import GroupMembers, PodGroup
from scheduler.framework.queued import QueuedPod
from scheduler.framework.shares import IS_CHARGED
from scheduler.framework.status import Code, Status, unresolvable, unschedulable
from scheduler.groups.amounts import demand_of, total_of
from scheduler.groups.assumed import AssumedMembers, all_fit_still
from scheduler.groups.decision import NONE_PLACED, UNSCHEDULABLE_GROUP, GroupDecision, MemberOutcome
from scheduler.groups.placements import decide_among_placements
from scheduler.groups.preemption import Trials, post_filter
from scheduler.groups.reservations.reserved_nodes import ReservedNodes
from scheduler.groups.space import may_have_space, resource_gap
from scheduler.groups.topology.filling import Filling, Schedule
from scheduler.groups.topology.levels import TopologyLevels
from scheduler.groups.topology.ranks import rank_of
from scheduler.process.metrics import PLUGIN_METRICS_SAMPLE_PERCENT, PlacementMetrics
from scheduler.runtime.framework import Framework
from scheduler.state.node_table import NodeTable

MAX_SCORES: Final = 1 << 21
"""Of nodes, kept for the first members of a group until all are decided about: 32 MB at most."""

_logger = logging.getLogger(__name__)


class PodGroupAlgorithm:
    """Decides about groups. Has no state of its own but the choice of the cycles that time their plugins."""

    def __init__(
        self, core: Core, levels: TopologyLevels, reserved: ReservedNodes, placements: PlacementMetrics | None
    ) -> None:
        """`levels`: places groups that name a level of a topology.

        `placements`: the metrics of those in which groups are tried; None if plugins are not asked for any.
        """
        self._algorithm = core.algorithm
        self._levels = levels
        self._reserved = reserved
        self._placements = placements
        self._cache = core.cache
        self._nominator = core.nominator
        self._duration = core.metrics.scheduling_algorithm_duration
        self._sampler = random.Random(0)  # chooses the cycles that time their plugins; no decision depends on it

    def decide(self, framework: Framework, members: Sequence[QueuedPod]) -> GroupDecision:
        """Decide about the members of one group, in this order. Tables are as before afterwards. Raises nothing."""
        return in_one_go(self.decide_in_steps(framework, members))

    def decide_in_steps(self, framework: Framework, members: Sequence[QueuedPod]) -> Steps[GroupDecision]:
        """The same, with other tasks between the steps, who may change all but what is assumed here."""
        try:
            return (yield from self.decide_and_leave(framework, members))
        finally:
            self.forget_left()

    def forget_left(self) -> None:
        """Forget those that `decide_and_leave` has left in the tables and that were not assumed since."""
        self._cache.forget_left()

    def decide_and_leave(self, framework: Framework, members: Sequence[QueuedPod]) -> Steps[GroupDecision]:
        """The same, and leave those in the tables that are to be bound: they are assumed for good at less cost."""
        with self._without_nominations(members):
            began = time.perf_counter()
            decision = yield from self._decide(framework, members)
            decision.seconds = time.perf_counter() - began
            if decision.code is Code.UNSCHEDULABLE:
                again = partial(self.simulate, framework, members, is_charged=bool(decision.refused_by))
                pods, reserved = [queued.pod for queued in members], self._reserved.reservation
                there = partial(self.fit_there, framework)
                yield from post_filter(framework, decision, pods, self._cache, reserved, Trials(again, there))
            return decision

    def may_fit(self, framework: Framework, group: PodGroup, members: GroupMembers) -> bool:
        """Return False if a group cannot fit, as is seen at once without trying any of its pods."""
        self._cache.mend()  # before anything is counted in the table
        table = self._algorithm.table
        return not resource_gap(table, group, members) and may_have_space(framework, table, group, members)

    @contextmanager
    def _without_nominations(self, members: Sequence[QueuedPod]) -> Iterator[None]:
        """Let no member claim space for itself while all are decided about; then they are nominated as before."""
        names = self._nominator.nodes and [self._nominator.node_of(each.pod.uid) for each in members]
        nominated = [(each.pod, name) for each, name in zip(members, names, strict=False) if name]
        for pod, _ in nominated:
            self._nominator.delete(pod.uid)
        try:
            yield
        finally:
            for pod, node_name in nominated:
                if not self._nominator.node_of(pod.uid):
                    self._nominator.add(pod, node_name)

    def simulate(
        self, framework: Framework, members: Sequence[QueuedPod], *, is_charged: bool = False
    ) -> GroupDecision:
        """The same in one go, without preemption; `is_charged`: whether its share has space for it is not asked."""
        try:
            return in_one_go(self._simulate(framework, members, is_charged=is_charged))
        finally:
            self.forget_left()

    def fit_there(self, framework: Framework, outcomes: Sequence[MemberOutcome]) -> bool:
        """Return whether members that were placed together fit these nodes now, one after the other."""
        assumed = AssumedMembers(framework, self._cache)
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

    def _decide(self, framework: Framework, members: Sequence[QueuedPod]) -> Steps[GroupDecision]:
        for _ in range(MAX_OVERTAKEN):
            since = self._cache.changes
            try:
                decision = yield from self._simulate(framework, members)
            except Overtaken:
                pass
            else:
                if decision.status is not None or all_fit_still(framework, self._cache, decision.members, since):
                    break
            _logger.debug("The nodes for a pod group have changed meanwhile", extra={"pod": str(members[0].pod)})
        else:
            decision = in_one_go(self._simulate(framework, members))
        decision.changes = self._cache.changes
        return decision

    def _simulate(
        self, framework: Framework, members: Sequence[QueuedPod], *, is_charged: bool = False
    ) -> Steps[GroupDecision]:
        self._cache.mend()  # before anything is counted in the table
        layout = self._cache.layouts
        schedule: Schedule = partial(self._algorithm.schedule, framework, runs_post_filter=False)
        if is_charged:
            schedule = partial(_schedule_charged, schedule)
        groups, pod = framework.handle.pod_groups, members[0].pod
        group = groups.of(pod)
        if (group is None or group.problem) and (refused := _refused_at_once(framework, pod)) is not None:
            return GroupDecision(status=refused, refused_by=COSCHEDULING)
        if group is not None:
            known = groups.members(pod)
            if gap := resource_gap(self._algorithm.table, group, known):
                return GroupDecision(status=unresolvable(gap))
            shares = framework.handle.shares
            if not is_charged and (refusal := shares.refusal_of_group(group, known)):
                may_help = refusal.lacks and shares.takes_back(refusal.key)
                status = unschedulable(refusal.message) if may_help else unresolvable(refusal.message)
                return GroupDecision(status=status, refused_by=CAPACITY_SCHEDULING)
        if group is not None and (group.required_level or group.preferred_level):
            filled = partial(self._decide_filling, framework, schedule, layout)
            ranked = sorted(members, key=lambda queued: (-queued.pod.priority, rank_of(queued.pod)))
            decide = partial(self._levels.decide, framework, group, what_if=filled)
            return (yield from self._in_orders(framework, ranked, decide))
        if group is not None and group.is_ours:
            within = partial(self._decide_within, framework, schedule=schedule, layout=None, leaves=True)
            return (yield from self._in_orders(framework, members, within))
        if self._placements is not None:
            placed = partial(self._decide_in_placement, framework, members, schedule, layout)
            return (yield from decide_among_placements(framework, self._algorithm, members, placed, self._placements))
        return (yield from self._decide_within(framework, members, schedule, None, leaves=True))

    def _in_orders(
        self,
        framework: Framework,
        members: Sequence[QueuedPod],
        decide: Callable[[Sequence[QueuedPod]], Steps[GroupDecision]],
    ) -> Steps[GroupDecision]:
        """Decide about mixed members in other orders if they do not fit: large ones first, then refused ones first."""
        first = decision = yield from decide(members)
        for is_last in (False, True):
            if not decision.is_rejected or not _are_mixed(decision):
                break
            refused = [each.queued for each in decision.members if not each.is_placed]
            placed = [each.queued for each in decision.members if each.is_placed]
            by_size = partial(_size, framework, self._algorithm.table)
            decision = yield from decide([*refused, *placed] if is_last else sorted(members, key=by_size, reverse=True))
        return first if decision.is_rejected else decision

    def _decide_filling(
        self,
        framework: Framework,
        schedule: Schedule,
        layout: int,
        members: Sequence[QueuedPod],
        filling: Filling,
    ) -> Steps[GroupDecision]:
        """Decide about the members, each among the nodes whose turn it is."""
        return self._decide_within(framework, members, partial(filling.schedule, schedule), layout)

    def _decide_in_placement(
        self,
        framework: Framework,
        members: Sequence[QueuedPod],
        schedule: Schedule,
        layout: int,
        placement: BoolColumn | None,
    ) -> Steps[GroupDecision]:
        """Decide about the members among the rows of a placement, or all nodes."""
        within = partial(schedule, placement=placement)
        return self._decide_within(framework, members, within, None if placement is None else layout)

    def _decide_within(
        self,
        framework: Framework,
        members: Sequence[QueuedPod],
        schedule: Schedule,
        layout: int | None,
        *,
        leaves: bool = False,
    ) -> Steps[GroupDecision]:
        """Decide about the members, one after the other. Raises Overtaken, between steps only.

        `layout`: that in which rows are counted which `schedule` knows; None if it knows none. `leaves`: whether to
        leave those in the tables that are to be bound.
        """
        progress = _Progress(framework, members)
        if not progress.may_go_on():
            return GroupDecision(status=_of_group(progress.status))
        decision = GroupDecision()
        assumed = AssumedMembers(framework, self._cache)
        try:
            for queued in members:
                if decision.members:
                    yield
                    if layout not in (None, self._cache.layouts):
                        raise Overtaken
                outcome = self._decide_member(framework, queued, assumed, schedule)
                decision.members.append(outcome)
                progress.note(outcome)
                if not progress.may_go_on():
                    break
            decision.status = progress.end(len(assumed))
            end = assumed.leave if leaves and decision.status is None else assumed.take_back
            while assumed:
                end()
                if assumed and not len(assumed) % QUICK:
                    yield
            if layout not in (None, self._cache.layouts):
                raise Overtaken
        finally:
            assumed.take_back_all()
        return decision

    def _decide_member(
        self, framework: Framework, queued: QueuedPod, assumed: AssumedMembers, schedule: Schedule
    ) -> MemberOutcome:
        """Decide about a member, and add it to those that are assumed on their nodes."""
        started = time.perf_counter()
        state = GroupCycleState()
        state.record_plugin_metrics = self._sampler.randrange(100) < PLUGIN_METRICS_SAMPLE_PERCENT
        outcome = MemberOutcome(queued, state, SchedulerError("not decided"), started)
        try:
            self._schedule(outcome, schedule)
            self._keep_scores(outcome, len(assumed))
            if outcome.node_name:
                assumed.add(outcome)
        except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
            framework.faults.report(error, queued.pod)
            outcome.decision, outcome.node_name = as_scheduler_error(error), ""
        outcome.seconds = time.perf_counter() - started
        return outcome

    def _schedule(self, outcome: MemberOutcome, schedule: Schedule) -> None:
        queued, state = outcome.queued, outcome.state
        if self._cache.table.is_broken:
            self._cache.mend()
        try:
            decision = schedule(state, queued.pod, queued.attempts)
        finally:
            self._duration.observe(time.perf_counter() - outcome.started)
        outcome.decision = decision
        outcome.node_name = decision.node_name if isinstance(decision, Placed) else ""

    def _keep_scores(self, outcome: MemberOutcome, number: int) -> None:
        """Let the scores be those of this decision when it is noted, after that about the whole group."""
        state, decision = outcome.state, outcome.decision
        if isinstance(decision, Placed) and state.scored is not None:
            fits = number * self._cache.table.size < MAX_SCORES
            state.scored = state.scored.kept(decision.row) if fits else None


class _Progress:
    """Whether a group is complete, while its members are tried one after the other."""

    def __init__(self, framework: Framework, members: Sequence[QueuedPod]) -> None:
        self._framework = framework
        self._pod, self._state = members[0].pod, CycleState()
        self._remaining = len(members)
        self._scheduled = framework.handle.pod_groups.members(self._pod).scheduled_count
        self.status = self._ask()

    def may_go_on(self) -> bool:
        return self.status is None or self.status.code is Code.WAIT

    def note(self, outcome: MemberOutcome) -> None:
        if isinstance(outcome.decision, SchedulerError):
            text = f"failed to schedule other pod from a pod group: {outcome.decision}"
            self.status = Status(Code.ERROR, (text,))
            return
        self._remaining -= 1
        self._scheduled += outcome.is_placed
        self.status = self._ask()

    def end(self, placed: int) -> Status | None:
        """Return the answer after the last member: one of them has to be placed."""
        if self.status is None:
            return None if placed else NONE_PLACED
        return _of_group(self.status) if self.may_go_on() else self.status

    def _ask(self) -> Status | None:
        progress = PlacementProgress(self._remaining, self._scheduled)
        try:
            return self._framework.run_placement_feasible(self._state, self._pod, progress)
        except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
            self._framework.faults.report(error, self._pod)
            return Status(Code.ERROR, (f"failed to evaluate placement feasibility: {as_scheduler_error(error)}",))


def _of_group(status: Status | None) -> Status | None:
    """Return the refusal of a group that is not complete."""
    if status is None or status.code is Code.ERROR:
        return status
    return unschedulable(UNSCHEDULABLE_GROUP, *status.reasons)


def _refused_at_once(framework: Framework, pod: Pod) -> Status | None:
    """Return why a pod would not be let into the queue now, as its group of our own rules is gone or makes no sense."""
    return next((each.pre_enqueue(pod) for each in framework.pre_enqueue if each.name == COSCHEDULING), None)


def _schedule_charged(
    schedule: Schedule, state: CycleState, pod: Pod, attempt: int, *, placement: BoolColumn | None = None
) -> Placed | Unplaced:
    """Decide about a pod without the question whether there is space in its share."""
    state.write(IS_CHARGED, True)
    return schedule(state, pod, attempt, placement=placement)


def _size(framework: Framework, table: NodeTable, queued: QueuedPod) -> float:
    """Return the largest share of what all nodes have of a resource that a pod needs."""
    demand = demand_of(framework, queued.pod)
    return max((amount / max(int(total_of(table, name).sum()), 1) for name, amount in demand.items()), default=0.0)


def _are_mixed(decision: GroupDecision) -> bool:
    """Return whether members that fit and others that do not are of different kinds."""
    if all(each.is_placed for each in decision.members):
        return False
    kinds = [None if each.state.known_spec is None else each.state.known_spec.pod_class for each in decision.members]
    return any(kind is not kinds[0] for kind in kinds)
