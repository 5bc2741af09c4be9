"""Node labels as columns of small integers, made for the keys that are asked for.

Pods name the keys: so a key that no node has gets no column of its own, and an unused one is given back.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from scheduler.api.read_only import ReadOnlyList, read_only_attribute
from scheduler.framework.nodes.columns import Int32Column, Rows, read_only
from scheduler.state.nodes.live_column import int32_column

VALUE_BYTES: Final = 300
"""About what a value of a label takes at most in a column: its text, its code, and the entries for both."""


class LabelColumn:
    """Implements framework.nodes.Topology: one label key, with a code per row."""

    __slots__ = (
        "_code_of",
        "_codes",
        "_distinct",
        "_distinct_at",
        "_labelled",
        "_rows_of",
        "_shared",
        "_values",
        "_version",
        "asked_for",
        "size",
    )

    def __init__(self, capacity: int) -> None:
        self._codes = int32_column(capacity)
        self._rows_of = [0]
        """Number of rows that have each code; 0 for code 0."""
        self._shared = 0
        """Number of codes that more than one row has."""
        self._distinct: Rows = read_only(np.zeros(0, np.intp))
        self._distinct_at = 0
        self._values = ReadOnlyList([""])
        self._code_of: dict[str, int] = {}
        self._labelled = 0
        self.asked_for = True
        """Since the last `LabelColumns.forget_idle`."""
        self._version = 0
        """Changes with any code of any row, and when the column is dropped."""
        self.size = 0
        """Number of rows of the table."""

    values: Sequence[str] = read_only_attribute("_values")
    labelled: int = read_only_attribute("_labelled")
    version: int = read_only_attribute("_version")

    @property
    def codes(self) -> Int32Column:
        return self._codes.shown[: self.size]

    @property
    def is_one_each(self) -> bool:
        return not self._shared

    @property
    def distinct(self) -> Rows:
        if self._distinct_at != self._version:
            self._distinct = read_only(np.flatnonzero(self._rows_of))
            self._distinct_at = self._version
        return self._distinct

    @property
    def bytes(self) -> int:
        """About how much memory it takes at most."""
        return self._codes.values.nbytes + VALUE_BYTES * len(self._values)

    def code_at(self, row: int) -> int:
        """Return the code of one row, even beyond `size`."""
        return self._codes.values.item(row)

    def code_of(self, value: str) -> int:
        """Return the code of a value; 0 if no row ever had it."""
        return self._code_of.get(value, 0)

    def set(self, row: int, value: str | None) -> None:
        old = self._codes.values.item(row)
        code = 0 if value is None else self._code(value)
        if code == old:
            return
        self._version += 1
        self._codes.values[row] = code
        for changed, rows in ((old, -1), (code, 1)):
            if changed:
                self._labelled += rows
                self._rows_of[changed] += rows
                # From one row to two the code becomes shared, from two to one it ceases to be.
                self._shared += rows * (self._rows_of[changed] == (2 if rows > 0 else 1))

    def grow(self, capacity: int) -> None:
        self._codes.grow(capacity)

    def drop(self) -> None:
        """Invalidate what readers derived from the codes: they are no longer maintained."""
        self._version += 1

    def _code(self, value: str) -> int:
        code = self._code_of.get(value)
        if code is None:
            code = self._code_of[value] = len(self._values)
            list.append(self._values, value)
            self._rows_of.append(0)
        return code


class LabelColumns:
    """For each key in use: a code per row, 0 where the label is absent, and the value behind each code."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, LabelColumn] = {}
        self._absent = LabelColumn(capacity)
        """The column of every key that no node has."""
        self.rows_with: dict[str, int] = {}
        """Label key → number of rows that have it; never 0."""

    @property
    def bytes(self) -> int:
        """About how much memory the columns take at most."""
        return sum(column.bytes for column in (self._absent, *self._columns.values()))

    def column(self, key: str, size: int, labels: Iterable[Mapping[str, str] | None]) -> LabelColumn:
        """Return the column of `key` for a table of `size` rows; `labels`: those of every row, read if it is new."""
        column = self._columns.get(key)
        if column is None:
            if key not in self.rows_with:
                self._absent.size = size
                return self._absent
            column = self._columns[key] = LabelColumn(self._capacity)
            for row, of_row in enumerate(labels):
                if of_row:
                    column.set(row, of_row.get(key))
        column.size = size
        column.asked_for = True
        return column

    def set_row(self, row: int, old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> Sequence[str]:
        """Replace the labels of one row; None stands for no labels.

        Returns the keys that have come to the table, or left it.
        """
        if old == new:
            return ()
        old, new = old or {}, new or {}
        outgrown: list[str] = []
        for key, column in self._columns.items():
            column.set(row, new.get(key))
            if len(column.values) > 2 * self._capacity:
                outgrown.append(key)
        # Most of their values belong to nodes that are gone: the next request makes a new column.
        self._drop(outgrown)
        return self._count_keys(old, new)

    def forget_idle(self) -> None:
        """Drop the columns that were not asked for since the last call."""
        self._drop([key for key, column in self._columns.items() if not column.asked_for])
        for column in self._columns.values():
            column.asked_for = False

    def grow(self, capacity: int) -> None:
        for column in (self._absent, *self._columns.values()):
            column.grow(capacity)
        self._capacity = capacity

    def clear(self) -> None:
        """Forget all rows. Readers of any column learn that it is out of date."""
        self._drop(list(self._columns))
        self._absent.drop()
        self.rows_with.clear()

    def _count_keys(self, old: Mapping[str, str], new: Mapping[str, str]) -> Sequence[str]:
        rows_with = self.rows_with
        changed: list[str] = []
        for key in new.keys() - old.keys():
            rows_with[key] = rows_with.get(key, 0) + 1
            if rows_with[key] == 1:
                changed.append(key)
        for key in old.keys() - new.keys():
            rows_with[key] -= 1
            if not rows_with[key]:
                del rows_with[key]
                changed.append(key)
                if key in self._columns:
                    self._drop((key,))
        return changed

    def _drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._columns.pop(key).drop()
