"""Stored answers of plugins: one column for each fragment of a pod, refreshed only where a node has changed.

A plugin signs a pod with the fragment on which its answer depends and names the aspects of a node that it reads.
Ten thousand pods of one Deployment then cost one evaluation of all nodes, and one of a single row after each
placement. A plugin that cannot sign a pod is evaluated in full for it; that concerns no other plugin.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from scheduler.framework.change_log import ChangeLog as ChangeLog
from scheduler.framework.change_log import LogReader
from scheduler.framework.nodes import Aspect, Rows
from scheduler.runtime.live_nodes import LiveNodes

MEMO_BYTES: Final = 64 * 1024 * 1024
"""About what the stored columns of one profile may take; the least recently used ones go first."""

FEW: Final = 8
"""Up to so many values plain Python is quicker than numpy."""

Column = npt.NDArray[Any]
Evaluate = Callable[[Rows], Column | None]
"""Answers for some rows; None means 0 for all of them."""


class MemoColumn(LogReader):
    """The answers of one plugin for one fragment."""

    __slots__ = ("highest", "key", "lowest", "values")

    def __init__(self, values: Column, logs: Iterable[ChangeLog], key: Hashable = None) -> None:
        super().__init__(logs)
        self.key = key
        self.values = values
        self.lowest = 0
        self.highest = 0
        """No value lies outside these two. They may be wider than the values, since refreshing a row only widens."""

    @property
    def may_differ(self) -> bool:
        """Whether any value may be other than 0."""
        return bool(self.lowest or self.highest)

    def set_all(self, values: Column | None, size: int) -> None:
        dtype = self.values.dtype
        # A copy: what a plugin answers with may be a column of the table itself.
        self.values = np.zeros(size, dtype) if values is None else np.array(values, dtype)
        self.lowest = self.highest = 0
        self._widen(values)

    def set_rows(self, rows: Rows, values: Column | None) -> None:
        self.values[rows] = 0 if values is None else values
        self._widen(values)

    def set_row(self, row: int, values: Column | None) -> None:
        """Like `set_rows` for a single one, at half the price."""
        value = 0 if values is None else values.item()
        self.values[row] = value
        if value < self.lowest:
            self.lowest = value
        elif value > self.highest:
            self.highest = value

    def _widen(self, values: Column | None) -> None:
        if values is not None and len(values):
            few = len(values) <= FEW
            self.lowest = min(self.lowest, *values.tolist()) if few else min(self.lowest, int(values.min()))
            self.highest = max(self.highest, *values.tolist()) if few else max(self.highest, int(values.max()))


class Memo:
    """All stored columns of one profile."""

    def __init__(self, nodes: LiveNodes) -> None:
        self._nodes = nodes
        self._columns: OrderedDict[Hashable, MemoColumn] = OrderedDict()
        self.generation = 0
        """Grows when stored columns turn out to be wrong, which who has kept one of them must not use any more."""
        self._all_rows: Rows = np.arange(0)
        self._one: tuple[int, Rows] = (-1, self._all_rows)

    def all_rows(self) -> Rows:
        """Every row number of the table."""
        if len(self._all_rows) != self._nodes.size:
            self._all_rows = np.arange(self._nodes.size)
            self._all_rows.flags.writeable = False
        return self._all_rows

    def column(
        self, key: Hashable, aspects: tuple[Aspect, ...], dtype: npt.DTypeLike, evaluate: Evaluate
    ) -> MemoColumn:
        """Return the column stored under `key`, brought up to date. What `evaluate` raises passes through."""
        size = self._nodes.size
        column = self._columns.get(key)
        if column is None:
            column = MemoColumn(np.zeros(size, dtype), map(self._nodes.change_log, aspects), key)
            column.set_all(evaluate(self.all_rows()), size)
            self._columns[key] = column
            self._trim(column.values.nbytes)
            return column
        self._columns.move_to_end(key)
        self.refresh(column, evaluate)
        return column

    def refresh(self, column: MemoColumn, evaluate: Evaluate) -> None:
        """Bring up to date what `column` returned before, in the same generation.

        What `evaluate` raises passes through; then a new generation begins.
        """
        stale = column.stale_rows()
        size = self._nodes.size
        if stale is None or stale or len(column.values) < size:
            try:
                self._refresh(column, stale, size, evaluate)
            except BaseException:
                self._columns.pop(column.key, None)  # half refreshed
                self.generation += 1
                raise

    def _refresh(self, column: MemoColumn, stale: Collection[int] | None, size: int, evaluate: Evaluate) -> None:
        if stale is None or len(stale) * 4 > size:
            column.set_all(evaluate(self.all_rows()), size)
            return
        if len(column.values) < size:  # a new row that is a node is among the stale ones
            column.values = np.concatenate([column.values, np.zeros(size - len(column.values), column.values.dtype)])
        if len(stale) == 1:
            [row] = stale
            if row != self._one[0]:  # several columns have the same row to refresh, one after the other
                self._one = row, np.array((row,), np.intp)
            column.set_row(row, evaluate(self._one[1]))
            return
        rows: Rows = np.array(sorted(stale), dtype=np.intp)
        column.set_rows(rows, evaluate(rows))

    def forget(self, prefix: Hashable) -> None:
        """Drop the columns whose key is a tuple that begins with `prefix`."""
        self.generation += 1
        for key in [key for key in self._columns if isinstance(key, tuple) and key[0] == prefix]:
            del self._columns[key]

    def _trim(self, bytes_each: int) -> None:
        room = max(8, MEMO_BYTES // max(1, bytes_each))
        while len(self._columns) > room:
            self._columns.popitem(last=False)
