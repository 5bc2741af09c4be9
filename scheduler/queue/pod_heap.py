"""A priority queue of pods, any of which can be removed or moved."""

import heapq
import itertools
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, TypeAlias

from scheduler.framework.queued import QueuedPod

HeapEntry: TypeAlias = tuple[Any, int, QueuedPod]
"""(key, number, pod). The number makes equals first in, first out, and keeps pods from being compared."""


class PodHeap:
    """A heap of queued pods by UID.

    A removed or moved pod leaves its old entry in the heap, where it is skipped once it comes to the top. The
    heap is rebuilt when most of its entries are such leftovers.
    """

    __slots__ = ("_entries", "_heap", "_key", "_numbers")

    def __init__(self, key: Callable[[QueuedPod], Any]) -> None:
        """`key` is called when a pod is added and on `rekey`, never while the heap is being sorted."""
        self._key = key
        self._entries: dict[str, HeapEntry] = {}
        self._heap: list[HeapEntry] = []
        self._numbers = itertools.count()

    def use(self, key: Callable[[QueuedPod], Any], *, same_order: bool) -> None:
        """Sort by another key from now on; every pod gets its new place unless the key gives `same_order`."""
        self._key = key
        if not same_order:
            self._entries = {uid: (key(queued), number, queued) for uid, (_, number, queued) in self._entries.items()}
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, uid: str) -> bool:
        return uid in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        """Yield the pods in no particular order."""
        return map(itemgetter(2), self._entries.values())

    def get(self, uid: str) -> QueuedPod | None:
        entry = self._entries.get(uid)
        return None if entry is None else entry[2]

    def add(self, queued: QueuedPod) -> None:
        """Add a pod that is not in the heap yet."""
        entry = (self._key(queued), next(self._numbers), queued)
        self._entries[queued.pod.uid] = entry
        heapq.heappush(self._heap, entry)

    def rekey(self, uid: str) -> None:
        """Move a changed pod to its new place; a pod with the same key keeps its place."""
        key, _, queued = self._entries[uid]
        if self._key(queued) != key:
            self.remove(uid)
            self.add(queued)

    def remove(self, uid: str) -> QueuedPod | None:
        """Take a pod out, wherever it is."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return None
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
        return entry[2]

    def clear(self) -> None:
        """Forget all pods."""
        self._entries.clear()
        self._heap.clear()

    def peek(self) -> QueuedPod | None:
        """Return the first pod without taking it out."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[2].pod.uid) is entry:
                return entry[2]
            heapq.heappop(heap)
        return None

    def pop(self) -> QueuedPod | None:
        """Take the first pod out."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heapq.heappop(heap)
            queued = entry[2]
            if entries.get(queued.pod.uid) is entry:
                del entries[queued.pod.uid]
                return queued
        return None

    def check_invariants(self) -> None:
        """Every pod is in the heap once, under its UID and its present key."""
        for uid, entry in self._entries.items():
            assert entry[2].pod.uid == uid
            assert self._key(entry[2]) == entry[0], uid
        present = [entry for entry in self._heap if self._entries.get(entry[2].pod.uid) is entry]
        assert len(present) == len(self._entries)
        assert all(not self._heap[child] < self._heap[(child - 1) // 2] for child in range(1, len(self._heap)))
