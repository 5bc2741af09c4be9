"""A cache with a bounded number of entries, each kept for a while."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Beyond its size, it forgets what was used least recently."""

    def __init__(self, size: int, now: Callable[[], float]) -> None:
        self._size = size
        self._now = now
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, until = entry
        if self._now() >= until:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V, seconds: float) -> None:
        """Keep it for so long; for 0 seconds, not at all."""
        if seconds <= 0:
            return
        self._entries[key] = value, self._now() + seconds
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
