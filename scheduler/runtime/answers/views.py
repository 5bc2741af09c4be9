"""What is kept for pods of one shape from one decision to the next: where they can run, and what is best.

    stored answers of each plugin ─► KeptPassing ──┐
                                 └─► KeptSums ─────┴─► KeptBest

Each reads what changed from the one before it, so that a decision after one placement costs a look at one row. All are
worked out anew where that is not known: after many changes, or when the table grew. The answers come from the memo,
whose generation says whether columns that were kept are still good.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

import numpy as np

from scheduler.framework.change_log import ChangeLog, LogReader
from scheduler.framework.nodes import Aspect, BoolColumn, Int64Column, Rows
from scheduler.runtime.answers.columns import FEW, Column, Memo, MemoColumn
from scheduler.runtime.live_nodes import LiveNodes

KEPT_BYTES: Final = 64 * 1024 * 1024
"""About what is kept for one profile, its stored columns apart."""

BYTES_PER_ROW: Final = 1 + 8 + 8 + 8 + 8
"""Of all that is kept for one shape: whether a row passes, its number, its sum, its rank, its place among the best."""

Ask = Callable[[int, Rows], Column | None]
"""The answers for some rows of the plugin at that position; None means 0 for all of them. May raise."""

_REFUSED: Final = -1
"""The rank of a row that does not pass: below any sum of scores."""

_SINGLY: Final = 64
"""So many rows are ranked one by one; of more, the best are looked for anew."""


class _Kept(LogReader):
    """Follows stored columns, and tells of the rows in which what it makes of them changed."""

    __slots__ = ("__weakref__", "_memo", "_nodes", "columns", "generation", "trail")

    def __init__(self, columns: Sequence[MemoColumn], aspects: Collection[Aspect], nodes: LiveNodes, memo: Memo):
        """`columns` are up to date and from `memo`; `aspects`: all that they read."""
        super().__init__(map(nodes.change_log, {*aspects, Aspect.NAME}))
        self._nodes = nodes
        self._memo = memo
        self.columns = columns
        self.generation = memo.generation
        self.trail = ChangeLog()

    @property
    def is_usable(self) -> bool:
        """Whether the columns are still what the memo would give."""
        return self.generation == self._memo.generation

    def _refreshed(self, ask: Ask, length: int) -> Collection[int] | None:
        """Bring the columns up to date; return which rows changed, None if it could be any.

        `length`: of what was made of them. What `ask` raises passes through, and ends the memo's generation.
        """
        stale = self.stale_rows()
        size = self._nodes.size
        if stale is not None and not stale and length == size:
            return stale
        for i, column in enumerate(self.columns):
            self._memo.refresh(column, partial(ask, i))
        return None if stale is None or length != size or len(stale) * 4 > size else stale


class KeptPassing(_Kept):
    """Which nodes pass the first plugins in a row at Filter."""

    __slots__ = ("_feasible", "passing")

    _feasible: Rows | None

    def __init__(self, columns: Sequence[MemoColumn], aspects: Collection[Aspect], nodes: LiveNodes, memo: Memo):
        super().__init__(columns, aspects, nodes, memo)
        self._begin()

    @property
    def feasible(self) -> Rows:
        """The rows that pass, in ascending order; it is never changed, only replaced."""
        found = self._feasible
        if found is None:
            found = self._feasible = np.flatnonzero(self.passing)
        return found

    def refresh(self, ask: Ask) -> None:
        """Bring it up to date. What `ask` raises passes through; then it is usable no more."""
        stale = self._refreshed(ask, len(self.passing))
        if stale is None:
            self._begin()
        elif stale:
            self._look_at(stale)

    def _begin(self) -> None:
        passing: BoolColumn = self._nodes.in_use.copy()
        for column in self.columns:
            if column.may_differ:
                passing &= column.values == 0
        self.passing = passing
        self._feasible = None
        self.trail.mark_all()

    def _look_at(self, stale: Collection[int]) -> None:
        in_use, refusing = self._nodes.in_use, [column.values for column in self.columns if column.may_differ]
        if len(stale) <= FEW:
            for row in stale:
                passes = in_use.item(row) and not any(values.item(row) for values in refusing)
                if passes != self.passing.item(row):
                    self._flip(row)
            return
        rows = np.fromiter(stale, np.intp, len(stale))
        passing: BoolColumn = in_use[rows]
        for values in refusing:
            passing &= values[rows] == 0
        for row in rows[passing != self.passing[rows]].tolist():
            self._flip(row)

    def _flip(self, row: int) -> None:
        self.passing[row] = not self.passing[row]
        self._feasible = None
        self.trail.mark(row)


class KeptSums(_Kept):
    """The weighted sum of the scores that are final as they are, of every row, whether it is feasible or not.

    `level` columns are of plugins that normalise; while all their scores are 0 they make no difference between nodes.
    """

    __slots__ = ("_level", "_terms", "highest", "is_level", "lowest", "values")

    def __init__(
        self,
        terms: Sequence[tuple[MemoColumn, int]],
        level: Sequence[MemoColumn],
        aspects: Collection[Aspect],
        nodes: LiveNodes,
        memo: Memo,
    ) -> None:
        """`terms`: columns and their weights, at least one. `refresh` asks about these, then about the `level` ones."""
        super().__init__([*(column for column, _ in terms), *level], aspects, nodes, memo)
        self._terms = terms
        self._level = level
        self._begin()

    def refresh(self, ask: Ask) -> None:
        """Bring it up to date. What `ask` raises passes through; then it is usable no more."""
        stale = self._refreshed(ask, len(self.values))
        if stale is None:
            self._begin()
            return
        if not stale:
            return
        self._bound()
        values = self.values
        for row in stale:
            total = 0
            for column, weight in self._terms:
                total += weight * column.values.item(row)
            if total != values.item(row):
                values[row] = total
                self.trail.mark(row)

    def _begin(self) -> None:
        values: Int64Column = np.zeros(self._nodes.size, np.int64)
        for column, weight in self._terms:
            values += column.values if weight == 1 else column.values * weight
        self.values = values
        self.trail.mark_all()
        self._bound()

    def _bound(self) -> None:
        self.is_level = not any(column.may_differ for column in self._level)
        """Whether the `level` columns make no difference."""
        self.lowest = min([column.lowest for column, _ in self._terms])
        """No single score, without its weight, lies outside these two."""
        self.highest = max([column.highest for column, _ in self._terms])


class KeptBest(LogReader):
    """The rows with the highest sum among those that pass."""

    __slots__ = ("_best", "_passing", "_ranks", "_sums", "_top")

    def __init__(self, passing: KeptPassing, sums: KeptSums) -> None:
        super().__init__((passing.trail, sums.trail))
        self._passing = passing
        self._sums = sums
        self._begin()

    def is_of(self, passing: KeptPassing, sums: KeptSums) -> bool:
        """Whether it was made of these two."""
        return self._passing is passing and self._sums is sums

    def rows(self) -> Sequence[int]:
        """Return them in ascending order, once both that it is made of are up to date. Valid until the next call."""
        stale = self.stale_rows()
        if stale is None:
            self._begin()
        elif stale:
            passing, sums = self._passing.passing, self._sums.values
            if len(stale) > _SINGLY:
                rows = np.fromiter(stale, np.intp, len(stale))
                self._ranks[rows] = np.where(passing[rows], sums[rows], _REFUSED)
                self._look()
            else:
                for row in stale:
                    self._rank(row, sums.item(row) if passing.item(row) else _REFUSED)
                if not self._best:
                    self._look()
        return self._best

    def _begin(self) -> None:
        self._ranks: Int64Column = np.where(self._passing.passing, self._sums.values, _REFUSED)
        self._look()

    def _look(self) -> None:
        self._top = int(self._ranks.max())
        best = np.flatnonzero(self._ranks == self._top)
        # Unlike an array of numpy it can lose an entry in the middle without a copy.
        self._best = array("q", best.astype(np.int64, copy=False).tobytes())

    def _rank(self, row: int, rank: int) -> None:
        before = self._ranks.item(row)
        if rank == before:
            return
        self._ranks[row] = rank
        if before == self._top:
            del self._best[bisect_left(self._best, row)]
        if rank == self._top:
            insort(self._best, row)
        elif rank > self._top:
            self._top = rank
            self._best = array("q", (row,))
