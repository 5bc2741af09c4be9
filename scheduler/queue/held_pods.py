"""Popped pods whose attempt waits until other attempts of its lane have ended.

The number of attempts in one *lane* is limited. A pod that is popped while its lane is full is held. The next held pod
is the first in the order of activeQ, but every fourth time the one that was held longest, as retries of important pods
could otherwise keep all others out forever: see `fairness`.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from scheduler.framework.queued import EntityKey, QueuedPod
from scheduler.queue.entity_heap import EntityHeap
from scheduler.queue.fairness import RETRIES_IN_A_ROW


class HeldPods:
    """Pods by UID, and in order by lane. Lanes without pods take no memory."""

    __slots__ = ("_by_order", "_key", "_lane_of", "_lanes")

    def __init__(self, key: Callable[[QueuedPod], Any]) -> None:
        """`key`: what activeQ sorts by."""
        self._key = key
        self._lanes: dict[Hashable, EntityHeap[QueuedPod]] = {}
        self._lane_of: dict[EntityKey, Hashable] = {}
        self._by_order: Counter[Hashable] = Counter()
        """Pods that left a lane in the order of activeQ since one left by its age."""

    def __len__(self) -> int:
        return len(self._lane_of)

    def __contains__(self, uid: object) -> bool:
        return uid in self._lane_of

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in no particular order."""
        for lane in self._lanes.values():
            yield from lane

    def get(self, uid: EntityKey) -> QueuedPod | None:
        return self._lanes[self._lane_of[uid]].get(uid) if uid in self._lane_of else None

    def use(self, key: Callable[[QueuedPod], Any], *, same_order: bool) -> None:
        """Sort by another key from now on; every pod gets its new place unless the key gives `same_order`."""
        self._key = key
        for lane in self._lanes.values():
            lane.use(key, same_order=same_order)

    def add(self, queued: QueuedPod, lane: Hashable) -> None:
        """Hold a pod that is not held yet."""
        self._lane_of[queued.key] = lane
        self._lanes.setdefault(lane, EntityHeap[QueuedPod](self._key)).add(queued)

    def rekey(self, uid: EntityKey) -> None:
        """Move a changed pod to its new place."""
        if uid in self._lane_of:
            self._lanes[self._lane_of[uid]].rekey(uid)

    def remove(self, uid: EntityKey) -> QueuedPod | None:
        """Take a pod out."""
        return self._left(self._lanes[self._lane_of[uid]].remove(uid)) if uid in self._lane_of else None

    def pop(self, lane: Hashable) -> QueuedPod | None:
        """Take out the next pod of a lane."""
        pods = self._lanes.get(lane)
        if pods is None:
            return None
        if self._by_order[lane] < RETRIES_IN_A_ROW:
            self._by_order[lane] += 1
            return self._left(pods.pop())
        self._by_order[lane] = 0
        longest = next(iter(pods))  # in the order in which they were added
        return self._left(pods.remove(longest.key))

    def clear(self) -> None:
        """Forget all pods."""
        self._lanes.clear()
        self._lane_of.clear()
        self._by_order.clear()

    def _left(self, queued: QueuedPod | None) -> QueuedPod | None:
        if queued is not None:
            lane = self._lane_of.pop(queued.key)
            if not self._lanes[lane]:
                del self._lanes[lane], self._by_order[lane]
        return queued

    def check_invariants(self) -> None:
        """Every pod is in its lane, and no lane is empty."""
        for lane, pods in self._lanes.items():
            pods.check_invariants()
            assert len(pods), lane
            assert all(self._lane_of[queued.key] == lane for queued in pods)
        assert len(self._lane_of) == sum(map(len, self._lanes.values()))
