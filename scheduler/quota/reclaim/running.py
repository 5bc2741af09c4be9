"""Preemptors that ask quotas for space, and the units that may be evicted for them: no more are read than are needed.

Units belong to shares without children. Candidates come in Kueue's order (pkg/scheduler/preemption/common/ordering.go):
of low priority, new, by uid. Kueue has those first that are evicted already; here they count as gone before the choice
begins. Gangs are broken last: within a priority, units that no gang needs go first, such as spare members.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Protocol

import msgspec

from scheduler.api.pods.importance import started
from scheduler.api.pods.pod import Pod
from scheduler.framework.preemption.victims import Unit
from scheduler.quota.policies import Policy
from scheduler.quota.tree import ShareTree
from scheduler.state.eviction_order import EvictionOrder
from scheduler.state.share_usage import ShareSelector

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
    """Say whether a share of a path would use less than it is guaranteed of what a unit below it uses, without it."""
    return any(
        tree.quota(name, each) > tree.held(name, each) - amount
        for each in resources
        if (amount := unit.usage.get(each, 0))
        for name in path
    )


MAX_UNITS: Final = 10_000
"""That one decision considers, some 10 µs each: meanwhile nothing else happens."""

MAX_PUT_OFF: Final = 1_000
"""Units that are put off until there is no other one of their priority: some 10 µs each."""

SpareOf = Callable[[QuotaUnit], tuple[str, int] | None]
"""Returns the UID of a unit's gang, and how many of its pods may go; None without a gang."""


class Running(Protocol):
    """The units that run, as a decision asks for them."""

    def names(self) -> Iterable[str]:
        """Return the shares that may have any."""

    def candidates(self, share: str, policy: Policy, preemptor: Preemptor) -> Iterator[QuotaUnit]:
        """Yield those that the policy lets a preemptor evict and that use what it contests, least important first."""


class RunningUnits:
    """Implements Running for these units, which come in their order."""

    def __init__(self, units: Iterable[QuotaUnit]) -> None:
        self._shares: dict[str, list[QuotaUnit]] = {}
        for unit in units:
            self._shares.setdefault(unit.share, []).append(unit)

    def names(self) -> Iterable[str]:
        return self._shares

    def candidates(self, share: str, policy: Policy, preemptor: Preemptor) -> Iterator[QuotaUnit]:
        for unit in self._shares.get(share, ()):
            if not preemptor.contested.isdisjoint(unit.usage) and may_evict(policy, preemptor, unit):
                yield unit


class RunningPods:
    """Implements Running: those of one ledger."""

    def __init__(
        self,
        order: EvictionOrder,
        selectors: Mapping[str, Sequence[ShareSelector]],
        whole: Callable[[Pod], QuotaUnit | None],
        spare_of: SpareOf,
    ) -> None:
        """`selectors` by share; `whole` returns the unit that goes with a pod, None if it may not go."""
        self._order = order
        self._selectors = selectors
        self._whole = whole
        self._spare_of = spare_of
        self._left = MAX_UNITS

    def names(self) -> Iterable[str]:
        return self._selectors

    def candidates(self, share: str, policy: Policy, preemptor: Preemptor) -> Iterator[QuotaUnit]:
        return spare_first(self._candidates(share, policy, preemptor), self._spare_of)

    def _candidates(self, share: str, policy: Policy, preemptor: Preemptor) -> Iterator[QuotaUnit]:
        if policy is Policy.NEVER or share not in self._selectors:
            return
        below = math.inf if policy is Policy.ANY else preemptor.priority + (policy is not Policy.LOWER_PRIORITY)
        sorted_pods = [self._order.pods(selector, below) for selector in self._selectors[share]]
        seen = set[str]()
        for pod in heapq.merge(*sorted_pods, key=_order) if len(sorted_pods) > 1 else sorted_pods[0]:
            unit = self._whole(pod)
            self._left -= 1
            if self._left < 0:
                return
            if unit is None or unit.uid in seen:
                continue
            seen.add(unit.uid)
            if not preemptor.contested.isdisjoint(unit.usage) and may_evict(policy, preemptor, unit):
                yield unit


def spare_first(units: Iterable[QuotaUnit], spare_of: SpareOf) -> Iterator[QuotaUnit]:
    """Yield units, which come by priority, in their order, but those last that break a gang, gang by gang."""
    left: dict[str, int] = {}
    put_off: dict[str, list[QuotaUnit]] = {}
    count, priority = 0, 0
    for unit in units:
        if put_off and (unit.priority != priority or count == MAX_PUT_OFF):
            yield from chain(*put_off.values())
            put_off.clear()
            count = 0
        priority = unit.priority
        found = spare_of(unit)
        if found is None or left.setdefault(*found) > 0:
            if found is not None:
                left[found[0]] -= 1
            yield unit
        else:
            put_off.setdefault(found[0], []).append(msgspec.structs.replace(unit, breaks_gang=True))
            count += 1
    yield from chain(*put_off.values())


def _order(pod: Pod) -> tuple[int, int, str]:
    return pod.priority, -started(pod), pod.uid
