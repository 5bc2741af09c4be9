"""Brings a group of our own rules back when what it waits for is the group itself, not the cluster.

    PodGroup object comes, or has another spec ──┐
    workload that it is comes, or is scaled ─────┤
    pod of it comes with a node ─────────────────┤
    pod of it is gone, or is being deleted ──────┴─► is it complete? ─► one member back to the queue, which brings all

A pod that comes without a node brings the others itself; one that has a node was bound by others, or before a restart,
and may be the one that was missing. No plugin registers for these events: every hint would be asked for each of
the groups that wait, and only one is concerned.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from scheduler.api.coscheduling import PodGroup
from scheduler.api.objects import GroupAnnotations
from scheduler.api.pod import Pod
from scheduler.api.workloads import WORKLOAD_PARTS
from scheduler.cycle.core import Core
from scheduler.cycle.listeners import PodListener
from scheduler.framework.events import COSCHEDULING_POD_GROUP, POD_GROUP, Action, ClusterEvent
from scheduler.framework.pod_groups import GroupKey
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.apis.owners import groups_of
from scheduler.groups.refusals import GroupRefusals
from scheduler.groups.statuses import GroupStatuses

MEMBER_CAME: Final = "PodGroupMemberAdd"
OWNER_CHANGED: Final = "PodGroupOwnerUpdate"
MEMBER_GONE: Final = "PodGroupMemberDelete"
CHANGED: Final = ClusterEvent(COSCHEDULING_POD_GROUP, Action.UPDATE_OTHER).label

MAX_TRIES: Final = 16
"""Members that are asked to come back, until one does: others may be kept back by their scheduling gates."""


class GroupWakes(PodListener):
    """Listens to groups that come and change."""

    def __init__(self, core: Core, groups: AdaptedGroups, statuses: GroupStatuses, refusals: GroupRefusals) -> None:
        self._core = core
        self._groups = groups
        self._statuses = statuses
        self._refusals = refusals
        self._ends: tuple[Callable[[], None], ...] = ()

    def listen(self, *, wanted: bool) -> None:
        """Begin or end to listen."""
        core = self._core
        if wanted and not self._ends:
            core.listeners.add(self)
            members = self._groups.members_by_group.listen(self._members_changed)
            owners = [core.objects.subscribe(each, partial(self._owner_changed, each)) for each in WORKLOAD_PARTS]
            self._ends = (core.objects.subscribe(COSCHEDULING_POD_GROUP, self._group_changed), members, *owners)
        elif not wanted:
            core.listeners.remove(self)
            for end in self._ends:
                end()
            self._ends = ()

    def pod_came_bound(self, pod: Pod) -> None:
        key = self._groups.key_of(pod)
        if key is not None and key.source != POD_GROUP:
            self._wake(key, MEMBER_CAME)

    def pod_gone(self, pod: Pod) -> None:
        key = self._groups.key_of(pod)
        if key is not None and key.source != POD_GROUP:
            self._statuses.pod_ended(key, pod)

    def _members_changed(self, key: GroupKey, helps: bool) -> None:
        self._statuses.mark(key)
        self._refusals.mark(key)
        if helps and key.source != POD_GROUP:
            self._wake(key, MEMBER_GONE)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        self._statuses.group_changed(old, new)
        if (each := new or old) is not None:
            self._refusals.mark(GroupKey(each.metadata.namespace, COSCHEDULING_POD_GROUP, each.metadata.name))
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._core.preemptions.withdraw(old.metadata.uid)
        if new is None or (old is not None and old.spec == new.spec and _annotations(old) == _annotations(new)):
            return
        self._wake(GroupKey(new.metadata.namespace, COSCHEDULING_POD_GROUP, new.metadata.name), CHANGED)

    def _owner_changed(self, resource: str, old: Any, new: Any) -> None:
        for key in groups_of(resource, new or old):
            self._refusals.mark(key)
            if new is not None:
                self._wake(key, OWNER_CHANGED)

    def _wake(self, key: GroupKey | None, label: str) -> None:
        pods = self._groups.members_by_group.some_unscheduled(key, MAX_TRIES)
        group = self._groups.of(pods[0]) if pods else None
        if group is None:
            return
        if group.problem or self._groups.members(pods[0]).ready_count < group.minimum:
            self._core.preemptions.withdraw(group.uid)
        else:
            any(self._core.queue.wake(pod.uid, label) for pod in pods)


def _annotations(podgroup: PodGroup) -> GroupAnnotations | None:
    return podgroup.metadata.group_annotations
