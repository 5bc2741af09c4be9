"""A priority queue of pods and groups, any of which can be removed or moved."""

import heapq
import itertools
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Generic, TypeAlias, TypeVar

from scheduler.framework.queued import EntityKey, QueuedEntity

E = TypeVar("E", bound=QueuedEntity)

HeapEntry: TypeAlias = tuple[Any, int, E]
"""(sort key, number, entry). The number makes equals first in, first out, and keeps entries from being compared."""


class EntityHeap(Generic[E]):
    """A heap of queued pods and groups by key.

    A removed or moved one leaves its old place in the heap, where it is skipped once it comes to the top. The
    heap is rebuilt when most of it is such leftovers.
    """

    __slots__ = ("_entries", "_heap", "_key", "_numbers")

    def __init__(self, key: Callable[[E], Any]) -> None:
        """`key` is called when something is added and on `rekey`, never while the heap is being sorted."""
        self._key = key
        self._entries: dict[EntityKey, HeapEntry[E]] = {}
        self._heap: list[HeapEntry[E]] = []
        self._numbers = itertools.count()

    def use(self, key: Callable[[E], Any], *, same_order: bool) -> None:
        """Sort by another key from now on; everything gets its new place unless the key gives `same_order`."""
        self._key = key
        if not same_order:
            self._entries = {each: (key(queued), number, queued) for each, (_, number, queued) in self._entries.items()}
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[E]:
        """Yield all in no particular order."""
        return map(itemgetter(2), self._entries.values())

    def get(self, key: EntityKey) -> E | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[2]

    def add(self, queued: E) -> None:
        """Add one that is not in the heap yet."""
        entry = (self._key(queued), next(self._numbers), queued)
        self._entries[queued.key] = entry
        heapq.heappush(self._heap, entry)

    def rekey(self, key: EntityKey) -> None:
        """Move a changed one to its new place; with the same sort key it keeps its place."""
        sort_key, _, queued = self._entries[key]
        if self._key(queued) != sort_key:
            self.remove(key)
            self.add(queued)

    def remove(self, key: EntityKey) -> E | None:
        """Take one out, wherever it is."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        if len(self._heap) > 2 * len(self._entries) + 64:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
        return entry[2]

    def clear(self) -> None:
        """Forget all entries."""
        self._entries.clear()
        self._heap.clear()

    def peek(self) -> E | None:
        """Return the first without taking it out."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heap[0]
            if entries.get(entry[2].key) is entry:
                return entry[2]
            heapq.heappop(heap)
        return None

    def pop(self) -> E | None:
        """Take the first out."""
        heap, entries = self._heap, self._entries
        while heap:
            entry = heapq.heappop(heap)
            queued = entry[2]
            if entries.get(queued.key) is entry:
                del entries[queued.key]
                return queued
        return None

    def check_invariants(self) -> None:
        """Everything is in the heap once, under its key and its present sort key."""
        for key, entry in self._entries.items():
            assert entry[2].key == key
            assert self._key(entry[2]) == entry[0], key
        present = [entry for entry in self._heap if self._entries.get(entry[2].key) is entry]
        assert len(present) == len(self._entries)
        assert all(not self._heap[child] < self._heap[(child - 1) // 2] for child in range(1, len(self._heap)))
