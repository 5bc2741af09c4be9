"""The changes since a reader last looked."""

from collections.abc import Collection, Iterable, Sequence
from typing import Generic, TypeVar

from scheduler.api.read_only import read_only_attribute

ItemT = TypeVar("ItemT")


class BoundedLog(Generic[ItemT]):
    """Items in the order in which they changed; a reader keeps a position and asks what came after it.

    When it grows beyond `limit`, the older half is dropped, and readers from before then learn that any item may have
    changed.
    """

    __slots__ = ("_dropped", "_items", "_position", "limit")

    def __init__(self, limit: int = 4096) -> None:
        self.limit = limit
        self._position = 0
        self._items: list[ItemT] = []
        self._dropped = 0

    position: int = read_only_attribute("_position")
    """The position of a reader that has seen every change. It is read for every decision."""

    def mark(self, item: ItemT) -> None:
        self._items.append(item)
        self._position += 1
        if len(self._items) > self.limit:
            half = len(self._items) // 2
            del self._items[:half]
            self._dropped += half

    def mark_all(self) -> None:
        """Say that any item may have changed."""
        self._position += 1
        self._dropped = self._position
        self._items.clear()

    def since(self, position: int) -> Sequence[ItemT] | None:
        """Return the items marked after `position`, with repeats; None if it could be any."""
        if position < self._dropped:
            return None
        return self._items[position - self._dropped :]


class ChangeLog(BoundedLog[int]):
    """The rows of a table that changed."""

    __slots__ = ()


class LogReader:
    """Base for values derived from the rows of a table and refreshed incrementally."""

    __slots__ = ("_positions", "logs")

    def __init__(self, logs: Iterable[ChangeLog]) -> None:
        self.logs = tuple(logs)
        self._positions = [log.position for log in self.logs]

    def stale_rows(self) -> Collection[int] | None:
        """Move on to the present position; return which rows changed since the last one, None if it could be any."""
        stale: set[int] | None = None
        everything = False
        positions = self._positions
        for i, log in enumerate(self.logs):
            position = log.position
            if position != positions[i]:
                changed = log.since(positions[i])
                positions[i] = position
                if changed is None:
                    everything = True
                elif stale is None:
                    stale = set(changed)
                else:
                    stale.update(changed)
        if everything:
            return None
        return () if stale is None else stale
