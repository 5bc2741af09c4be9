"""The running pods, for a decision by policies, which reads no more of them than it needs."""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from scheduler.api.pods.importance import started
from scheduler.api.pods.pod import Pod
from scheduler.quota.policies import Policy
from scheduler.quota.reclaim.units import Preemptor, QuotaUnit, may_evict
from scheduler.state.eviction_order import EvictionOrder
from scheduler.state.share_usage import ShareSelector

MAX_UNITS: Final = 10_000
"""That one decision considers, some 10 µs each: meanwhile nothing else happens."""


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


def _order(pod: Pod) -> tuple[int, int, str]:
    return pod.priority, -started(pod), pod.uid
