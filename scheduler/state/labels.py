"""Node labels as columns of small numbers, made for the keys that somebody asks for."""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from scheduler.framework.nodes import Int32Column

MAX_KEYS: Final = 512
"""Label keys kept as columns. Pods name the keys: without a limit, their owners could fill our memory."""


class _LabelColumn:
    __slots__ = ("code_of", "codes", "values")

    def __init__(self, capacity: int) -> None:
        self.codes = np.zeros(capacity, np.int32)
        self.values = [""]
        self.code_of: dict[str, int] = {}

    def set(self, row: int, value: str | None) -> None:
        if value is None:
            self.codes[row] = 0
            return
        code = self.code_of.get(value)
        if code is None:
            code = self.code_of[value] = len(self.values)
            self.values.append(value)
        self.codes[row] = code


class LabelColumns:
    """For each key in use: a code a row, 0 where the label is absent, and the value behind each code."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, _LabelColumn] = {}

    def column(self, key: str, labels: Iterable[Mapping[str, str] | None]) -> tuple[Int32Column, list[str]]:
        """Return codes and values of `key`; `labels` are those of every row, read if the column is new."""
        column = self._columns.get(key)
        if column is None:
            if len(self._columns) >= MAX_KEYS:
                self._columns.clear()
            column = self._columns[key] = _LabelColumn(self._capacity)
            for row, of_row in enumerate(labels):
                if of_row:
                    column.set(row, of_row.get(key))
        return column.codes, column.values

    def set_row(self, row: int, labels: Mapping[str, str] | None) -> None:
        """Take over the labels of one row; None clears it."""
        for key, column in self._columns.items():
            column.set(row, labels.get(key) if labels else None)

    def grow(self, capacity: int) -> None:
        for column in self._columns.values():
            column.codes = np.concatenate([column.codes, np.zeros(capacity - self._capacity, np.int32)])
        self._capacity = capacity
