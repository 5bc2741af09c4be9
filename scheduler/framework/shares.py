"""Shares of a cluster: the one notion of them, whatever API or argument declares them.

A pod counts against one share, or against none: then no quota limits it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

import msgspec

from scheduler.api.objects import LabelSelector
from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import NOTHING
from scheduler.framework.groups.pod_groups import GroupMembers, PodGroup

IS_CHARGED: Final = "charged with its group"
"""In the state of a cycle: whether there is space in the pod's share was asked for its group as a whole."""

DECLARED: Final = "shares"
"""The source of the shares that a plugin's arguments declare."""


class ShareKey(NamedTuple):
    """The identity of a share: two of one name may be declared by different APIs."""

    source: str
    """The resource of its object, as in events; `shares` for those of a plugin's arguments."""

    name: str
    """With its namespace, if its object has one: `team-a/quota`."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DeclaredShare:
    """A share as a plugin's arguments declare it. Quantities are those of Kubernetes, such as `500m` or `64Gi`."""

    name: str
    parent: str = ""
    """Empty for a root."""

    minimum: Mapping[str, str | int | float] = field(default_factory=dict)
    """Guaranteed: resource → quantity; `pods` is how many there may be."""

    maximum: Mapping[str, str | int | float] = field(default_factory=dict)
    """Never exceeded, with all shares below; a resource that is left out has no limit."""

    borrowing_limit: Mapping[str, str | int | float] = field(default_factory=dict)
    """How much more than what is guaranteed it may use of others."""

    lending_limit: Mapping[str, str | int | float] = field(default_factory=dict)
    """How much of what is guaranteed others may use; all of it where it is left out."""

    within_share: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    """The pods of the share itself that its pods may evict: `withinClusterQueue` of Kueue."""

    reclaim: Literal["Never", "LowerPriority", "Any"] = "Never"
    """The pods of shares that borrow which its pods may evict: `reclaimWithinCohort` of Kueue."""

    weight: float = 1.0
    priority: int = 0
    namespaces: Sequence[str] = ()
    """Pods of these namespaces count against it."""

    namespace_selector: LabelSelector | None = None
    """So do those of namespaces with such labels."""

    pod_labels: Mapping[str, str] = field(default_factory=dict)
    """Only pods with these labels do: of all namespaces, unless the two fields above name some."""


class ShareLack(msgspec.Struct, frozen=True):
    """An amount that a request is short of. Amounts of all resources are those of `Pod.requests`."""

    share: str
    """The share, or the ancestor of it, that lacks it."""

    resource: str
    missing: int
    is_limit: bool
    """Whether the share may not use more, although others might have it."""

    borrowers: Mapping[str, int] = NOTHING
    """The shares below that use more than they are guaranteed, and how much more; the most first."""


class ShareRefusal(msgspec.Struct, frozen=True):
    """Why a pod or a group may not start now."""

    key: ShareKey
    message: str
    lacks: tuple[ShareLack, ...] = ()
    """By resource, from the share up to its root. Empty if there is something wrong with the share itself."""

    subject: str = ""
    """The pod that the message names; empty if it names none."""

    def about(self, pod: Pod) -> "ShareRefusal":
        """Return the same for another pod that needs as much."""
        name = str(pod)
        if self.subject in ("", name):
            return self
        message = self.message.replace(self.subject, name, 1)
        return msgspec.structs.replace(self, message=message, subject=name)


class ShareState(msgspec.Struct, frozen=True, kw_only=True):
    """A share at this moment; every mapping is by resource."""

    key: ShareKey
    parent: str = ""
    """Empty for a root."""

    minimum: Mapping[str, int] = NOTHING
    maximum: Mapping[str, int] = NOTHING
    """A resource without a limit has none."""

    used: Mapping[str, int] = NOTHING
    weight: float = 1.0
    priority: int = 0
    problem: str = ""
    """Why none of its pods starts; empty if the share makes sense."""


class NodeKind(msgspec.Struct, frozen=True):
    """Nodes by their labels; of equal kinds one may be kept in the place of the other."""

    wanted: tuple[tuple[str, str], ...]
    """All of these labels."""

    excluded: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Not all labels of any of these."""

    @property
    def labels(self) -> list[str]:
        """The labels that count."""
        return sorted({key for labels in (self.wanted, *self.excluded) for key, _ in labels})

    def includes(self, labels: Mapping[str, str]) -> bool:
        """Say whether a node with these labels is of the kind."""
        has = labels.items()
        return has >= dict(self.wanted).items() and not any(has >= dict(each).items() for each in self.excluded)


class DisruptionBudgets(Protocol):
    """The PodDisruptionBudgets, with those pods counted as gone that are chosen so far."""

    def allow(self, pods: Sequence[Pod]) -> bool:
        """Say whether these may go, too, without one being violated."""

    def use(self, pods: Sequence[Pod]) -> bool:
        """Count them as gone; return whether one is violated."""


class ReclaimVictims(NamedTuple):
    """The pods that have to go so that another one gets quota."""

    pods: Sequence[Pod]
    """The most important first."""

    violations: int
    """How many of them a disruption budget protects."""

    breaking: int
    """Without how many of them a gang has fewer pods than it needs."""


class ShareReclaim(Protocol):
    """The quota that others may have to give back to one pod, or group. Valid as long as nothing else changes."""

    @property
    def goes_by_nodes(self) -> bool:
        """Whether each node is looked at by itself first in any case, as scheduler-plugins does."""

    @property
    def helps(self) -> bool:
        """Whether there are shares whose pods might be evicted; it is known without a look at pods."""

    @property
    def takes_lower_only(self) -> bool:
        """Whether only pods of lower priority may be evicted."""

    def may_give(self, pod: Pod) -> bool:
        """Say whether a pod is of a share whose pods might be evicted."""

    def is_leaving_for(self, pod: Pod) -> bool:
        """Say whether a pod that is terminating leaves what the pod needs."""

    def without(self, pods: Iterable[Pod]) -> AbstractContextManager[None]:
        """Count pods as gone within a `with` block: they are no victims then."""

    def fits(self) -> bool:
        """Say whether there is space in the shares now."""

    def fits_soon(self) -> bool:
        """Say whether there is space as soon as those were tried that were woken for it."""

    def fewest(
        self,
        pods: Iterable[Pod] | None,
        budgets: Callable[[], DisruptionBudgets],
        fits: Callable[[Sequence[Pod]], bool],
    ) -> ReclaimVictims:
        """Return the fewest of these pods, or of all if there are none given, without which there is space.

        That is, here and as `fits` says; none if nothing helps. Pods of a group that is disrupted as a whole go all
        or not at all. Those that violate `budgets` come last; each choice begins with all that they allow.
        """


class Shares(Protocol):
    """Knows the share of each pod, and whether there is space in it."""

    def key_of(self, pod: Pod) -> ShareKey | None:
        """Return the share that a pod counts against; None for a pod without.

        For a pod with a node it was decided when that was known first: later changes of its labels do not count.
        """
        return None

    def state_of(self, key: ShareKey) -> ShareState | None:
        """Return a share as it is now; None if there is none of that key (any more)."""
        return None

    def refusal(self, pod: Pod) -> ShareRefusal | None:
        """Say why its share keeps a pod from starting now; None if it does not."""
        return None

    def has_space_soon(self, pod: Pod, leaving: Iterable[Pod]) -> bool:
        """Say whether a pod that lacks space has it as soon as these are gone, and those were tried that were woken."""
        return False

    def takes_back(self, key: ShareKey) -> bool:
        """Say whether pods of a share may evict any, without a look at the running pods."""
        return False

    def reclaim(self, pod: Pod) -> ShareReclaim | None:
        """Begin to look for those that have to give back what a pod needs; None if its share takes nothing back."""
        return None

    def refusal_of_group(self, group: PodGroup, members: GroupMembers) -> ShareRefusal | None:
        """Say why those members that a group still needs may not start together; None if they may be tried."""
        return None

    def reclaim_for_group(self, group: PodGroup, members: GroupMembers) -> ShareReclaim | None:
        """Begin to look for those that have to give back what these need; None if their share takes nothing back."""
        return None

    def evicted(self, pods: Sequence[Pod], victims: Iterable[Pod]) -> None:
        """Take note that victims, which have their node still, go for these: a pod, or those of a group."""
        return

    def nodes_for(self, pod: Pod) -> NodeKind | None:
        """Return the nodes on which the pod would use the quota that is free; None for all nodes."""
        return None

    def leaving(self) -> Collection[str]:
        """Return the UIDs of all pods with a node that are being deleted, with or without a share."""
        return ()


class NoShares(Shares):
    """No pod has a share."""


NO_SHARES: Final[Shares] = NoShares()
