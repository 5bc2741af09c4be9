"""Which rows of a table changed since somebody last looked."""

from collections.abc import Sequence


class ChangeLog:
    """Rows in the order in which they changed; a reader keeps a position and asks what came after it.

    Bounded: when it grows beyond `limit`, the older half is dropped, and readers from before then are told that
    anything may have changed.
    """

    __slots__ = ("_dropped", "_rows", "limit", "position")

    def __init__(self, limit: int = 4096) -> None:
        self.limit = limit
        self.position = 0
        """Where a reader who has seen everything stands. A plain attribute: it is read for every decision."""
        self._rows: list[int] = []
        self._dropped = 0

    def mark(self, row: int) -> None:
        self._rows.append(row)
        self.position += 1
        if len(self._rows) > self.limit:
            half = len(self._rows) // 2
            del self._rows[:half]
            self._dropped += half

    def mark_all(self) -> None:
        """Say that every row may have changed."""
        self.position += 1
        self._dropped = self.position
        self._rows.clear()

    def since(self, position: int) -> Sequence[int] | None:
        """Return the rows marked after `position`, with repeats; None if it could be any."""
        if position < self._dropped:
            return None
        return self._rows[position - self._dropped :]
