"""Preemptors that ask quotas for space, the units that may be evicted for them, and the order of these.

Units belong to shares without children. Candidates come in Kueue's order (pkg/scheduler/preemption/common/ordering.go):
of other shares, of low priority, new, by uid. Kueue has those first that are evicted already; here they count as gone
before the choice begins.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from scheduler.framework.preemption.victims import Unit
from scheduler.quota.policies import Policy
from scheduler.quota.tree import ShareTree

NO_LIMITS: Final[Mapping[str, int]] = {}

Order = tuple[int, bool, int, str]
"""The rank of a unit among the candidates of its share: priority, whether it breaks a gang, age, uid."""


class Preemptor(msgspec.Struct, frozen=True, kw_only=True):
    """A pod or group that waits for quota, for a node, or for both."""

    share: str
    """Empty, or not in the tree: without quota."""

    request: Mapping[str, int]
    priority: int = 0
    queued_at: int = 0
    """In microseconds; of two that are equal in everything else the one that was queued first is first."""

    contested: frozenset[str] = frozenset()
    """The resources that others have to give up.

    Empty: those that the request is short of, or, if it is short of none, all it asks for.
    """


class QuotaUnit(Unit, frozen=True, kw_only=True, eq=False):
    """A unit that holds quota since it `started`."""

    share: str
    """Empty: without quota."""

    usage: Mapping[str, int]
    queued_at: int = 0
    """On the clock of `Preemptor.queued_at`."""

    breaks_gang: bool = False
    """Whether a gang has fewer pods than it needs without this unit, and those that come before it."""

    @property
    def order(self) -> Order:
        """The rank among the candidates of one share: least important first."""
        return self.priority, self.breaks_gang, -self.started, self.uid


def total(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up amounts, by resource."""
    found: dict[str, int] = {}
    for each in amounts:
        for resource, amount in each.items():
            found[resource] = found.get(resource, 0) + amount
    return found


def may_evict(policy: Policy, preemptor: Preemptor, unit: QuotaUnit) -> bool:
    """Say whether a policy lets a preemptor evict a unit. Rule: Kueue's SatisfiesPreemptionPolicy."""
    if policy is Policy.ANY:
        return True
    if policy is Policy.NEVER:
        return False
    if unit.priority != preemptor.priority:
        return unit.priority < preemptor.priority
    return policy is Policy.LOWER_OR_NEWER_EQUAL_PRIORITY and preemptor.queued_at < unit.queued_at


def gives_back(tree: ShareTree, path: Iterable[str], unit: QuotaUnit, resources: Iterable[str]) -> bool:
    """Say whether a unit holds one of these resources of which all shares of a path use more than they are guaranteed.

    Without it two shares could evict each other forever, as each borrows something that the other does not ask for.
    """
    return any(
        unit.usage.get(each, 0) > 0 and all(tree.holds_more(name, (each,)) for name in path) for each in resources
    )


def cuts_guarantee(tree: ShareTree, path: Iterable[str], unit: QuotaUnit, resources: Iterable[str]) -> bool:
    """Say whether a share of a path that borrows would use less than it is guaranteed if a unit below it were gone."""
    return any(
        (usage := tree.held(name, each)) > tree.quota(name, each) > usage - unit.usage.get(each, 0)
        for name in path
        for each in resources
    )
