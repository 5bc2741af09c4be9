"""Makes space for a group of pods that does not fit: one choice of victims for all of them.

    its share has no space for it     CapacityScheduling: who has to give back what it needs?
    its nodes have none               DefaultPreemption, or CapacityScheduling in a profile without it

    choose, in steps ─► does the group fit without them still? ─► evict
                                   └── no: choose again, after a few times in one go

Victims are chosen for the nodes as they were when each was examined; kube-scheduler chooses on a snapshot, too. Changes
by others are checked at the end, in the step that begins the evictions.

Other PodGroupPostFilter plugins give back what the group holds and cannot use.

Rule: RunPodGroupPostFilterPlugins in pkg/scheduler/framework/runtime/framework.go, and Preempt in
pkg/scheduler/framework/preemption/podgrouppreemption.go at v1.37.2.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, TypeAlias

from msgspec.structs import replace

from scheduler.api.pods.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.steps import MAX_OVERTAKEN, Overtaken, Steps, in_one_go
from scheduler.framework.cycle_state import GroupCycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.groups.group_preemption import PodGroupPostFilterPlugin, PodGroupReleasePlugin
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.framework.preemption.dry_run import Victims
from scheduler.framework.preemption.preemptions import Preemption
from scheduler.framework.preemption.victims import IN_VAIN, LEAVING
from scheduler.framework.status import Code, Status, unschedulable
from scheduler.groups.counting import CountedWhatIf, counted
from scheduler.groups.deciding import DecidedWhatIf, Trials, deciding
from scheduler.groups.decision import NO_PREEMPTION, UNSCHEDULABLE_GROUP, GroupDecision, GroupPreemption, MemberOutcome
from scheduler.groups.reservations.reservation import Reservation
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache
from scheduler.state.nodes.node_table import NodeTable

OF_NODES: Final = "DefaultPreemption"
"""The plugin that is asked if the nodes have no space."""

POINT: Final = "PodGroupPostFilter"
PREFIX: Final = "pod group preemption: "
MAX_TRIED: Final = 400
"""Pods of a group of Kubernetes' own, times those that may leave, up to which it is tried without each of these.

That is what kube-scheduler does, however many there are. It takes 30 ms.
"""

Choice: TypeAlias = tuple[Victims | Status, Sequence[MemberOutcome]]
"""Victims, or why there are none; and the members as they fit without them."""

_logger = logging.getLogger(__name__)


def post_filter(
    framework: Framework,
    decision: GroupDecision,
    pods: Sequence[Pod],
    cache: Cache,
    reserved: Reservation | None,
    trials: Trials,
) -> Steps[GroupDecision]:
    """Return the decision about a group that does not fit, and whether it will once its victims are gone.

    `reserved`: the nodes that are kept for a group. What the plugins say is in the message of groups of Kubernetes' own
    only: that of a group of our own rules is about what it lacks.
    """
    tree, reasons = framework.handle.pod_groups.tree_of(pods[0]), list[str]()
    if tree is None:
        return decision
    group = tree.group
    preempting, status, preemption = _preempting(framework, decision), unschedulable(), NO_PREEMPTION
    is_sampled = any(each.state.record_plugin_metrics for each in decision.members[:1])
    with framework.calls.at(POINT) as timer:
        for plugin in framework.plugins.at["pod_group_post_filter"]:
            started = time.perf_counter()
            if plugin is preempting:
                # The plugin that takes quota back asks about quota itself.
                again = partial(trials.again, is_charged=plugin.name == CAPACITY_SCHEDULING)
                trials = trials._replace(again=again)
                attempt = _Preemption(framework, preempting, group, decision, pods, cache, reserved, trials)
                preemption, status = yield from attempt.run()
            elif isinstance(plugin, PodGroupReleasePlugin):
                status = _release(framework, plugin, group, decision, pods[0])
            else:
                continue
            if is_sampled:
                framework.calls.observe_plugin(POINT, plugin.name, status.code, time.perf_counter() - started)
            if status.code is not Code.UNSCHEDULABLE:
                break
            reasons += status.reasons
        timer.code = status.code
    if preempting is None:
        preemption = _with_damaged(framework, pods[0], preemption, unschedulable())
    members = decision.members if preemption.members is None else preemption.members
    decision = replace(decision, members=members, preemption=preemption)
    if status.code is Code.ERROR:
        text = f'error in "{plugin.name}" {POINT} plugins: {status.message}'
        return replace(decision, status=Status(Code.ERROR, (text,)))
    if group.is_ours:
        return decision
    return replace(decision, post_filter=", ".join(reasons if status.code is Code.UNSCHEDULABLE else status.reasons))


def _preempting(framework: Framework, decision: GroupDecision) -> PodGroupPostFilterPlugin | None:
    """Return the plugin that chooses victims, if any does."""
    is_for_share = decision.refused_by == CAPACITY_SCHEDULING
    by_name = {each.name: each for each in framework.plugins.of("pod_group_post_filter", PodGroupPostFilterPlugin)}
    return by_name.get(CAPACITY_SCHEDULING if is_for_share or OF_NODES not in by_name else OF_NODES)


def _release(
    framework: Framework, plugin: PodGroupReleasePlugin, group: PodGroup, decision: GroupDecision, pod: Pod
) -> Status:
    members = [(each.state, each.queued.pod) for each in decision.members]
    try:
        return plugin.release_for_pod_group(group, members)
    except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
        return _fault(framework, error, pod)


def _fault(framework: Framework, error: BaseException, pod: Pod) -> Status:
    framework.faults.report(error, pod)
    return Status(Code.ERROR, (str(as_scheduler_error(error)),))


@dataclass(frozen=True, slots=True, eq=False)
class _Preemption:
    """One attempt to make space for a group."""

    framework: Framework
    plugin: PodGroupPostFilterPlugin
    group: PodGroup
    decision: GroupDecision
    pods: Sequence[Pod]
    cache: Cache
    reserved: Reservation | None
    trials: Trials

    def run(self) -> Steps[tuple[GroupPreemption, Status]]:
        """Evict others for the group, and say whether it will fit then, or why not."""
        preemption, status = yield from self._preempt()
        preemption = replace(preemption, code=status.code)
        if not self.decision.refused_by:
            preemption = _with_damaged(self.framework, self.pods[0], preemption, status)
        return preemption, replace(status, reasons=(f"{PREFIX}{status.message}",))

    def _preempt(self) -> Steps[tuple[GroupPreemption, Status]]:
        framework, group, pods = self.framework, self.group, self.pods
        nominated = [pod.uid for pod in pods if group.is_ours or pod.nominated_node_name]
        ended = GroupPreemption(nominations=dict.fromkeys(nominated, ""))
        under_way = framework.handle.preemptions.of(group.key)
        try:
            if under_way is not None:
                if not self._counts_on_lost_nodes(under_way):
                    return (ended, IN_VAIN) if under_way.is_due else (GroupPreemption(keeps_nominations=True), LEAVING)
                framework.handle.preemptions.withdraw(group.key)
            victims, placed = yield from self._choose()
            if isinstance(victims, Status):
                if victims.code is Code.SUCCESS:  # those of an earlier attempt are still leaving
                    return GroupPreemption(nominations={pod.uid: pod.nominated_node_name for pod in pods}), victims
                return ended, victims
            members, preemptors = None, pods
            if self._are_nominated:
                members, placed = placed, _nominate(framework, placed, self._missing())
                preemptors = [each.queued.pod for each in placed] or pods  # nothing is kept for the others
            self.plugin.evict_for_pod_group(group, preemptors, victims)
        except GeneratorExit:  # the scheduler stops
            raise
        except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
            return ended, _fault(framework, error, pods[0])
        nominations = {each.queued.pod.uid: each.node_name for each in placed if each.node_name}
        text = f"found a placement for podgroup, preempting {len(victims.pods)} victims"
        return GroupPreemption(None, victims.pods, members, nominations), Status(Code.SUCCESS, (text,))

    def _counts_on_lost_nodes(self, under_way: Preemption) -> bool:
        """Return whether a node that is kept for a member is gone, or refuses all whatever leaves it.

        Nodes that victims have left already do not count: the group may fit there.
        """
        framework = self.framework
        victims = [pod for uid in under_way.victims if (pod := framework.handle.pods.get(uid)) is not None]
        kept = {framework.handle.nominator.kept_on(pod.uid) for pod in self.pods}
        names = {pod.node_name for pod in victims} & kept
        if not names:
            return False
        members = [(each.state, each.queued.pod) for each in self.decision.members if each.state.known_spec]
        tried = {state.known_spec.pod_class: (state, pod) for state, pod in members}
        for member in self.pods:
            state = GroupCycleState()
            if framework.classify(state, member).pod_class not in tried:
                if framework.run_pre_filter(state, member, Diagnosis(0))[1] is not None:
                    return False
                tried[state.known_spec.pod_class] = state, member
        for name in names:
            row = self.cache.table.row_of(name)
            if row is None:
                return True
            refusals = [framework.run_filter_again(state, pod, row) for state, pod in tried.values()]
            if all(each is not None and each.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for each in refusals):
                return True
        return False

    def _choose(self) -> Steps[Choice]:
        """Choose victims without whom the group fits now, or say why there are none."""
        for _ in range(MAX_OVERTAKEN):
            try:
                return (yield from self._choose_once())
            except Overtaken:
                fields = {"pod": str(self.pods[0])}
                _logger.debug("The nodes with victims for a pod group have changed meanwhile", extra=fields)
        return in_one_go(self._choose_once())

    def _choose_once(self) -> Steps[Choice]:
        group, pods, cache = self.group, self.pods, self.cache
        since, waited, quick = cache.changes, self._waiting(), None
        may_leave = self.plugin.may_leave(group, pods)
        is_counted = self._are_nominated or _are_many(cache.table, pods, may_leave)
        if is_counted and not group.minimum_groups:
            is_charged = self.plugin.name == CAPACITY_SCHEDULING
            quick = yield from counted(
                self.framework, cache, self.reserved, group, pods, may_leave, is_charged=is_charged
            )
        if quick is not None:
            return (yield from self._choose_by(quick, since))
        return (yield from self._choose_by_deciding(since, waited))

    def _choose_by(self, quick: CountedWhatIf, since: int) -> Steps[Choice]:
        chosen = yield from self.plugin.pod_group_victims(self.group, self.pods, quick)
        if isinstance(chosen, Status):
            return chosen, ()
        with deciding(self.cache, self.trials, len(self.pods)) as what_if:
            what_if.remove(chosen.pods)
            placed = yield from self._members(what_if)
        victims = self._still_there(chosen)
        if self._waiting() < quick.needed:
            return quick.refused, ()
        if not quick.fits_still(self.cache, since, victims.pods):
            raise Overtaken
        return victims, placed

    def _choose_by_deciding(self, since: int, waited: int) -> Steps[Choice]:
        """Choose by decisions about the group, of which so many members `waited`."""
        with deciding(self.cache, self.trials, len(self.pods)) as what_if:
            chosen = yield from what_if.in_steps(self.plugin.pod_group_victims(self.group, self.pods, what_if))
            if isinstance(chosen, Status):
                return chosen, ()
            placed = (yield from self._members(what_if)) if self._are_nominated else what_if.placed
            if self.cache.changes != since and not what_if.keeps_its_nodes():
                raise Overtaken
        if self._waiting() < min(waited, max(1, self._missing())):
            return unschedulable(UNSCHEDULABLE_GROUP), ()
        return self._still_there(chosen), placed

    @property
    def _are_nominated(self) -> bool:
        """Whether members are nominated before their victims leave: what these free is kept for them."""
        return self.group.is_ours or self.plugin.name == CAPACITY_SCHEDULING

    def _missing(self) -> int:
        return self.group.minimum - self.framework.handle.pod_groups.members(self.pods[0]).scheduled_count

    def _waiting(self) -> int:
        """Return how many members are still there, and without a node."""
        newest = (self.framework.handle.pods.get(pod.uid) for pod in self.pods)
        return sum(pod is not None and not pod.is_deleting and not pod.node_name for pod in newest)

    def _still_there(self, chosen: Victims) -> Victims:
        now = ((pod, self.cache.get(pod.uid)) for pod in chosen.pods)
        there = [newest for pod, newest in now if newest is not None and newest.node_name == pod.node_name]
        return Victims(there, chosen.violations)

    def _members(self, what_if: DecidedWhatIf) -> Steps[Sequence[MemberOutcome]]:
        """Return the members as they fit without the victims: nominated there, they keep what these give back.

        If need be, as they fit without the victims of others, too, that leave anyway.
        """
        found = yield from what_if.in_steps(self.trials.again(), 1)
        if found.code is not Code.SUCCESS:
            leaving = self.framework.handle.preemptions.leaving()
            left = (pod for pods in what_if.pods_by_node() for pod in pods)
            what_if.remove([pod for pod in left if pod.is_deleting or pod.uid in leaving])
            found = yield from what_if.in_steps(self.trials.again(), 1)
        return found.members if found.code is Code.SUCCESS else ()


def _with_damaged(framework: Framework, pod: Pod, preemption: GroupPreemption, status: Status) -> GroupPreemption:
    """Add which damaged groups are given up for that of a pod, or why they are not."""
    groups = framework.handle.pod_groups
    group = groups.of(pod)
    giving_way = () if group is None else groups.giving_way(group)
    if not giving_way or preemption.keeps_nominations:
        return preemption
    if status.code is Code.SUCCESS:
        of_victims = {groups.key_of(each) for each in preemption.victims}
        return replace(preemption, given_up=sorted(key for key in giving_way if key in of_victims))
    why = "that would not be enough" if status.message == UNSCHEDULABLE_GROUP else status.message
    if OF_NODES not in {each.name for each in framework.plugins.at["pod_group_post_filter"]}:
        why = f"{OF_NODES} is not enabled"
    first, more = min(giving_way), f" and {len(giving_way) - 1:,} more" if len(giving_way) > 1 else ""
    note = f"what is left of {first}{more}, damaged as it is, is not evicted for it: {why}"
    return replace(preemption, note=note)


def _are_many(table: NodeTable, pods: Sequence[Pod], may_leave: Callable[[Pod], bool]) -> bool:
    """Return whether victims for these pods have to be counted."""
    leaving = (pod for name in table.node_names() for pod in table.pods_on(name) if may_leave(pod))
    return next(islice(leaving, MAX_TRIED // len(pods), None), None) is not None


def _nominate(framework: Framework, members: Sequence[MemberOutcome], missing: int) -> Sequence[MemberOutcome]:
    """Nominate members before any victim may be gone: those that are missing to the minimum, or all if none is.

    Return them.
    """
    fitting = [each for each in members if each.node_name]
    needed = missing if missing > 0 else len(fitting)
    for each in fitting[:needed]:
        framework.handle.nominator.add(each.queued.pod, each.node_name)
    for each in fitting[needed:]:
        each.decision, each.node_name = Unplaced(UNSCHEDULABLE_GROUP), ""
    return fitting[:needed]
