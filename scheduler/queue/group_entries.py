"""The groups of the queue, and their members: which group a pod waits with, and who waits apart from it.

    its group's object is missing ──► INCOMPLETE ──the object comes──┐
    its group is being tried ───────► PENDING ──the attempt ends─────┴──► a member of the group's entry

Rule: pkg/scheduler/backend/queue/pod_group_member_pods.go at v1.37.2.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.framework.queued import QueuedGroup, QueuedPod


class Apart:
    """Members that wait apart from their group, by group."""

    def __init__(self) -> None:
        self._pods: dict[GroupKey, dict[str, QueuedPod]] = {}
        self._key_of: dict[str, GroupKey] = {}

    def __len__(self) -> int:
        return len(self._key_of)

    def __contains__(self, uid: object) -> bool:
        return uid in self._key_of

    def __iter__(self) -> Iterator[QueuedPod]:
        return chain.from_iterable(pods.values() for pods in self._pods.values())

    def key_of(self, uid: str) -> GroupKey | None:
        return self._key_of.get(uid)

    def has(self, key: GroupKey) -> bool:
        return key in self._pods

    def add(self, key: GroupKey, queued: QueuedPod) -> None:
        uid = queued.pod.uid
        self._key_of[uid] = key
        self._pods.setdefault(key, {})[uid] = queued

    def remove(self, uid: str) -> None:
        key = self._key_of.pop(uid)
        del self._pods[key][uid]
        if not self._pods[key]:
            del self._pods[key]

    def of(self, key: GroupKey) -> Sequence[QueuedPod]:
        return tuple(self._pods.get(key, {}).values())


class GroupEntries:
    """The entries that are groups, those that are being tried too, and the members of all that wait."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, QueuedGroup] = {}
        self.members: dict[str, QueuedPod] = {}
        """UID → each that waits in an entry, its `group`, or apart from it: then that is None."""
        self.incomplete = Apart()
        self.pending = Apart()

    def get(self, key: GroupKey) -> QueuedGroup | None:
        return self._groups.get(key)

    def waiting(self) -> Iterator[QueuedGroup]:
        """Yield those that are not being tried."""
        return (group for group in tuple(self._groups.values()) if not group.is_tried)

    def key_of(self, member: QueuedPod) -> GroupKey | None:
        """Return the group in which or apart from which a member waits."""
        uid = member.pod.uid
        apart = self.incomplete.key_of(uid) or self.pending.key_of(uid)
        return apart if member.group is None else member.group.group_key

    def add(self, group: QueuedGroup, members: Sequence[QueuedPod]) -> None:
        """Store a group that waits, with further members."""
        self._groups[group.group_key] = group
        for each in members:
            group.add(each)
            group.is_changed |= not each.attempts
            self.members[each.pod.uid] = each

    def put(self, place: Apart, key: GroupKey, queued: QueuedPod) -> None:
        """Have a member wait apart from its group."""
        self.members[queued.pod.uid] = queued
        place.add(key, queued)

    def take_pending(self, key: GroupKey) -> Sequence[QueuedPod]:
        """Take out all that wait until the attempt of a group is over."""
        taken = self.pending.of(key)
        for queued in taken:
            self.pending.remove(queued.pod.uid)
            del self.members[queued.pod.uid]
        return taken

    def begin(self, group: QueuedGroup) -> Sequence[QueuedPod]:
        """A group is being tried: its members, which are returned, do not wait."""
        group.is_tried, group.was_changed, group.is_changed = True, group.is_changed, False
        members = group.members
        for each in members:
            del self.members[each.pod.metadata.uid]
        return members

    def end(self, group: QueuedGroup) -> bool:
        """A group has been tried; return False, and forget it, if all of its members have their node."""
        group.is_tried = False
        if group or self.pending.has(group.group_key):
            return True
        del self._groups[group.group_key]
        return False

    def drop(self, group: QueuedGroup) -> Sequence[QueuedPod]:
        """Forget a group, and return its members; what waits apart stays there."""
        self._groups.pop(group.group_key, None)
        members = group.take_all()
        for each in members:
            if self.members.get(each.pod.uid) is each:
                del self.members[each.pod.uid]
        return members

    def leave(self, member: QueuedPod) -> None:
        """Take a member out of its group, or from those that wait apart; a group without members is forgotten."""
        uid, group = member.pod.uid, member.group
        del self.members[uid]
        if group is not None:
            group.remove(uid)
            if not group:
                del self._groups[group.group_key]
            return
        for place in (self.incomplete, self.pending):
            if uid in place:
                place.remove(uid)

    def check_invariants(self) -> None:
        """Each member is in one place, and no group waits without any."""
        waiting = {each.pod.uid: each for group in self.waiting() for each in group.members}
        apart = {each.pod.uid: each for each in (*self.incomplete, *self.pending)}
        assert len(self.members) == len(waiting) + len(apart)
        assert self.members == waiting | apart
        for group in self.waiting():
            assert group, group.key
            assert group.pod in [each.pod for each in group.members]
            assert all(each.group is group for each in group.members)
            assert all(each.gating_plugin for each in group.gated_members.values())
        assert not any(each.group for each in apart.values())
