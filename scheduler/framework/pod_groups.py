"""Groups of pods that are scheduled together: the one notion of them, whatever API they come from."""

from collections.abc import Collection
from typing import Final, Protocol

import msgspec

from scheduler.api.pod import Pod


class PodGroup(msgspec.Struct, frozen=True):
    """A group, and how its pods are to be placed."""

    namespace: str
    name: str
    uid: str
    source: str
    """The resource of its object, as in events."""

    minimum: int = 0
    """How many members need a node before any is bound; 0: each is bound as soon as it has one."""

    priority: int = 0
    topology_keys: tuple[str, ...] = ()
    """Labels of nodes: all members go to nodes with the same value of each."""

    has_constraints: bool = False
    """Whether its object says anything of where its pods go together, if only that there is no topology key."""

    is_disrupted_together: bool = False
    """Whether it is evicted as a whole."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class GroupMembers(Protocol):
    """The pods of one group: a live view."""

    @property
    def count(self) -> int:
        """How many there are: those with a node, and those without one that are for this scheduler."""

    @property
    def scheduled_count(self) -> int:
        """How many of them have a node, or are assumed to."""

    @property
    def unscheduled(self) -> Collection[Pod]:
        """The pods without a node."""

    @property
    def assumed(self) -> Collection[str]:
        """The UIDs of those that are assumed on their nodes, and not bound as far as the watch has shown."""

    @property
    def scheduled(self) -> Collection[Pod]:
        """The pods with a node, or assumed to have one."""


class PodGroups(Protocol):
    """Knows the group of each pod."""

    @property
    def are_tried_in_placements(self) -> bool:
        """Whether each group is tried in several placements: then no member of it may evict others by itself."""

    @property
    def preempt_as_a_whole(self) -> bool:
        """Whether pods are evicted for a group as a whole, and for none of its members alone."""

    def name_of(self, pod: Pod) -> str:
        """Return the name of a pod's group, which may not exist; empty for a pod without."""

    def of(self, pod: Pod) -> PodGroup | None:
        """Return the group of a pod; None if it has none, or if the group does not exist (yet)."""

    def members(self, pod: Pod) -> GroupMembers:
        """Return the members of a pod's group."""


class _NoMembers:
    """The members of no group."""

    __slots__ = ()

    count: Final = 0
    scheduled_count: Final = 0
    unscheduled: Final[Collection[Pod]] = ()
    assumed: Final[Collection[str]] = ()
    scheduled: Final[Collection[Pod]] = ()


NO_MEMBERS: Final[GroupMembers] = _NoMembers()


class NoPodGroups:
    """No pod has a group."""

    __slots__ = ()

    are_tried_in_placements: Final = False
    preempt_as_a_whole: Final = False

    def name_of(self, pod: Pod) -> str:
        return ""

    def of(self, pod: Pod) -> PodGroup | None:
        return None

    def members(self, pod: Pod) -> GroupMembers:
        return NO_MEMBERS


NO_POD_GROUPS: Final[PodGroups] = NoPodGroups()
