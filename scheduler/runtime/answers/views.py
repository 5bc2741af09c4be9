"""Views of the stored columns for one pod class: the feasible nodes, total scores, and the best nodes.

    columns of each plugin ─┬─► FeasibleNodes ─┬─► BestNodes
                            └─► TotalScores  ──┘

Each reads what changed from the one before it, so that a decision after one placement costs a look at one row. All are
computed again in full where that is not known: after many changes, or when the table grew.
"""

from abc import abstractmethod
from array import array
from bisect import bisect_left, insort
from collections.abc import Collection, Hashable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import numpy.typing as npt

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.change_log import ChangeLog
from scheduler.framework.nodes.nodes import Aspect, BoolColumn, Int64Column, Rows
from scheduler.runtime.answers.store import FEW, AnswerStore, Column, Stored

_REFUSED: Final = -1
"""The rank of a row that does not pass: below any sum of scores."""

_SINGLY: Final = 64
"""Up to this many changed rows are re-ranked singly; beyond it, the maximum is recomputed."""


_TRAIL: Final = 2 * _SINGLY
"""Changed rows that a view remembers for the next one, which reads them in the same decision."""


class Step(Protocol):
    """One plugin at one extension point."""

    def ask(self, state: CycleState, pod: Pod, rows: Rows) -> npt.NDArray[Any] | None:
        """Return its answers for `rows`; None means 0 for all of them. Raises PluginError."""


class View(Stored):
    """Derived from columns. Its `trail` has the changed rows for the next view."""

    __slots__ = ("_nodes", "_store", "columns", "size", "trail")

    least_bytes: ClassVar[int] = 3072 + 40 * _TRAIL

    def __init__(
        self, key: Hashable, columns: Sequence[Column], aspects: Collection[Aspect], store: AnswerStore
    ) -> None:
        """`aspects`: everything that the columns read. Every row of it is stale."""
        super().__init__(key, map(store.nodes.change_log, {*aspects, Aspect.NAME}), columns)
        self._positions = [-1] * len(self.logs)
        self._store = store
        self._nodes = store.nodes
        self.columns = columns
        self.size = 0
        """The number of rows when it was last updated."""
        self.trail = ChangeLog(_TRAIL)

    def refresh(self, steps: Sequence[Step], state: CycleState, pod: Pod) -> None:
        """Bring it up to date: ask the plugin behind each column about the rows that changed since.

        Raises PluginError; then the column that could not be refreshed is dropped, and the view with it.
        """
        size = self._nodes.size
        moved = {log for log, position in zip(self.logs, self._positions, strict=True) if log.position != position}
        changed = self.stale_rows()
        if changed is not None and not changed and self.size == size:
            return
        for step, column in zip(steps, self.columns, strict=True):
            if self.size != size or not moved.isdisjoint(column.logs):
                self._store.bring_up_to_date(column, partial(step.ask, state, pod))
        self.update(changed, size)

    @abstractmethod
    def update(self, stale: Collection[int] | None, size: int) -> None:
        """Take over the `stale` rows of the columns, which are up to date; None: any row may have changed.

        `size`: the number of rows of the node table.
        """


class FeasibleNodes(View):
    """The nodes that pass the first Filter plugins, all those before the first one whose answers are not stored."""

    __slots__ = ("passing", "rows")

    is_hint: ClassVar[bool] = True

    passing: BoolColumn
    """By row."""

    rows: Rows
    """In ascending order; the array is never changed, only replaced."""

    @property
    def bytes_per_row(self) -> int:
        return 1 + 8

    def update(self, stale: Collection[int] | None, size: int) -> None:
        if stale is None or self.size != size or len(stale) * 4 > size:
            self._begin(size)
            return
        if len(stale) > FEW:
            flipped = self._flipped_of_many(stale)
        else:
            flipped, in_use = [], self._nodes.in_use
            for row in stale:
                passes = in_use.item(row)
                for column in self.columns:
                    if column.may_differ and column.values.item(row):
                        passes = False
                        break
                if passes != self.passing.item(row):
                    flipped.append(row)
        if flipped:
            for row in flipped:
                self.passing[row] = not self.passing[row]
                self.trail.mark(row)
            self.rows = np.flatnonzero(self.passing)

    def _begin(self, size: int) -> None:
        passing: BoolColumn = self._nodes.in_use.copy()
        for column in self.columns:
            if column.may_differ:
                passing &= column.values == 0
        self.passing = passing
        self.rows = np.flatnonzero(passing)
        self.size = size
        self.trail.mark_all()

    def _flipped_of_many(self, stale: Collection[int]) -> list[int]:
        rows = np.fromiter(stale, np.intp, len(stale))
        passing: BoolColumn = self._nodes.in_use[rows]
        for column in self.columns:
            if column.may_differ:
                passing &= column.values[rows] == 0
        flipped: list[int] = rows[passing != self.passing[rows]].tolist()
        return flipped


class TotalScores(View):
    """The weighted sum of the scores that are final as they are, for every row, whether it is feasible or not.

    `neutral` columns are of plugins that normalise; while all their scores are 0 they make no difference between nodes.
    """

    __slots__ = ("_neutral", "_terms", "highest", "is_final", "lowest", "values")

    values: Int64Column
    is_final: bool
    """Whether the `neutral` columns make no difference."""
    lowest: int
    """No single score, without its weight, lies outside these two."""
    highest: int

    def __init__(
        self,
        key: Hashable,
        terms: Sequence[tuple[Column, int]],
        neutral: Sequence[Column],
        aspects: Collection[Aspect],
        store: AnswerStore,
    ) -> None:
        """`terms`: columns and their weights, at least one. `columns` are these, then the `neutral` ones."""
        super().__init__(key, [*(column for column, _ in terms), *neutral], aspects, store)
        self._terms = terms
        self._neutral = neutral

    @property
    def bytes_per_row(self) -> int:
        return 8

    def update(self, stale: Collection[int] | None, size: int) -> None:
        if stale is None or self.size != size or len(stale) * 4 > size:
            self._begin(size)
        else:
            values = self.values
            for row in stale:
                total = 0
                for column, weight in self._terms:
                    total += weight * column.values.item(row)
                if total != values.item(row):
                    values[row] = total
                    self.trail.mark(row)
        self.lowest = self.highest = 0
        for column, _ in self._terms:
            if column.lowest < self.lowest:
                self.lowest = column.lowest
            if column.highest > self.highest:
                self.highest = column.highest
        self.is_final = True
        for column in self._neutral:
            if column.may_differ:
                self.is_final = False

    def _begin(self, size: int) -> None:
        values: Int64Column = np.zeros(size, np.int64)
        for column, weight in self._terms:
            values += column.values if weight == 1 else column.values * weight
        self.values = values
        self.size = size
        self.trail.mark_all()


class BestNodes(Stored):
    """The rows with the highest sum among those that pass."""

    __slots__ = ("_best", "_ranks", "_top", "feasible", "totals")

    def __init__(self, key: Hashable, feasible: FeasibleNodes, totals: TotalScores) -> None:
        super().__init__(key, (feasible.trail, totals.trail), (feasible, totals))
        self.feasible = feasible
        self.totals = totals
        self._begin()

    @property
    def bytes_per_row(self) -> int:
        return 8 + 8

    def rows(self) -> Sequence[int]:
        """Return them in ascending order, once both that it is made of are up to date. Valid until the next call."""
        stale = self.stale_rows()
        if stale is None:
            self._begin()
        elif stale:
            passing, sums = self.feasible.passing, self.totals.values
            if len(stale) > _SINGLY:
                rows = np.fromiter(stale, np.intp, len(stale))
                self._ranks[rows] = np.where(passing[rows], sums[rows], _REFUSED)
                self._find()
            else:
                for row in stale:
                    self._rank(row, sums.item(row) if passing.item(row) else _REFUSED)
                if not self._best:
                    self._find()
        return self._best

    def ranks(self) -> Int64Column:
        """Return a copy of the sum of every row, less than 0 for those that do not pass."""
        return self._ranks.copy()

    def _begin(self) -> None:
        self._ranks: Int64Column = np.where(self.feasible.passing, self.totals.values, _REFUSED)
        self._find()

    def _find(self) -> None:
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
