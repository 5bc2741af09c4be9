"""The members of each group of pods, and how far each of them is.

    (unknown) ──see──► UNSCHEDULED ──assume──► ASSUMED ──assign──► ASSIGNED ◄──assign── (unknown)
                            ▲                     │
                            └───────forget────────┘              any ──remove──► (unknown)

A pod without a node is a member if it is one of our profiles'; one with a node is, also if others bound it. A pod that
is assumed is a member already: what is assumed of any other is not counted. A group is known as long as it has members.

Rule: pkg/scheduler/backend/cache/podgroupstate.go at v1.36.3. One difference: a pod that others bind while it waits for
us is not unscheduled any more.
"""

from collections.abc import Callable, Collection
from typing import Final

from scheduler.api.pod import Pod
from scheduler.framework.pod_groups import NO_MEMBERS, GroupMembers


class Members:
    """The members of one group. Implements framework.pod_groups.GroupMembers."""

    __slots__ = ("_all", "_assigned", "_assumed", "_unscheduled")

    def __init__(self) -> None:
        self._all: dict[str, Pod] = {}
        """UID → newest version that the watch has shown."""
        # Dictionaries in the place of sets: their order is that of the changes, the same in each run.
        self._unscheduled: dict[str, None] = {}
        self._assumed: dict[str, Pod] = {}
        self._assigned: dict[str, None] = {}

    @property
    def count(self) -> int:
        return len(self._all)

    @property
    def scheduled_count(self) -> int:
        return len(self._assumed) + len(self._assigned)

    @property
    def unscheduled(self) -> Collection[Pod]:
        return tuple([self._all[uid] for uid in self._unscheduled])

    @property
    def assumed(self) -> Collection[str]:
        return tuple(self._assumed)

    @property
    def scheduled(self) -> Collection[Pod]:
        return (*(self._all[uid] for uid in self._assigned), *self._assumed.values())

    def see(self, pod: Pod) -> None:
        """Take over a pod without a node, or its new version."""
        uid = pod.uid
        self._all[uid] = pod
        if uid not in self._assumed and uid not in self._assigned:
            self._unscheduled[uid] = None

    def assign(self, pod: Pod) -> None:
        """Take over a pod that is bound, or its new version."""
        uid = pod.uid
        self._all[uid] = pod
        self._unscheduled.pop(uid, None)
        self._assumed.pop(uid, None)
        self._assigned[uid] = None

    def assume(self, pod: Pod) -> None:
        """A member is assumed on a node; it is ignored if it is none, or has its node already."""
        uid = pod.uid
        if uid in self._all and uid not in self._assigned:
            self._unscheduled.pop(uid, None)
            self._assumed[uid] = pod

    def forget(self, uid: str) -> None:
        """A member is assumed no longer."""
        if self._assumed.pop(uid, None) is not None:
            self._unscheduled[uid] = None

    def remove(self, uid: str) -> None:
        """A member is gone."""
        for each in (self._all, self._unscheduled, self._assumed, self._assigned):
            each.pop(uid, None)

    def check_invariants(self) -> None:
        """Each member is in one state."""
        states = [*self._unscheduled, *self._assumed, *self._assigned]
        assert sorted(states) == sorted(self._all), (states, list(self._all))


class MembersByGroup:
    """The members of all groups. Written by the cache and by the handlers of the watch."""

    def __init__(self, name_of: Callable[[Pod], str]) -> None:
        """`name_of`: the name of a pod's group, empty for a pod without."""
        self.name_of: Final = name_of
        self._groups: dict[tuple[str, str], Members] = {}

    def of(self, pod: Pod) -> GroupMembers:
        """Return the members of a pod's group."""
        return self._groups.get((pod.namespace, self.name_of(pod)), NO_MEMBERS)

    def see(self, pod: Pod) -> None:
        """A pod without a node is there, or has a new version."""
        if name := self.name_of(pod):
            self._made(pod, name).see(pod)

    def assign(self, pod: Pod) -> None:
        """A pod is bound, or has a new version since."""
        if name := self.name_of(pod):
            self._made(pod, name).assign(pod)

    def assume(self, pod: Pod) -> None:
        """A pod is assumed on a node."""
        group = self._known(pod)
        if group is not None:
            group.assume(pod)

    def forget(self, pod: Pod) -> None:
        """A pod is assumed no longer."""
        group = self._known(pod)
        if group is not None:
            group.forget(pod.uid)

    def remove(self, pod: Pod) -> None:
        """A pod is gone."""
        group = self._known(pod)
        if group is not None:
            group.remove(pod.uid)
            if not group.count:
                del self._groups[pod.namespace, self.name_of(pod)]

    def _made(self, pod: Pod, name: str) -> Members:
        key = pod.namespace, name
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Members()
        return group

    def _known(self, pod: Pod) -> Members | None:
        name = self.name_of(pod)
        return self._groups.get((pod.namespace, name)) if name else None

    def check_invariants(self) -> None:
        """No group without members, no member in two states. For tests and debugging."""
        for group in self._groups.values():
            assert group.count
            group.check_invariants()
