"""Stored columns: one plugin's answers about one fragment of a pod, asked again only where a node has changed.

A plugin signs a pod with the fragment on which its answer depends and names the aspects of a node that it reads.
Ten thousand pods of one Deployment then cost one evaluation of all nodes, and one of a single row after each
placement. A plugin that cannot sign a pod is evaluated in full for it; that concerns no other plugin.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from scheduler.api.weights import weight_of
from scheduler.framework.change_log import ChangeLog, LogReader
from scheduler.framework.columns import Rows, read_only

FEW: Final = 8
"""For up to this many values plain Python is faster than numpy."""

Values = npt.NDArray[Any]

Evaluate = Callable[[Rows], Values | None]
"""Answers for some rows; None means 0 for all of them."""


class Stored(LogReader):
    """An entry of the store (`answers/store.py`): what it is made of, and what is made of it."""

    __slots__ = ("dependents", "key", "own_bytes", "sources")

    least_bytes: ClassVar[int] = 2048
    """About how much memory it takes without its key, whatever the number of nodes."""

    def __init__(self, key: Hashable, logs: Iterable[ChangeLog] = (), sources: Iterable["Stored"] = ()) -> None:
        super().__init__(logs)
        self.own_bytes = self.least_bytes + weight_of(key)
        """About how much memory it takes whatever the number of nodes. Never changes once it is stored."""
        self.key = key
        self.sources = list(sources)
        self.dependents: set[Stored] = set()

    @property
    def bytes_per_row(self) -> int:
        """How much memory it takes for each row of the node table; always the same."""
        return 0

    def on_drop(self) -> None:
        """Called when it has left the store."""


class Column(Stored):
    """The answers of one plugin for one fragment."""

    __slots__ = ("highest", "lowest", "may_differ", "shown", "values")

    values: Values
    shown: Values
    """The same, for plugins: read-only."""

    def __init__(self, key: Hashable, logs: Iterable[ChangeLog], dtype: npt.DTypeLike) -> None:
        """Every row of it is stale."""
        super().__init__(key, logs)
        self._positions = [-1] * len(self._logs)
        self._use(np.zeros(0, dtype))
        self.lowest = 0
        self.highest = 0
        """No value lies outside these two. They may be wider than the values: refreshing a row only widens them."""
        self.may_differ = False
        """Whether any value may be other than 0."""

    @property
    def bytes_per_row(self) -> int:
        return self.values.dtype.itemsize

    def take(self, rows: Rows, answers: Values | None, size: int) -> None:
        """Store the answers for `rows`: all, if there are as many as `size`, the number of rows of the table."""
        if len(rows) == size:
            dtype = self.values.dtype
            # A copy: a plugin may answer with a column of the node table itself.
            self._use(np.zeros(size, dtype) if answers is None else np.array(answers, dtype))
            self.lowest = self.highest = 0
            self._widen(answers)
            return
        if len(self.values) < size:  # new rows that are nodes are among `rows`
            self._use(np.concatenate([self.values, np.zeros(size - len(self.values), self.values.dtype)]))
        if len(rows) == 1:  # the usual case, at half the price
            [row] = rows
            value = 0 if answers is None else answers.item()
            self.values[row] = value
            if value < self.lowest:
                self.lowest, self.may_differ = value, True
            elif value > self.highest:
                self.highest, self.may_differ = value, True
            return
        self.values[rows] = 0 if answers is None else answers
        self._widen(answers)

    def _use(self, values: Values) -> None:
        self.values = values
        self.shown = read_only(values)

    def _widen(self, answers: Values | None) -> None:
        if answers is not None and len(answers):
            few = len(answers) <= FEW
            self.lowest = min(self.lowest, *answers.tolist()) if few else min(self.lowest, int(answers.min()))
            self.highest = max(self.highest, *answers.tolist()) if few else max(self.highest, int(answers.max()))
        self.may_differ = bool(self.lowest or self.highest)
