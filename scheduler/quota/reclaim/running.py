"""The units that run, as a decision by policies asks for them: it reads no more of them than it needs.

Gangs are broken last: within a priority, units that no gang needs go first, such as spare members.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, Protocol

import msgspec

from scheduler.api.pods.importance import started
from scheduler.api.pods.pod import Pod
from scheduler.quota.policies import Policy
from scheduler.quota.reclaim.units import Preemptor, QuotaUnit, may_evict
from scheduler.state.eviction_order import EvictionOrder
from scheduler.state.share_usage import ShareSelector

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
    ) -> None:
        """`selectors` by share; `whole` returns the unit that goes with a pod, None if it may not go."""
        self._order = order
        self._selectors = selectors
        self._whole = whole
        self._left = MAX_UNITS

    def names(self) -> Iterable[str]:
        return self._selectors

    def candidates(self, share: str, policy: Policy, preemptor: Preemptor) -> Iterator[QuotaUnit]:
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


class SpareFirst(NamedTuple):
    """Implements Running."""

    runs: Running
    spare_of: SpareOf

    def names(self) -> Iterable[str]:
        return self.runs.names()

    def candidates(self, share: str, policy: Policy, preemptor: Preemptor) -> Iterator[QuotaUnit]:
        return spare_first(self.runs.candidates(share, policy, preemptor), self.spare_of)


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
