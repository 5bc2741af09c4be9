"""Reports to the queue what happens to groups themselves, not to the cluster.

    object of a group comes, is gone, or has another spec ──┐
    workload that is a group comes, or is scaled ───────────┤
    pod of it comes with a node ────────────────────────────┤
    pod of it is gone, or is being deleted ─────────────────┴─► does that help it? ─► back to the queue, by its key

A pod that comes without a node moves its group in the queue; one that has a node was bound by others, or before a
restart, and may be the one that was missing. No plugin registers for these events: every hint would be asked for each
of the groups that wait, and only one is concerned.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from scheduler.api.groups.pod_groups import PodGroup as KubernetesPodGroup
from scheduler.api.groups.workloads import KIND_OF
from scheduler.api.pods.pod import Pod
from scheduler.cycle.core import Core
from scheduler.cycle.listeners import PodListener
from scheduler.framework.events import (
    COMPOSITE_POD_GROUP,
    COSCHEDULING_POD_GROUP,
    POD_GROUP,
    VOLCANO_POD_GROUP,
    VOLCANO_QUEUE,
    Action,
    ClusterEvent,
)
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.groups.apis.adapters import AdaptedGroups
from scheduler.groups.apis.kubernetes import VERSIONS
from scheduler.groups.apis.owners import groups_of
from scheduler.groups.refusals import GroupRefusals
from scheduler.groups.statuses.writer import GroupStatuses
from scheduler.queue.incoming import MEMBER_GONE

MEMBER_CAME: Final = "PodGroupMemberAdd"
OWNER_CHANGED: Final = "PodGroupOwnerUpdate"
CHANGED: Final = ClusterEvent(COSCHEDULING_POD_GROUP, Action.UPDATE_OTHER).label


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
            listens: dict[str, Callable[[Any, Any], None]] = {
                **{each: partial(self._group_changed, each) for each in (COSCHEDULING_POD_GROUP, VOLCANO_POD_GROUP)},
                **{each: partial(self._owner_changed, each) for each in KIND_OF},
                **{each: partial(self._kubernetes_group_changed, POD_GROUP) for each in VERSIONS},
                COMPOSITE_POD_GROUP: partial(self._kubernetes_group_changed, COMPOSITE_POD_GROUP),
                VOLCANO_QUEUE: self._queue_changed,
            }
            members = self._groups.members_by_group.listen(self._members_changed)
            self._ends = (members, *[core.objects.subscribe(*each) for each in listens.items()])
        elif not wanted:
            core.listeners.remove(self)
            for end in self._ends:
                end()
            self._ends = ()

    def pod_came_bound(self, pod: Pod) -> None:
        key = self._groups.key_of(pod)
        if key is not None:
            self._wake(key, MEMBER_CAME)

    def pod_gone(self, pod: Pod) -> None:
        key = self._groups.key_of(pod)
        if key is not None and key.source != POD_GROUP:
            self._statuses.pod_ended(key, pod)

    def _members_changed(self, key: GroupKey, helps: bool) -> None:
        self._statuses.mark(key)
        self._refusals.mark(key)
        members = self._groups.members_by_group.of(key)
        if helps or members.ready_count < members.count:
            self._wake(key, MEMBER_GONE)

    def _group_changed(self, source: str, old: Any, new: Any) -> None:
        self._statuses.group_changed(source, old, new)
        metadata = (new or old).metadata
        key = GroupKey(metadata.namespace, source, metadata.name)
        self._refusals.mark(key)
        if old is not None and new is None:
            self._core.preemptions.withdraw(key)
        elif old is not None and new.metadata.uid != old.metadata.uid:
            self._core.preemptions.made_again(key)
        self._core.queue.group_changed(key)
        if new is not None and (
            old is None or old.spec != new.spec or old.metadata.group_annotations != metadata.group_annotations
        ):
            self._wake(key, CHANGED)

    def _queue_changed(self, old: Any, new: Any) -> None:
        """A queue that comes lets its groups be tried; one that goes keeps them back."""
        if old is not None and new is not None:
            return
        for key in [each for each in self._groups.members_by_group.groups() if each.source == VOLCANO_POD_GROUP]:
            self._statuses.mark(key)
            self._refusals.mark(key)
            self._core.queue.group_changed(key)
            self._wake(key, CHANGED)

    def _owner_changed(self, resource: str, old: Any, new: Any) -> None:
        for key in groups_of(resource, new or old):
            self._refusals.mark(key)
            self._core.queue.group_changed(key)
            if new is not None:
                self._wake(key, OWNER_CHANGED)

    def _kubernetes_group_changed(self, source: str, old: Any, new: Any) -> None:
        metadata = (new or old).metadata
        if old is not None and new is not None and old.spec == new.spec:
            return
        key, queue = GroupKey(metadata.namespace, source, metadata.name), self._core.queue
        leaves = self._groups.composites.leaves(key)
        for leaf in dict.fromkeys((key, *leaves, self._groups.root_key(key))):
            queue.group_changed(leaf)
        is_moved = old is None or new is None
        if is_moved or _parent_of(old) != _parent_of(new):  # another group of that name may have come in its place
            for leaf in leaves:
                queue.group_moved(self._groups.members_by_group.of(leaf).unscheduled)
        if new is None:
            self._core.preemptions.withdraw(key)
        elif old is not None:
            queue.wake(self._groups.root_key(key), CHANGED)

    def _wake(self, key: GroupKey, label: str) -> None:
        """Bring a group back. Others of its tree may wait although none of its own pods does."""
        if key.source == POD_GROUP:
            self._core.queue.wake(self._groups.root_key(key), label)
            return
        pods = self._groups.members_by_group.some_unscheduled(key, 1)
        group = self._groups.of(pods[0]) if pods else None
        if group is None:
            return
        members = self._groups.members(pods[0])
        if group.problem or members.ready_count < max(group.minimum, members.count):
            self._core.preemptions.withdraw(key)
        else:
            self._core.queue.wake(key, label)


def _parent_of(podgroup: KubernetesPodGroup) -> str | None:
    return podgroup.spec.parent_composite_pod_group_name
