"""Node labels as columns of small integers, made for the keys that are asked for."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from scheduler.framework.nodes import Int32Column, Rows

MAX_KEYS: Final = 512
"""Label keys stored as columns. Pods name the keys: without a limit, users could fill our memory."""


class LabelColumn:
    """Implements framework.nodes.Topology: one label key, with a code per row."""

    __slots__ = (
        "_codes",
        "_distinct",
        "_distinct_at",
        "_rows_of",
        "_shared",
        "code_of",
        "labelled",
        "size",
        "values",
        "version",
    )

    def __init__(self, capacity: int) -> None:
        self._codes = np.zeros(capacity, np.int32)
        self._rows_of = [0]
        """Number of rows that have each code; 0 for code 0."""
        self._shared = 0
        """Number of codes that more than one row has."""
        self._distinct: Rows = np.zeros(0, np.intp)
        self._distinct_at = 0
        self.values = [""]
        self.code_of: dict[str, int] = {}
        self.labelled = 0
        self.version = 0
        """Changes with any code of any row, and when the column is dropped."""
        self.size = 0
        """Number of rows of the table."""

    @property
    def codes(self) -> Int32Column:
        return self._codes[: self.size]

    @property
    def is_one_each(self) -> bool:
        return not self._shared

    @property
    def distinct(self) -> Rows:
        if self._distinct_at != self.version:
            self._distinct = np.flatnonzero(self._rows_of)
            self._distinct_at = self.version
        return self._distinct

    def code_at(self, row: int) -> int:
        """Return the code of one row, even beyond `size`."""
        return self._codes.item(row)

    def set(self, row: int, value: str | None) -> None:
        old = self._codes.item(row)
        code = 0 if value is None else self._code(value)
        if code == old:
            return
        self.version += 1
        self._codes[row] = code
        for changed, rows in ((old, -1), (code, 1)):
            if changed:
                self.labelled += rows
                self._rows_of[changed] += rows
                # From one row to two the code becomes shared, from two to one it ceases to be.
                self._shared += rows * (self._rows_of[changed] == (2 if rows > 0 else 1))

    def grow(self, capacity: int) -> None:
        self._codes = np.concatenate([self._codes, np.zeros(capacity - len(self._codes), np.int32)])

    def drop(self) -> None:
        """Invalidate what readers derived from the codes: they are no longer maintained."""
        self.version += 1

    def _code(self, value: str) -> int:
        code = self.code_of.get(value)
        if code is None:
            code = self.code_of[value] = len(self.values)
            self.values.append(value)
            self._rows_of.append(0)
        return code


class LabelColumns:
    """For each key in use: a code per row, 0 where the label is absent, and the value behind each code."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, LabelColumn] = {}

    def column(self, key: str, size: int, labels: Iterable[Mapping[str, str] | None]) -> LabelColumn:
        """Return the column of `key` for a table of `size` rows; `labels`: those of every row, read if it is new."""
        column = self._columns.get(key)
        if column is None:
            if len(self._columns) >= MAX_KEYS:
                self._forget(list(self._columns))
            column = self._columns[key] = LabelColumn(self._capacity)
            for row, of_row in enumerate(labels):
                if of_row:
                    column.set(row, of_row.get(key))
        column.size = size
        return column

    def set_row(self, row: int, labels: Mapping[str, str] | None) -> None:
        """Take over the labels of one row; None clears it."""
        outgrown: list[str] = []
        for key, column in self._columns.items():
            column.set(row, labels.get(key) if labels else None)
            if len(column.values) > 2 * self._capacity:
                outgrown.append(key)
        # Most of their values belong to nodes that are gone: the next request makes a new column.
        self._forget(outgrown)

    def grow(self, capacity: int) -> None:
        for column in self._columns.values():
            column.grow(capacity)
        self._capacity = capacity

    def _forget(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._columns.pop(key).drop()
