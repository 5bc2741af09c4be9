"""Pods that wait a while before their next attempt.

Rule: pkg/scheduler/backend/queue/backoff_queue.go at v1.36.3, with SchedulerPopFromBackoffQ on, as by default. The
end of a wait is rounded down to a whole window, and within a window pods are in the order of activeQ: then those
of higher priority come first when pods leave early, because activeQ is empty.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from scheduler.framework.queued import QueuedPod
from scheduler.queue.pod_heap import PodHeap

ORDERING_WINDOW: Final = 1.0
"""Seconds. Backoffs are rounded down to it, and pods whose backoff is over are moved this often."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a pod waits after a failed attempt: doubled with each further one, up to a limit."""

    initial: float = 1.0
    """Seconds after the first failed attempt. Must be positive."""

    limit: float = 10.0
    """Seconds that no wait exceeds. At least `initial`."""

    def __post_init__(self) -> None:
        if not 0 < self.initial <= self.limit < math.inf:
            raise ValueError(f"need 0 < initial <= limit, got {self.initial} and {self.limit}")

    def duration(self, failures: int) -> float:
        """Return the seconds to wait after this many failed attempts."""
        if failures <= 0:
            return 0.0
        # Python raises where a power leaves the range of floats; any limit is reached long before.
        return min(self.initial * 2.0 ** min(failures - 1, 1000), self.limit)


class BackoffQueue:
    """backoffQ: refused pods in one heap, those that have to wait to the end in another, as after an error.

    Only refused pods may leave early. An error's backoff protects the API server, a refusal's only saves attempts. But
    pods of groups, which are tried again whatever happens, would be tried without end.
    """

    __slots__ = ("_after_error", "_backoff", "_now", "_refused", "_sort_key")

    def __init__(self, backoff: Backoff, sort_key: Callable[[QueuedPod], Any], now: Callable[[], float]) -> None:
        self._backoff = backoff
        self._now = now
        self._sort_key = sort_key
        self._refused = PodHeap(self._key_of_refused)
        self._after_error = PodHeap(self.expiration)

    def _key_of_refused(self, queued: QueuedPod) -> Any:
        return self.expiration(queued), self._sort_key(queued)

    def use(self, backoff: Backoff, sort_key: Callable[[QueuedPod], Any], *, same_order: bool) -> None:
        """Use another backoff and order from now on. Pods that wait already wait as long as before."""
        self._backoff = backoff
        self._sort_key = sort_key
        self._refused.use(self._key_of_refused, same_order=same_order)

    def __len__(self) -> int:
        return len(self._refused) + len(self._after_error)

    def __contains__(self, uid: str) -> bool:
        return uid in self._refused or uid in self._after_error

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refused
        yield from self._after_error

    def get(self, uid: str) -> QueuedPod | None:
        return self._refused.get(uid) or self._after_error.get(uid)

    def add(self, queued: QueuedPod, *, may_leave_early: bool = True) -> None:
        """Add a pod that is not in the queue yet: it waits until its backoff is over, or, refused, may leave early."""
        is_refused = queued.unschedulable_plugins or queued.pending_plugins
        (self._refused if is_refused and may_leave_early else self._after_error).add(queued)

    def rekey(self, uid: str) -> None:
        """Move a changed pod to its new place."""
        (self._refused if uid in self._refused else self._after_error).rekey(uid)

    def remove(self, uid: str) -> QueuedPod | None:
        return self._refused.remove(uid) or self._after_error.remove(uid)

    def clear(self) -> None:
        """Forget all pods."""
        self._refused.clear()
        self._after_error.clear()

    def pop_early(self) -> QueuedPod | None:
        """Take out the refused pod with the shortest remaining wait; None if there is none."""
        return self._refused.pop()

    def pop_completed(self) -> Iterator[QueuedPod]:
        """Take out and yield the pods that have waited long enough."""
        for heap in (self._refused, self._after_error):
            while (first := heap.peek()) is not None and not self.is_backing_off(first):
                heap.remove(first.pod.uid)
                yield first

    def is_backing_off(self, queued: QueuedPod) -> bool:
        """Return whether a pod still has to wait: until the ordering window in which its backoff ends is over."""
        return self.expiration(queued) >= _window(self._now())

    def expiration(self, queued: QueuedPod) -> float:
        """Return when a pod's backoff ends, computed once per attempt; minus infinity if it has none."""
        failures = queued.consecutive_errors_count or queued.unschedulable_count
        if failures == 0:
            return -math.inf
        if not queued.backoff_expiration:
            queued.backoff_expiration = _window(queued.timestamp + self._backoff.duration(failures))
        return queued.backoff_expiration

    def check_invariants(self) -> None:
        """No error may leave early, and each heap is in order."""
        self._refused.check_invariants()
        self._after_error.check_invariants()
        assert all(queued.unschedulable_plugins or queued.pending_plugins for queued in self._refused)


def seconds_to_next_window(now: float) -> float:
    return ORDERING_WINDOW - now % ORDERING_WINDOW


def _window(time: float) -> float:
    """Round down to the start of an ordering window."""
    return time - time % ORDERING_WINDOW
