"""Pods and groups that wait a while before their next attempt.

Rule: pkg/scheduler/backend/queue/backoff_queue.go at v1.36.3, with SchedulerPopFromBackoffQ on, as by default. The
end of a wait is rounded down to a whole window, and within a window they are in the order of activeQ: then those
of higher priority come first when some leave early, because activeQ is empty.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from scheduler.framework.queued import EntityKey, Entry, QueuedGroup
from scheduler.queue.entity_heap import EntityHeap

ORDERING_WINDOW: Final = 1.0
"""Seconds. Backoffs are rounded down to it, and pods whose backoff is over are moved this often."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait of a pod or group after a failed attempt: doubled with each further one, up to a limit."""

    initial: float = 1.0
    """Seconds after the first failed attempt. Must be positive."""

    limit: float = 10.0
    """Seconds that no wait of a pod exceeds, nor one of a group times the root of its pods. At least `initial`."""

    def __post_init__(self) -> None:
        if not 0 < self.initial <= self.limit < math.inf:
            raise ValueError(f"need 0 < initial <= limit, got {self.initial} and {self.limit}")

    def duration(self, failures: int, pods: int = 1) -> float:
        """Return the seconds to wait after this many failed attempts of so many pods together."""
        if failures <= 0:
            return 0.0
        # Python raises where a power leaves the range of floats; any limit is reached long before.
        return min(self.initial * 2.0 ** min(failures - 1, 1000), self.limit * math.sqrt(pods))


class BackoffQueue:
    """backoffQ: refused pods in one heap, those that have to wait to the end in another, as after an error.

    Only refused pods may leave early. An error's backoff protects the API server, a refusal's only saves attempts. Of
    a group that saves too much: it waits to the end.
    """

    __slots__ = ("_backoff", "_now", "_refused", "_sort_key", "_to_the_end")

    def __init__(self, backoff: Backoff, sort_key: Callable[[Entry], Any], now: Callable[[], float]) -> None:
        self._backoff = backoff
        self._now = now
        self._sort_key = sort_key
        self._refused = EntityHeap[Entry](self._key_of_refused)
        self._to_the_end = EntityHeap[Entry](self.expiration)

    def _key_of_refused(self, queued: Entry) -> Any:
        return self.expiration(queued), self._sort_key(queued)

    def use(self, backoff: Backoff, sort_key: Callable[[Entry], Any], *, same_order: bool) -> None:
        """Use another backoff and order from now on. Pods that wait already wait as long as before."""
        self._backoff = backoff
        self._sort_key = sort_key
        self._refused.use(self._key_of_refused, same_order=same_order)

    def __len__(self) -> int:
        return len(self._refused) + len(self._to_the_end)

    def __contains__(self, key: object) -> bool:
        return key in self._refused or key in self._to_the_end

    def __iter__(self) -> Iterator[Entry]:
        yield from self._refused
        yield from self._to_the_end

    def get(self, key: EntityKey) -> Entry | None:
        return self._refused.get(key) or self._to_the_end.get(key)

    def add(self, queued: Entry) -> None:
        """Add one that is not in the queue yet: it waits to the end, or, a refused pod, may leave early."""
        is_refused = queued.unschedulable_plugins or queued.pending_plugins
        (self._refused if is_refused and not isinstance(queued, QueuedGroup) else self._to_the_end).add(queued)

    def rekey(self, key: EntityKey) -> None:
        """Move a changed one to its new place."""
        (self._refused if key in self._refused else self._to_the_end).rekey(key)

    def remove(self, key: EntityKey) -> Entry | None:
        return self._refused.remove(key) or self._to_the_end.remove(key)

    def clear(self) -> None:
        """Forget all entries."""
        self._refused.clear()
        self._to_the_end.clear()

    def pop_early(self) -> Entry | None:
        """Take out the refused pod with the shortest remaining wait; None if there is none."""
        return self._refused.pop()

    def pop_completed(self) -> Iterator[Entry]:
        """Take out and yield those that have waited long enough."""
        for heap in (self._refused, self._to_the_end):
            while (first := heap.peek()) is not None and not self.is_backing_off(first):
                heap.remove(first.key)
                yield first

    def is_backing_off(self, queued: Entry) -> bool:
        """Return whether one still has to wait: until the ordering window in which its backoff ends is over."""
        return self.expiration(queued) >= _window(self._now())

    def expiration(self, queued: Entry) -> float:
        """Return when a backoff ends, computed once per attempt; minus infinity if it has none."""
        failures = queued.consecutive_errors_count or queued.unschedulable_count
        if failures == 0:
            return -math.inf
        if not queued.backoff_expiration:
            queued.backoff_expiration = _window(queued.timestamp + self._backoff.duration(failures, queued.size))
        return queued.backoff_expiration

    def check_invariants(self) -> None:
        """Only refused pods may leave early, and each heap is in order."""
        self._refused.check_invariants()
        self._to_the_end.check_invariants()
        assert all(queued.unschedulable_plugins or queued.pending_plugins for queued in self._refused)


def seconds_to_next_window(now: float) -> float:
    return ORDERING_WINDOW - now % ORDERING_WINDOW


def _window(time: float) -> float:
    """Round down to the start of an ordering window."""
    return time - time % ORDERING_WINDOW
