"""The pod or group that leaves activeQ next: the first in order, but retries cannot keep all others out forever.

Strict priority has a hole. A crowd of pods of high priority that fit nowhere, and events that wake them, fill activeQ
faster than it is emptied: backoff allows each of them an attempt every 10 s, and a few thousand of them take every
attempt there is. No other pod is tried again. So, with `starvation_seconds` = the longest backoff, after which every
pod of such a crowd has had its retry:

    three pops in a row were retries, and a pod of lower priority has waited in activeQ for that long
    ─► the one of these that has waited longest is next

Pods that have never been tried are not retries: those of high priority still go before all others. Among pods of one
priority none starves, as a failed attempt puts a pod behind its equals. kube-scheduler has no such rule.
"""

import itertools
import math
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from scheduler.framework.queued import Entry
from scheduler.queue.entity_heap import EntityHeap

RETRIES_IN_A_ROW: Final = 3

Arrival: TypeAlias = tuple[int, float, Entry]
"""(number, when it entered activeQ, pod or group)."""


class Fairness:
    """Pops from activeQ, and remembers in which order the pods of each priority entered it."""

    __slots__ = ("_active", "_by_priority", "_count", "_now", "_numbers", "_retries", "limit")

    def __init__(self, active: EntityHeap[Entry], now: Callable[[], float], starvation_seconds: float) -> None:
        """`starvation_seconds`: how long a pod may wait while others are retried; infinity for strict priority."""
        self._active = active
        self._now = now
        self.limit = starvation_seconds
        self._by_priority: dict[int, deque[Arrival]] = {}
        self._count = 0
        """Entries of all priorities, those of pods that have left included."""
        self._numbers = itertools.count(1)
        self._retries = 0

    def entered(self, queued: Entry) -> None:
        """Record a pod that was just added to activeQ."""
        if self.limit == math.inf:
            return
        queued.activation = next(self._numbers)
        entries = self._by_priority.get(queued.priority)
        if entries is None:
            entries = self._by_priority[queued.priority] = deque()
        entries.append((queued.activation, self._now(), queued))
        self._count += 1
        if self._count > 2 * len(self._active) + 64:
            self._sweep()

    def clear(self) -> None:
        """Forget all pods, after activeQ was cleared."""
        self._by_priority.clear()
        self._count = 0

    def pop(self) -> Entry | None:
        """Take the next pod out; None if activeQ is empty."""
        first = self._active.peek()
        if first is None:
            return None
        if first.attempts == 0:
            self._retries = 0
        elif self._retries < RETRIES_IN_A_ROW:
            self._retries += 1
        else:
            starving = self._longest_waiting(first.priority)
            if starving is not None:
                self._retries = 0
                self._active.remove(starving.key)
                self._left(starving)
                return starving
        popped = self._active.pop()
        if popped is not None:
            self._left(popped)
        return popped

    def _left(self, queued: Entry) -> None:
        """Forget a popped pod; otherwise a queue that drains would keep all its pods in memory."""
        entries = self._by_priority.get(queued.priority)
        if entries and entries[0][2] is queued:  # usually: equals leave in the order in which they entered
            entries.popleft()
            self._count -= 1
        elif self._count > 2 * len(self._active) + 64:
            self._sweep()

    def _longest_waiting(self, below: int) -> Entry | None:
        """Return the longest-waiting pod of lower priority, if it has waited too long."""
        longest: Arrival | None = None
        for priority, entries in self._by_priority.items():
            if priority >= below:
                continue
            while entries and not self._is_valid(entries[0]):
                entries.popleft()
                self._count -= 1
            if entries and (longest is None or entries[0][0] < longest[0]):
                longest = entries[0]
        return longest[2] if longest is not None and self._now() - longest[1] >= self.limit else None

    def _is_valid(self, entry: Arrival) -> bool:
        """Return whether the pod has been in activeQ since then; it may have left and come back."""
        number, _, queued = entry
        return queued.activation == number and self._active.get(queued.key) is queued

    def _sweep(self) -> None:
        valid = {priority: deque(filter(self._is_valid, entries)) for priority, entries in self._by_priority.items()}
        self._by_priority = {priority: entries for priority, entries in valid.items() if entries}
        self._count = sum(map(len, self._by_priority.values()))

    def check_invariants(self) -> None:
        """Every pod of activeQ has one entry, and entries are in the order of time."""
        assert self._count == sum(map(len, self._by_priority.values()))
        valid = [list(filter(self._is_valid, entries)) for entries in self._by_priority.values()]
        assert self.limit == math.inf or sum(map(len, valid)) == len(self._active)
        assert all([e[:2] for e in entries] == sorted(e[:2] for e in entries) for entries in valid)
