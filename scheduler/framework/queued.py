"""An entry of the queue, with the history of its attempts: a pod, or a group of pods that is tried as a whole."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias, cast

from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import read_only_attribute
from scheduler.framework.groups.pod_groups import GroupKey

EntityKey: TypeAlias = str | GroupKey
"""The UID of a pod, or the key of a group."""


@dataclass(slots=True, eq=False)
class QueuedEntity:
    """kube-scheduler's QueuedEntityInfo. Times are seconds of the queue's clock."""

    pod: Pod
    """The pod; of a group, the one of its members that has been in the queue for longest."""

    timestamp: float
    """When it came, or came back from its last failed attempt: the order among equals."""

    attempts: int = 0
    initial_attempt_timestamp: float | None = None
    """When it first entered activeQ; the start of what `pod_scheduling_sli_duration_seconds` measures."""

    activation: int = 0
    """Number of its last entry into activeQ."""

    backoff_expiration: float = 0.0
    unschedulable_count: int = 0
    """Attempts in a row that ended unschedulable; the exponent of its backoff."""

    consecutive_errors_count: int = 0
    """Attempts in a row that ended in an error; the exponent of its backoff after errors."""

    unschedulable_plugins: set[str] = field(default_factory=set)
    """The plugins that refused it; of a group those that refused it as a whole, apart from what its members lack."""

    pending_plugins: set[str] = field(default_factory=set)
    gating_plugin: str = ""
    """The PreEnqueue plugin that keeps it out of activeQ; empty if none."""

    was_flushed: bool = False
    """Whether it left the unschedulable ones because of its age, not because of an event."""

    flushed_at: float = 0.0
    """When it was last tried because of its age; 0 if not since its last attempt."""

    created: float = field(init=False)
    """When it came into the queue; its first `timestamp`."""

    key: EntityKey = field(init=False)

    group: "QueuedGroup | None" = field(default=None, kw_only=True)
    """The group as a member of which it waits, or is being tried; None for a group."""

    @property
    def size(self) -> int:
        """How many pods it is."""
        return 1

    @property
    def priority(self) -> int:
        return self.pod.spec.priority or 0

    @property
    def gated(self) -> bool:
        return bool(self.gating_plugin)


@dataclass(slots=True, eq=False)
class QueuedPod(QueuedEntity):
    """kube-scheduler's QueuedPodInfo."""

    attempt_began: float | None = None
    """When its latest attempt began; None before the first."""

    def __post_init__(self) -> None:
        self.created = self.timestamp
        self.key = self.pod.metadata.uid

    @property
    def entity(self) -> QueuedEntity:
        """The entry of the queue that it belongs to."""
        return self if self.group is None else self.group

    @property
    def gate(self) -> str:
        """The plugin that keeps it out of activeQ, perhaps because of another member of its group."""
        return self.gating_plugin or self.entity.gating_plugin


@dataclass(slots=True, eq=False)
class QueuedGroup(QueuedEntity):
    """kube-scheduler's QueuedPodGroupInfo: one entry for all members of a group that have no node."""

    group_key: GroupKey = field(kw_only=True)
    group_priority: int | None = None
    """The priority of its object; None if that of its pods counts."""

    is_tried: bool = False
    """Whether it was popped: members that come wait apart, and those that were refused come back to it."""

    is_changed: bool = True
    """Whether something has happened to the group itself since it was popped: a member came, or it was woken."""

    was_changed: bool = True
    """Whether that was so when it was popped: what was said of its members before may not hold any more."""

    gated_members: OrderedDict[str, QueuedPod] = field(default_factory=OrderedDict)
    """Those that a PreEnqueue plugin refused when it was asked last; the first keeps the group out of activeQ."""

    _members: OrderedDict[str, QueuedPod] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.created = self.timestamp
        self.key = self.group_key

    @property
    def size(self) -> int:
        return len(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, uid: str) -> bool:
        return uid in self._members

    @property
    def priority(self) -> int:
        return (self.pod.spec.priority or 0) if self.group_priority is None else self.group_priority

    @property
    def members(self) -> Sequence[QueuedPod]:
        """The members in no particular order."""
        return tuple(self._members.values())

    @property
    def gating_member(self) -> QueuedPod | None:
        return next(iter(self.gated_members.values()), None)

    def add(self, member: QueuedPod) -> None:
        member.group = self
        if not self._members:
            self.pod = member.pod
        self._members[member.pod.metadata.uid] = member

    def remove(self, uid: str) -> QueuedPod:
        """Take a member out; another one takes its part if the group is shown by it."""
        member = self._members.pop(uid)
        self.gated_members.pop(uid, None)
        if self._members:
            self.pod = next(iter(self._members.values())).pod
        return member

    def note_gate(self, member: QueuedPod) -> None:
        """A member was asked whether a PreEnqueue plugin keeps it out."""
        if member.gating_plugin:
            self.gated_members[member.pod.metadata.uid] = member
        else:
            self.gated_members.pop(member.pod.metadata.uid, None)

    def renew(self, member: QueuedPod) -> None:
        """Take over the new version of a member."""
        if self.pod.metadata.uid == member.pod.metadata.uid:
            self.pod = member.pod

    def take_all(self) -> Sequence[QueuedPod]:
        """Take all members out."""
        members = tuple(self._members.values())
        self._members.clear()
        if self.gated_members:
            self.gated_members.clear()
        return members


Entry: TypeAlias = QueuedPod | QueuedGroup


def pods_of(entry: Entry) -> Sequence[QueuedPod]:
    """Return the pods of an entry."""
    return entry.members if isinstance(entry, QueuedGroup) else (entry,)


def in_order(members: Iterable[QueuedPod]) -> list[QueuedPod]:
    """Return the members of a group in the order in which they are tried."""
    return sorted(members, key=_order)


def _order(queued: QueuedPod) -> tuple[int, int, float, str]:
    """Rule: PodGroupMemberPodsOrderingFunc in pkg/scheduler/framework/types.go at v1.37.2."""
    return -queued.priority, -queued.attempts, queued.timestamp, queued.pod.name


class _Shown:
    """The result of `shown`."""

    __slots__ = ("_queued",)

    def __init__(self, queued: QueuedEntity) -> None:
        self._queued = queued

    gated = read_only_attribute("_queued.gated")
    priority = read_only_attribute("_queued.priority")

    @property
    def unschedulable_plugins(self) -> frozenset[str]:
        return frozenset(self._queued.unschedulable_plugins)

    @property
    def pending_plugins(self) -> frozenset[str]:
        return frozenset(self._queued.pending_plugins)


for _each in (*fields(QueuedEntity), *fields(QueuedPod)):
    if _each.name != "group" and not hasattr(_Shown, _each.name):
        setattr(_Shown, _each.name, read_only_attribute(f"_queued.{_each.name}"))


def shown(queued: QueuedEntity) -> QueuedPod:
    """Return an entry as plugins see it that are not ours: always as it is now, and read-only. A group is shown as its
    first pod, with its own priority and times.
    """
    return cast("QueuedPod", _Shown(queued))
