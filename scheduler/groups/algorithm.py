"""Decides about a group of pods at once.

    refused as a whole? ─► what-ifs: of the members in several orders, in domains of a level, or in placements
                             └── none fits ─► which pods make space for it, once they are evicted?

A decision about thousands of pods takes a second, so it is made in steps, of a member each, and the event loop has its
turn every few milliseconds. It is sound all the same:

- No other decision is made meanwhile: an explanation or a what-if waits, too (`Pauses.ready`).
- Assumed members stay assumed between the steps, and look like pods whose binding is under way (`what_if.py`).
- Each member is decided about and assumed within one step, on the tables of that moment; kube-scheduler decides about
  all of them on the tables of the beginning.
- If members no longer fit a node that others have changed, by spec and node alone, or a node comes or goes while a
  placement names rows, all is decided again (`Overtaken`), and after a few times in one go. Changes while members are
  bound are checked before each binding, as for every pod (`last_look.py`).
- A member that is deleted or bound by others meanwhile is left out when the decision takes effect (`cycle.py`).

The victims of a preemption for a group are chosen in steps, too: by counting if its pods are alike (`counting.py`), or
by decisions during which other pods are off their nodes (`deciding.py`).

Rule: pkg/scheduler/schedule_one_podgroup.go at v1.37.2.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from scheduler.api.pods.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING, COSCHEDULING
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.cycle.core import Core
from scheduler.cycle.steps import MAX_OVERTAKEN, Overtaken, Steps, in_one_go
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.groups.placements import Placement
from scheduler.framework.groups.pod_groups import GroupMembers, GroupTree, PodGroup, PodGroups
from scheduler.framework.nodes.columns import BoolColumn
from scheduler.framework.queued import QueuedPod
from scheduler.framework.shares import IS_CHARGED
from scheduler.framework.status import Code, unresolvable, unschedulable
from scheduler.groups.amounts import demand_of, may_have_space, resource_gap, size_of
from scheduler.groups.deciding import Trials
from scheduler.groups.decision import GroupDecision, MemberOutcome
from scheduler.groups.placements import Choice, decide_among_placements, decide_on_all_nodes, limited
from scheduler.groups.preemption import post_filter
from scheduler.groups.refusals import refused_at_once
from scheduler.groups.reservations.reserved_nodes import ReservedNodes
from scheduler.groups.topology.filling import Filling, Schedule, rank_of
from scheduler.groups.topology.levels import TopologyLevels
from scheduler.groups.trees import TreeAttempt
from scheduler.groups.what_if import Search, WhatIf
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache

_logger = logging.getLogger(__name__)


class PodGroupAlgorithm:
    """Decides about groups. Has no state of its own."""

    def __init__(self, core: Core, groups: PodGroups, levels: TopologyLevels, reserved: ReservedNodes) -> None:
        """`levels`: places groups that name a level of a topology."""
        self._algorithm = core.algorithm
        self._levels = levels
        self._reserved = reserved
        self._choice: Choice = decide_on_all_nodes
        """Places groups of kube-scheduler's rules."""
        if groups.are_tried_in_placements:
            self._choice = partial(decide_among_placements, core.algorithm, core.metrics.add_placements())
        self._cache = core.cache
        self._nominator = core.nominator
        self._what_if = WhatIf(core)

    def decide_in_steps(self, framework: Framework, members: Sequence[QueuedPod]) -> Steps[GroupDecision]:
        """Decide about the members of one group, in this order. Tables are as before afterwards. Raises nothing.

        Between the steps other tasks may change all but what is assumed here.
        """
        try:
            tree = framework.handle.pod_groups.tree_of(members[0].pod)
            return (yield from self.decide_and_leave(framework, tree, members))
        finally:
            self._cache.forget_left()

    def decide_and_leave(
        self, framework: Framework, tree: GroupTree | None, members: Sequence[QueuedPod]
    ) -> Steps[GroupDecision]:
        """The same, and leave those in the tables that are to be bound: they are assumed for good at less cost.

        Those that are not have to be forgotten (`Cache.forget_left`).
        """
        with self._without_nominations(members):
            began = time.perf_counter()
            decision = yield from self._decide(framework, tree, members)
            decision = decision.about(tree, changes=self._cache.changes, seconds=time.perf_counter() - began)
            if decision.status is None or decision.status.code is not Code.UNSCHEDULABLE:
                return decision
            again = partial(self._simulate_again, framework, members)
            pods, reserved = [queued.pod for queued in members], self._reserved.reservation
            trials = Trials(again, partial(self._what_if.fit_there, framework))
            return (yield from post_filter(framework, decision, pods, self._cache, reserved, trials))

    def may_fit(self, framework: Framework, group: PodGroup, members: GroupMembers) -> bool:
        """Return False if a group cannot fit, as is seen at once without trying any of its pods."""
        self._cache.mend()  # before anything is counted in the table
        table = self._algorithm.table
        if group.resources and resource_gap(table, group, members):
            return False
        return may_have_space(framework, table, group, members)

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

    def simulate(self, framework: Framework, members: Sequence[QueuedPod]) -> GroupDecision:
        """Decide about the members of one group in one go, without preemption."""
        return in_one_go(self._simulate_again(framework, members, is_charged=False))

    def _simulate_again(
        self, framework: Framework, members: Sequence[QueuedPod], *, is_charged: bool
    ) -> Steps[GroupDecision]:
        """The same in steps; `is_charged`: whether its share has space for it is not asked."""
        tree = framework.handle.pod_groups.tree_of(members[0].pod)
        try:
            decision = yield from self._simulate(framework, tree, members, is_charged=is_charged)
            return decision.about(tree)
        finally:
            self._cache.forget_left()

    def _decide(
        self, framework: Framework, tree: GroupTree | None, members: Sequence[QueuedPod]
    ) -> Steps[GroupDecision]:
        for _ in range(MAX_OVERTAKEN):
            since = self._cache.changes
            try:
                decision = yield from self._simulate(framework, tree, members)
            except Overtaken:
                pass
            else:
                if decision.status is not None or _all_fit_still(framework, self._cache, decision, since):
                    break
            _logger.debug("The nodes for a pod group have changed meanwhile", extra={"pod": str(members[0].pod)})
        else:
            decision = in_one_go(self._simulate(framework, tree, members))
        return decision

    def _simulate(
        self, framework: Framework, tree: GroupTree | None, members: Sequence[QueuedPod], *, is_charged: bool = False
    ) -> Steps[GroupDecision]:
        self._cache.mend()  # before anything is counted in the table
        decision = self._refused(framework, members[0].pod, tree, is_charged=is_charged)
        if decision is None:
            schedule: Schedule = partial(self._algorithm.schedule, framework, runs_post_filter=False)
            schedule = partial(_schedule_charged, schedule) if is_charged else schedule
            search = Search(framework, schedule, tree, members[0], self._cache.layouts)
            decision = yield from self._try(search, members)
        return decision

    def _refused(
        self, framework: Framework, pod: Pod, tree: GroupTree | None, *, is_charged: bool
    ) -> GroupDecision | None:
        """Return the decision about a group of which no pod need be tried, among them `pod`; None about others."""
        if (tree is None or tree.group.problem) and (refused := refused_at_once(framework, pod)) is not None:
            return GroupDecision(status=refused, refused_by=COSCHEDULING)
        if tree is None:
            return None
        group, members = tree.group, tree.members
        if group.resources and (gap := resource_gap(self._algorithm.table, group, members)):
            return GroupDecision(status=unresolvable(gap))
        shares = framework.handle.shares
        if is_charged or (refusal := shares.refusal_of_group(group, members)) is None:
            return None
        may_help = refusal.lacks and shares.takes_back(refusal.key)
        status = unschedulable(refusal.message) if may_help else unresolvable(refusal.message)
        return GroupDecision(status=status, refused_by=CAPACITY_SCHEDULING)

    def _try(self, search: Search, members: Sequence[QueuedPod]) -> Steps[GroupDecision]:
        """Decide about the members where the group wants them: in a domain, in a placement, or on any nodes."""
        framework, group = search.framework, None if search.tree is None else search.tree.group
        if search.tree is not None and search.tree.group.minimum_groups:
            attempt = TreeAttempt(self._choice, self._what_if, self._algorithm.table, search, members)
            return attempt.decide(search.tree)
        if group is not None and (group.required_level or group.preferred_level):
            ranked = sorted(members, key=lambda queued: (-queued.pod.priority, rank_of(queued.pod)))
            decide = partial(self._levels.decide, framework, group, what_if=partial(self._decide_filling, search))
            return self._in_orders(framework, ranked, decide)
        if group is not None and group.is_ours:
            within = partial(self._what_if.decide, replace(search, layout=None), leaves=True)
            return self._in_orders(framework, members, within)
        return self._choice(search, partial(self._decide_in_placement, search, members))

    def _in_orders(
        self,
        framework: Framework,
        members: Sequence[QueuedPod],
        decide: Callable[[Sequence[QueuedPod]], Steps[GroupDecision]],
    ) -> Steps[GroupDecision]:
        """Decide about mixed members in other orders if they do not fit: large first, refused first, small first."""
        first = decision = yield from decide(members)
        if decision.status is None:
            return decision

        def size(queued: QueuedPod) -> float:
            return size_of(self._algorithm.table, demand_of(framework, queued.pod))

        for order in "large first", "refused first", "small first":
            if not decision.is_rejected or not _are_mixed(decision):
                break
            if order == "refused first":
                tried = sorted(decision.members, key=lambda outcome: outcome.is_placed)
                again = [outcome.queued for outcome in tried]
            else:
                again = sorted(members, key=size, reverse=order == "large first")
            decision = yield from decide(again)
        return first if decision.is_rejected else decision

    def _decide_filling(self, search: Search, members: Sequence[QueuedPod], filling: Filling) -> Steps[GroupDecision]:
        return self._what_if.decide(replace(search, schedule=partial(filling.schedule, search.schedule)), members)

    def _decide_in_placement(
        self, search: Search, members: Sequence[QueuedPod], placement: Placement | None, *, leaves: bool = False
    ) -> Steps[GroupDecision]:
        return self._what_if.decide(limited(search, placement, self._algorithm.table), members, leaves=leaves)


def _all_fit_still(framework: Framework, cache: Cache, decision: GroupDecision, since: int) -> bool:
    """Return whether the members whose nodes others have changed `since` still fit, by a last look.

    They are not assumed any more.
    """
    if cache.changes == since:
        return True
    cache.forget_left()
    on_node: dict[str, list[MemberOutcome]] = {}
    for outcome in decision.bound():
        on_node.setdefault(outcome.node_name, []).append(outcome)
    for node_name, together in on_node.items():
        row = cache.table.row_of(node_name)
        if row is None:
            return False
        if cache.changed_by_others(node_name) > since and not _fit(framework, cache, row, together):
            return False
    return True


def _fit(framework: Framework, cache: Cache, row: int, together: Sequence[MemberOutcome]) -> bool:
    """Return whether each of these fits a node next to the others."""
    try:
        pods = [framework.bound(each.state, each.queued.pod, each.node_name) for each in together]
    except PluginError:
        return False
    for index, outcome in enumerate(together):
        with cache.table.what_if(row, add=pods[:index] + pods[index + 1 :]):
            try:
                refusal = framework.run_filter_again(outcome.state, outcome.queued.pod, row)
            except PluginError:
                return False
        if refusal is not None:
            return False
    return True


def _schedule_charged(
    schedule: Schedule, state: CycleState, pod: Pod, attempt: int, *, placement: BoolColumn | None = None
) -> Placed | Unplaced:
    """Decide about a pod without the question whether there is space in its share."""
    state.write(IS_CHARGED, True)
    return schedule(state, pod, attempt, placement=placement)


def _are_mixed(decision: GroupDecision) -> bool:
    """Return whether members that fit and others that do not are of different kinds."""
    if all(each.is_placed for each in decision.members):
        return False
    kinds = [None if each.state.known_spec is None else each.state.known_spec.pod_class for each in decision.members]
    return any(kind is not kinds[0] for kind in kinds)
