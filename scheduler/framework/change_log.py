"""Which rows changed since somebody last looked."""

from collections.abc import Collection, Iterable, Sequence


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


class LogReader:
    """Who keeps something that depends on the rows of a table, and brings it up to date."""

    __slots__ = ("_logs", "_positions")

    def __init__(self, logs: Iterable[ChangeLog]) -> None:
        self._logs = tuple(logs)
        self._positions = [log.position for log in self._logs]

    def stale_rows(self) -> Collection[int] | None:
        """Take over the positions of now; return which rows changed since, None if it could be any."""
        stale: set[int] | None = None
        everything = False
        positions = self._positions
        for i, log in enumerate(self._logs):
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
