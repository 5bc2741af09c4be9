"""Which nodes can use other devices, or fewer, than when somebody last looked."""

from collections.abc import Sequence
from typing import Final

_LIMIT: Final = 8192


class ChangedNodes:
    """Names of nodes in the order in which their devices changed; a reader keeps a position and asks what came after.

    Bounded: when it grows beyond `limit`, the older half is dropped, and readers from before then are told that any
    node may have changed.
    """

    __slots__ = ("_dropped", "_names", "limit", "position")

    def __init__(self, limit: int = _LIMIT) -> None:
        self.limit = limit
        self.position = 0
        """Where a reader who has seen everything stands."""
        self._names: list[str] = []
        self._dropped = 0

    def mark(self, name: str) -> None:
        self._names.append(name)
        self.position += 1
        if len(self._names) > self.limit:
            half = len(self._names) // 2
            del self._names[:half]
            self._dropped += half

    def mark_all(self) -> None:
        """Say that every node may have changed."""
        self.position += 1
        self._dropped = self.position
        self._names.clear()

    def since(self, position: int) -> Sequence[str] | None:
        """Return the nodes marked after `position`, with repeats; None if it could be any."""
        if position < self._dropped:
            return None
        return self._names[position - self._dropped :]
