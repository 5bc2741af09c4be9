"""Brings a group of our own rules back when what it waits for is the group itself, not the cluster.

    PodGroup object comes, or has another spec ──┐
    pod of it comes with a node ─────────────────┤
    pod of it is gone, or is being deleted ──────┴─► is it complete? ─► one member back to the queue, which brings all

A pod that comes without a node brings the others itself; one that has a node was bound by others, or before a restart,
and may be the one that was missing. No plugin registers for these events: every hint would be asked for each of
the groups that wait, and only one is concerned.
"""

from collections.abc import Callable
from typing import Final

from scheduler.api.coscheduling import PodGroup
from scheduler.api.objects import GroupAnnotations
from scheduler.api.pod import Pod
from scheduler.framework.events import COSCHEDULING_POD_GROUP, POD_GROUP, Action, ClusterEvent
from scheduler.framework.pod_groups import GroupKey
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.refusals import GroupRefusals
from scheduler.groups.statuses import GroupStatuses
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.state.objects import ObjectStore
from scheduler.state.preemptions import Preemptions

MEMBER_CAME: Final = "PodGroupMemberAdd"
MEMBER_GONE: Final = "PodGroupMemberDelete"
CHANGED: Final = ClusterEvent(COSCHEDULING_POD_GROUP, Action.UPDATE_OTHER).label

MAX_TRIES: Final = 16
"""Members that are asked to come back, until one does: others may be kept back by their scheduling gates."""


class GroupWakes:
    """Listens to groups that come and change."""

    def __init__(
        self,
        groups: AdaptedGroups,
        queue: SchedulingQueue,
        objects: ObjectStore,
        statuses: GroupStatuses,
        refusals: GroupRefusals,
        preemptions: Preemptions,
    ) -> None:
        self._groups = groups
        self._statuses = statuses
        self._refusals = refusals
        self._preemptions = preemptions
        self._queue = queue
        self._objects = objects
        self._end: Callable[[], None] | None = None

    def listen(self, *, wanted: bool) -> None:
        """Begin or end to listen."""
        if wanted and self._end is None:
            self._end = self._objects.subscribe(COSCHEDULING_POD_GROUP, self._group_changed)
            self._groups.members_by_group.changed = self._members_changed
            self._statuses.succeeded = self._member_succeeded
        elif not wanted and self._end is not None:
            self._end()
            self._end = self._groups.members_by_group.changed = None

    def _members_changed(self, key: GroupKey, may_help: bool) -> None:
        self._statuses.mark(key)
        self._refusals.mark(key)
        if may_help and key.source != POD_GROUP:
            self._wake(key, MEMBER_GONE)

    def member_came(self, pod: Pod) -> None:
        """A pod has come that has a node already."""
        key = self._groups.key_of(pod)
        if key is not None and key.source != POD_GROUP:
            self._wake(key, MEMBER_CAME)

    def member_gone(self, pod: Pod) -> None:
        """A pod is gone: it may have succeeded."""
        key = self._groups.key_of(pod)
        if key is not None and key.source != POD_GROUP:
            self._statuses.pod_ended(key, pod)

    def _member_succeeded(self, key: GroupKey) -> None:
        """It counts as placed from now on: the others may be enough without it."""
        self._wake(key, MEMBER_GONE)

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        self._statuses.group_changed(old, new)
        if (each := new or old) is not None:
            self._refusals.mark(GroupKey(each.metadata.namespace, COSCHEDULING_POD_GROUP, each.metadata.name))
        if new is None and old is not None:
            self._preemptions.withdraw(old.metadata.uid)
        if new is None or (old is not None and old.spec == new.spec and _annotations(old) == _annotations(new)):
            return
        self._wake(GroupKey(new.metadata.namespace, COSCHEDULING_POD_GROUP, new.metadata.name), CHANGED)

    def _wake(self, key: GroupKey | None, label: str) -> None:
        pods = self._groups.members_by_group.some_unscheduled(key, MAX_TRIES)
        if pods and self._is_complete(pods[0]):
            any(self._queue.wake(pod.uid, label) for pod in pods)

    def _is_complete(self, pod: Pod) -> bool:
        group = self._groups.of(pod)
        return group is not None and not group.problem and self._groups.members(pod).ready_count >= group.minimum


def _annotations(podgroup: PodGroup) -> GroupAnnotations | None:
    return podgroup.metadata.group_annotations
