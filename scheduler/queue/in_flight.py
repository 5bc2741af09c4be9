"""Popped pods, and the events since then: an attempt may have missed them.

Rule: pkg/scheduler/backend/queue/active_queue.go at v1.36.3 (inFlightPods, inFlightEvents). An event
is recorded once for all pods in flight; a pod remembers how long the log was when it was popped.

Unlike there the log is bounded: a pod that waits ten minutes for its volume would otherwise hold every object of the
cluster that changed meanwhile. A pod that was popped before the dropped events gets one that may help any pod instead.
"""

import itertools
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from scheduler.api.pods.pod import Pod
from scheduler.api.recent_caches import weight_of
from scheduler.framework.events import ANY, Action, ClusterEvent
from scheduler.framework.queued import QueuedPod

POD_POPPED: Final = "PodPopped"
"""How kube-scheduler's metric labels the entry of a pod in flight."""

UNWEIGHED: Final = 256
"""Events in a log that is not weighed: it is longer only when a pod stays in flight for long."""

MAX_BYTES: Final = 32 << 20
"""Of the events beyond UNWEIGHED. When they take more, the older half of the log is dropped."""


class ObservedEvent(NamedTuple):
    """An event, with the object before and after it."""

    event: ClusterEvent
    old: object | None
    new: object | None


_EVENT_BYTES: Final = 200
"""Size of an event without its objects."""


def may_help_any(label: str) -> ObservedEvent:
    """Return an event that may help any pod."""
    return ObservedEvent(ClusterEvent(ANY, Action.ALL, label), None, None)


DROPPED: Final = may_help_any("DroppedEvents")
"""In place of the events that were dropped from the log."""


@dataclass(slots=True, eq=False)
class Flight:
    """One pod between pop and done."""

    queued: QueuedPod
    start: int
    """Number of the first event after it was popped."""

    newest: Pod
    """The version in which it returns to the queue; `queued` keeps the one that is being tried."""

    deleted: bool = False
    own_events: list[ObservedEvent] = field(default_factory=list)
    """Events that concern this pod alone."""
    on_delete: Callable[[], None] | None = None
    """Cancels an attempt that waits for extenders."""


class InFlightPods:
    """Pods by UID, in the order in which they were popped."""

    __slots__ = ("_bytes", "_events", "_flights", "_start", "_weights")

    def __init__(self) -> None:
        # Pods mostly leave at the front; to find its first item, a plain dict would step over all that have left.
        self._flights: OrderedDict[str, Flight] = OrderedDict()
        self._events: deque[ObservedEvent] = deque()
        self._start = 0
        """Number of the first event that is stored."""
        self._weights: deque[int] = deque()
        """The bytes of the events from number `UNWEIGHED` on."""
        self._bytes = 0
        """Their sum."""

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, uid: object) -> bool:
        return uid in self._flights

    def __iter__(self) -> Iterator[Flight]:
        return iter(self._flights.values())

    def get(self, uid: str) -> Flight | None:
        return self._flights.get(uid)

    def newest(self, uid: str) -> Pod | None:
        """Return the newest version of a pod; None if it is not in flight, or was deleted."""
        flight = self._flights.get(uid)
        return None if flight is None or flight.deleted else flight.newest

    def start(self, queued: QueuedPod) -> None:
        """Remember a popped pod, which must not be in flight yet."""
        self._flights[queued.pod.uid] = Flight(queued, self._start + len(self._events), queued.pod)

    def record(self, observed: ObservedEvent) -> None:
        """Store an event for every pod in flight."""
        if self._flights:
            self._events.append(observed)
            if len(self._events) > UNWEIGHED:
                self._weigh(observed)

    def since(self, flight: Flight) -> list[ObservedEvent]:
        """Return the events since a pod was popped, the latest first."""
        count = self._start + len(self._events) - flight.start
        missed = (DROPPED,) if flight.start < self._start else ()
        return [*reversed(flight.own_events), *missed, *itertools.islice(reversed(self._events), count)]

    def event_counts(self) -> Counter[str]:
        """Count the stored events by label, the pods themselves as PodPopped."""
        counts = Counter(observed.event.label for observed in self._events)
        for flight in self:
            counts.update(observed.event.label for observed in flight.own_events)
        counts[POD_POPPED] = len(self._flights)  # zero as well: the series exists
        return counts

    def finish(self, uid: str) -> Flight | None:
        """Forget a pod, and the events that no other pod in flight needs."""
        flight = self._flights.pop(uid, None)
        if flight is not None:
            self._prune()
        return flight

    def clear(self) -> None:
        self._flights.clear()
        self._prune()

    def _prune(self) -> None:
        oldest = next(iter(self._flights.values()), None)
        needed_from = self._start + len(self._events) if oldest is None else oldest.start
        self._drop(needed_from - self._start)

    def _weigh(self, observed: ObservedEvent) -> None:
        weight = _EVENT_BYTES + weight_of(_parts_of(observed.old), _parts_of(observed.new))
        self._weights.append(weight)
        self._bytes += weight
        if self._bytes > MAX_BYTES:
            self._drop(len(self._events) // 2)

    def _drop(self, count: int) -> None:
        """Drop so many of the oldest events."""
        for _ in range(count):
            self._events.popleft()
            self._start += 1
        while len(self._weights) > max(0, len(self._events) - UNWEIGHED):
            self._bytes -= self._weights.popleft()

    def check_invariants(self) -> None:
        """Starts are in order, and the log begins where the oldest pod needs it, or later if events were dropped."""
        starts = [flight.start for flight in self]
        assert starts == sorted(starts)
        assert starts[0] <= self._start if starts else not self._events
        assert len(self._weights) == max(0, len(self._events) - UNWEIGHED)
        assert self._bytes == sum(self._weights) <= MAX_BYTES
        assert all(flight.queued.pod.uid == flight.newest.uid == uid for uid, flight in self._flights.items())


def _parts_of(changed: object | None) -> object:
    """Return what to weigh of an object: of one that is not a struct, the content that came over the wire."""
    return getattr(changed, "content", changed)
