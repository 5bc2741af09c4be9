"""Makes space for a group of pods that does not fit: one choice of victims for all of them.

    its share has no space for it     CapacityScheduling: who has to give back what it needs?
    its nodes have none               DefaultPreemption, or CapacityScheduling in a profile without it

    choose, in steps ─► does the group fit without them still? ─► evict
                                   └── no: choose again, after a few times in one go

Victims are chosen for the nodes as they were when they were looked at; kube-scheduler chooses on a snapshot, too. What
others do meanwhile is looked at in the end, in the step in which the evictions begin.

Rule: runWorkloadAwarePreemption in pkg/scheduler/schedule_one_podgroup.go at v1.36.3.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from scheduler.api.pod import Pod
from scheduler.config.defaults import CAPACITY_SCHEDULING
from scheduler.cycle.algorithm import Unplaced
from scheduler.cycle.failure import as_scheduler_error
from scheduler.cycle.steps import MAX_OVERTAKEN, Overtaken, Steps, in_one_go
from scheduler.framework.group_preemption import PodGroupPostFilterPlugin
from scheduler.framework.pod_groups import PodGroup
from scheduler.framework.status import Code, Status, unschedulable
from scheduler.framework.victims import IN_VAIN, LEAVING
from scheduler.groups.counting import counted
from scheduler.groups.decision import UNSCHEDULABLE_GROUP, GroupDecision, MemberOutcome
from scheduler.groups.reservations.reservation import Reservation
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache
from scheduler.state.node_table import NodeTable

OF_NODES: Final = "DefaultPreemption"
"""The plugin that is asked if the nodes have no space."""

NO_PLUGIN: Final = unschedulable("default preemption plugin is not registered, workload aware preemption is disabled")
CONSTRAINED: Final = unschedulable(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)

_logger = logging.getLogger(__name__)


def preempt(
    framework: Framework,
    decision: GroupDecision,
    pods: Sequence[Pod],
    cache: Cache,
    reserved: Reservation | None,
    again: Callable[[], GroupDecision],
) -> Steps[None]:
    """Add to the decision about a group that does not fit whether it will once its victims are gone.

    `reserved`: the nodes that are kept for a group. `again` decides about it once more, without PostFilter. Why there
    are no victims is said as kube-scheduler says it, and only where it would say it: the message of a group of our own
    rules is about what it lacks.
    """
    victims, status = yield from _ask(framework, decision, pods, cache, reserved, again)
    decision.preemption = Code.SUCCESS if status is None else status.code
    if not decision.refused_by:
        _note_damaged(framework, decision, pods[0], victims, status)
    if status is None:
        decision.is_waiting_for_preemption, decision.victims = True, victims
    elif status.code is Code.ERROR:
        decision.status = status
    elif _follows_kube_scheduler(framework, pods[0]):
        assert decision.status is not None, "the group does not fit"
        decision.status = Status(decision.status.code, (*decision.status.reasons, status.message))


def _follows_kube_scheduler(framework: Framework, pod: Pod) -> bool:
    """Return whether kube-scheduler, too, would look for victims for the group of a pod as a whole."""
    groups = framework.handle.pod_groups
    group = groups.of(pod)
    return groups.preempts_as_a_whole(pod) and (group is None or not group.is_ours)


def _note_damaged(
    framework: Framework, decision: GroupDecision, pod: Pod, victims: Sequence[Pod], status: Status | None
) -> None:
    """Note which damaged groups are given up for that of a pod, or why they are not."""
    groups = framework.handle.pod_groups
    group = groups.of(pod)
    giving_way = () if group is None else groups.giving_way(group)
    if not giving_way or decision.keeps_nominations:
        return
    if status is None:
        of_victims = {groups.key_of(each) for each in victims}
        decision.given_up = sorted(key for key in giving_way if key in of_victims)
        return
    why = "that would not be enough" if status.message == UNSCHEDULABLE_GROUP else status.message
    if OF_NODES not in {each.name for each in framework.plugins.at["pod_group_post_filter"]}:
        why = f"{OF_NODES} is not enabled"
    first, more = min(giving_way), f" and {len(giving_way) - 1:,} more" if len(giving_way) > 1 else ""
    decision.note = f"what is left of {first}{more}, damaged as it is, is not evicted for it: {why}"


def _ask(
    framework: Framework,
    decision: GroupDecision,
    pods: Sequence[Pod],
    cache: Cache,
    reserved: Reservation | None,
    again: Callable[[], GroupDecision],
) -> Steps[tuple[Sequence[Pod], Status | None]]:
    is_for_share = decision.refused_by == CAPACITY_SCHEDULING
    by_name = {each.name: each for each in framework.plugins.of("pod_group_post_filter", PodGroupPostFilterPlugin)}
    plugin = by_name.get(CAPACITY_SCHEDULING if is_for_share or OF_NODES not in by_name else OF_NODES)
    if plugin is None:
        return (), NO_PLUGIN
    groups = framework.handle.pod_groups
    group = groups.of(pods[0])
    if group is None:
        missing = f'podgroup.scheduling.k8s.io "{groups.name_of(pods[0])}" not found'
        return (), Status(Code.ERROR, (f"failed to get pod group object: {missing}",))
    if group.topology_keys:
        return (), CONSTRAINED
    under_way = framework.handle.preemptions.of(group.uid)
    if under_way is not None:
        decision.keeps_nominations = not under_way.is_due
        return (), IN_VAIN if under_way.is_due else LEAVING
    try:
        victims = yield from _choose(framework, plugin, group, pods, cache, reserved, again)
        if isinstance(victims, Status):
            return (), victims
        preemptors = pods
        if group.is_ours or plugin.name == CAPACITY_SCHEDULING:
            leaving = framework.handle.preemptions.leaving()
            decision.members = _members_without(victims, leaving, cache.table, again, len(pods))
            needed = group.minimum - groups.members(pods[0]).scheduled_count
            preemptors = _nominate(framework, decision.members, needed) or pods  # nothing is kept for the others
        plugin.evict_for_pod_group(group, preemptors, victims)
    except GeneratorExit:  # the scheduler stops
        raise
    except BaseException as error:  # noqa: BLE001 - only this group is affected; nothing is awaited
        framework.faults.report(error, pods[0])
        return (), Status(Code.ERROR, (str(as_scheduler_error(error)),))
    return victims, None


def _choose(
    framework: Framework,
    plugin: PodGroupPostFilterPlugin,
    group: PodGroup,
    pods: Sequence[Pod],
    cache: Cache,
    reserved: Reservation | None,
    again: Callable[[], GroupDecision],
) -> Steps[Sequence[Pod] | Status]:
    """Choose victims without whom the group fits now, or say why there are none."""

    def once() -> Steps[Sequence[Pod] | Status]:
        since = cache.changes
        may_leave = plugin.may_leave(group, pods)
        is_charged = plugin.name == CAPACITY_SCHEDULING
        quick = yield from counted(framework, cache, reserved, group, pods, may_leave, is_charged=is_charged)
        if quick is None:
            with _what_if(cache.table, again, len(pods)) as what_if:
                return in_one_go(plugin.pod_group_victims(group, pods, what_if))
        chosen = yield from plugin.pod_group_victims(group, pods, quick)
        if isinstance(chosen, Status):
            return chosen
        if sum(_waits(framework, pod) for pod in pods) < quick.needed:
            return quick.refused
        victims = [now for pod in chosen if (now := cache.get(pod.uid)) is not None and now.node_name == pod.node_name]
        if not quick.fits_still(cache, since, victims):
            raise Overtaken
        return victims

    for _ in range(MAX_OVERTAKEN):
        try:
            return (yield from once())
        except Overtaken:
            _logger.debug("The nodes with victims for a pod group have changed meanwhile", extra={"pod": str(pods[0])})
    return in_one_go(once())


def _members_without(
    victims: Sequence[Pod],
    leaving: Collection[str],
    table: NodeTable,
    again: Callable[[], GroupDecision],
    decisions: int,
) -> list[MemberOutcome]:
    """Return the members as they fit without the victims: nominated there, they keep what these give back.

    If need be, as they fit without those, too, that leave anyway; `leaving`: the UIDs of victims of others.
    """
    with _what_if(table, again, decisions) as what_if:
        what_if.remove(victims)
        found = again()
        if found.code is not Code.SUCCESS:
            gone = {pod.uid for pod in victims}
            others = [pod for pods in what_if.pods_by_node() for pod in pods if pod.is_deleting or pod.uid in leaving]
            what_if.remove([pod for pod in others if pod.uid not in gone])
            found = again()
    return found.members if found.code is Code.SUCCESS else []


def _nominate(framework: Framework, members: Sequence[MemberOutcome], missing: int) -> Sequence[Pod]:
    """Nominate members before any victim may be gone: those that are missing to the minimum, or all if none is.

    Return them.
    """
    fitting = [each for each in members if each.node_name]
    needed = missing if missing > 0 else len(fitting)
    for each in fitting[:needed]:
        framework.handle.nominator.add(each.queued.pod, each.node_name)
    for each in fitting[needed:]:
        each.decision, each.node_name = Unplaced(UNSCHEDULABLE_GROUP), ""
    return [each.queued.pod for each in fitting[:needed]]


def _waits(framework: Framework, pod: Pod) -> bool:
    """Return whether a member is still there, and without a node."""
    newest = framework.handle.pods.get(pod.uid)
    return newest is not None and not newest.is_deleting and not newest.node_name


class _WhatIf:
    """Implements framework.group_preemption.GroupWhatIf on the live table."""

    def __init__(self, table: NodeTable, again: Callable[[], GroupDecision], decisions: int) -> None:
        self.decisions: Final = decisions
        self._table = table
        self._again = again
        self._removed: dict[str, Pod] = {}
        self._orders: dict[str, tuple[str, ...]] = {}
        """Node → the UIDs of its pods, in their order."""

    def pods_by_node(self) -> Iterable[Collection[Pod]]:
        return [tuple(self._table.pods_on(name)) for name in self._table.node_names()]

    @property
    def terminating(self) -> Collection[Pod]:
        return [pod for pods in self.pods_by_node() for pod in pods if pod.is_deleting]

    def remove(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            name = pod.node_name
            if name not in self._orders:
                self._orders[name] = self._table.order_on(self._table.row_of(name) or 0)
            self._table.remove_pod(name, pod)
            self._removed[pod.uid] = pod

    def put_back(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            self._table.add_pod(pod.node_name, pod)
            del self._removed[pod.uid]

    def refusal(self) -> Status | None:
        return self._again().status

    def undo(self) -> None:
        """Put back all that are removed, and each node's pods in their order."""
        table = self._table
        for pod in tuple(self._removed.values()):
            row = table.row_of(pod.node_name)
            if row is None or not table.has_pod(row, pod.uid):  # it is there if the table was rebuilt meanwhile
                table.add_pod(pod.node_name, pod)
        for name, order in self._orders.items():
            row = table.row_of(name)
            if row is not None:
                table.restore_order(row, order)


@contextmanager
def _what_if(table: NodeTable, again: Callable[[], GroupDecision], decisions: int) -> Iterator[_WhatIf]:
    """Let pods leave and come back; all are there again at the end, in their order."""
    what_if = _WhatIf(table, again, decisions)
    try:
        try:
            yield what_if
        finally:
            what_if.undo()
    except BaseException:
        table.is_broken = True  # a pod may be half gone: the table is made again before the next decision
        raise
