"""Stored answers of plugins: one column for each fragment of a pod, refreshed only where a node has changed.

A plugin signs a pod with the fragment on which its answer depends and names the aspects of a node that it reads.
Ten thousand pods of one Deployment then cost one evaluation of all nodes, and one of a single row after each
placement. A plugin that cannot sign a pod is evaluated in full for it; that concerns no other plugin.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from scheduler.framework.nodes import Aspect, NodeColumns, Rows

MEMO_BYTES: Final = 64 * 1024 * 1024
"""About what the stored columns of one profile may take; the least recently used ones go first."""

Column = npt.NDArray[Any]
Evaluate = Callable[[Rows], Column | None]
"""Answers for some rows; None means 0 for all of them."""


class ChangingColumns(NodeColumns, Protocol):
    """Nodes that also say what has changed."""

    def position(self, aspect: Aspect) -> int:
        """Return where a reader of one aspect stands who has seen everything."""

    def changed(self, aspect: Aspect, position: int) -> Iterable[int] | None:
        """Return the rows in which an aspect changed after `position`, with repeats; None if it could be any."""


class MemoColumn:
    """The answers of one plugin for one fragment."""

    __slots__ = ("may_differ", "positions", "values")

    def __init__(self, values: Column, positions: list[int]) -> None:
        self.values = values
        self.positions = positions
        self.may_differ = True
        """Whether any value may be other than 0."""


class Memo:
    """All stored columns of one profile."""

    def __init__(self, nodes: ChangingColumns) -> None:
        self._nodes = nodes
        self._columns: OrderedDict[Hashable, MemoColumn] = OrderedDict()
        self._all_rows: Rows = np.arange(0)

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
            rows: Rows | None = None
            column = MemoColumn(np.zeros(size, dtype), [self._nodes.position(aspect) for aspect in aspects])
        else:
            # Until it is up to date again it is not stored: an exception must not leave a half-refreshed column.
            del self._columns[key]
            rows = self._stale_rows(column, aspects)
            if len(column.values) < size:
                column.values = np.concatenate([column.values, np.zeros(size - len(column.values), dtype)])
        if rows is None or len(rows) * 4 > size:
            values = evaluate(self.all_rows())
            column.may_differ = values is not None and bool(values.any())
            column.values = np.zeros(size, dtype) if values is None else np.array(values, dtype)
        elif len(rows):
            values = evaluate(rows)
            column.values[rows] = 0 if values is None else values
            column.may_differ = column.may_differ or (values is not None and bool(values.any()))
        self._columns[key] = column
        self._trim(column.values.nbytes)
        return column

    def forget(self, prefix: Hashable) -> None:
        """Drop the columns whose key is a tuple that begins with `prefix`."""
        for key in [key for key in self._columns if isinstance(key, tuple) and key[0] == prefix]:
            del self._columns[key]

    def _stale_rows(self, column: MemoColumn, aspects: tuple[Aspect, ...]) -> Rows | None:
        """Take over the positions of now; return which rows changed since, None if it could be any."""
        stale: set[int] = set()
        everything = False
        for i, aspect in enumerate(aspects):
            changed = self._nodes.changed(aspect, column.positions[i])
            if changed is None:
                everything = True
            else:
                stale.update(changed)
            column.positions[i] = self._nodes.position(aspect)
        return None if everything else np.array(sorted(stale), dtype=np.intp)

    def _trim(self, bytes_each: int) -> None:
        room = max(8, MEMO_BYTES // max(1, bytes_each))
        while len(self._columns) > room:
            self._columns.popitem(last=False)
