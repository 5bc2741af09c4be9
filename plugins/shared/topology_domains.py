"""Sums over topology domains: all nodes that have the same value of a label are one domain.

A domain is identified by a number. Where every node is a domain of its own, that is its row, and a count of pods by
rows is already the sum by domains; otherwise it is the label's code, and the few sums are kept up to date by the index.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import numpy as np

from plugins.shared.column_math import Column, pick
from scheduler import framework as fw

NO_DOMAIN: Final = -1

Sums: TypeAlias = fw.Int32Column | fw.Int64Column
"""A sum at each number; 0 where that is no domain."""


class Domains:
    """The domains of one topology key, within one cycle."""

    __slots__ = ("are_rows", "codes", "is_complete", "topology")

    def __init__(self, nodes: fw.NodeColumns, key: str) -> None:
        self.topology = topology = nodes.topology(key)
        self.codes = topology.codes
        """The label's code at each row, 0 where there is none. The table may renumber a key: these stay."""
        self.are_rows = topology.is_one_each
        """Whether each domain is one row."""
        self.is_complete = topology.labelled == len(self.codes)
        """Whether every row is in a domain."""

    def number(self, row: int) -> int:
        """Return the number of a row's domain, or NO_DOMAIN."""
        code: int = self.codes.item(row)
        if not code:
            return NO_DOMAIN
        return row if self.are_rows else code

    @property
    def size(self) -> int:
        """The length of an array with an entry for each number."""
        return len(self.codes) if self.are_rows else len(self.topology.values)

    def sums(self, column: fw.PodCounts) -> Sums:
        """Return how many pods each domain has, as a copy: the index's arrays are live."""
        if not self.are_rows:
            return column.sums(self.topology).copy()
        return column.counts.copy() if self.is_complete else column.counts * (self.codes != 0)

    def at(self, by_number: Column, rows: fw.Rows) -> Column:
        """Return the entry of the domain of each of `rows`, to be read only; that of code 0 where there is none."""
        if self.are_rows:
            return pick(by_number, rows)
        result: Column = by_number.take(pick(self.codes, rows))  # quicker than by_number[...]
        return result

    def set_absent(self, by_number: fw.Int32Column, value: int) -> None:
        """Let `at` return `value` for rows that are in no domain."""
        if not self.are_rows:
            by_number[0] = value
        elif not self.is_complete:
            by_number[self.codes == 0] = value


class DomainCounts:
    """How many matches there are in each domain of several topology keys, for one pod in one cycle."""

    __slots__ = ("_by_key", "_moved", "_nodes", "total")

    def __init__(self, nodes: fw.NodeColumns, columns: Iterable[tuple[str, fw.PodCounts]] = ()) -> None:
        """`columns`: topology keys, and the matches that count for them; a key may come repeatedly."""
        self._nodes = nodes
        self._by_key: dict[str, tuple[Domains, Sums | None]] = {}
        """Key → its domains and their sums, None if all are 0."""
        self._moved: dict[tuple[str, int], int] = {}
        """(key, number) → what a what-if adds to the sum. Each clone has its own; the sums are shared."""
        self.total = 0
        """Matches on nodes that have the topology key they are for."""
        for key, column in columns:
            domains, before = self._of(key)
            sums = domains.sums(column)
            total = int(sums.sum())
            if total:
                self._by_key[key] = domains, sums if before is None else before + sums
                self.total += total

    def move(self, key: str, row: int, matches: int) -> None:
        """Count this many more matches on a row, or fewer if negative."""
        number = self._of(key)[0].number(row)
        if number != NO_DOMAIN:
            self._moved[key, number] = self._moved.get((key, number), 0) + matches
            self.total += matches

    def any_at(self, rows: fw.Rows) -> fw.BoolColumn | None:
        """Return for each of `rows` whether any of its domains has a match; None if none has."""
        result: fw.BoolColumn | None = None
        for key in self._by_key if self.total else ():
            here = self.matched_at(key, rows)
            result = here if result is None else result | here
        return result

    def any_at_row(self, row: int) -> bool:
        """Like `any_at`, but faster, for one row."""
        return bool(self.total) and any(self.matched_at_row(key, row) for key in self._by_key)

    def keys_matched_at_row(self, row: int) -> Iterator[str]:
        """Yield the keys whose domain of that row has a match."""
        return (key for key in tuple(self._by_key) if self.matched_at_row(key, row))

    def matched_at(self, key: str, rows: fw.Rows) -> fw.BoolColumn:
        """Return for each of `rows` whether its domain of `key` has a match; False where the label is absent."""
        domains, sums = self._of(key)
        moved = [(number, matches) for (of_key, number), matches in self._moved.items() if of_key == key]
        if sums is None:
            if not moved:
                return np.zeros(len(rows), np.bool_)
            sums = np.zeros(domains.size, np.int64)
        elif moved:
            sums = sums.copy()
        for number, matches in moved:
            sums[number] += matches
        return domains.at(sums > 0, rows)

    def matched_at_row(self, key: str, row: int) -> bool:
        """Like `matched_at`, but faster, for one row."""
        domains, sums = self._of(key)
        number = domains.number(row)
        if number == NO_DOMAIN:
            return False
        return (0 if sums is None else sums.item(number)) + self._moved.get((key, number), 0) > 0

    def labelled_at(self, key: str, rows: fw.Rows) -> fw.BoolColumn:
        """Return for each of `rows` whether it has the label."""
        labelled: fw.BoolColumn = pick(self._of(key)[0].codes, rows) != 0
        return labelled

    def labelled_at_row(self, key: str, row: int) -> bool:
        """Like `labelled_at`, but faster, for one row."""
        return self._of(key)[0].number(row) != NO_DOMAIN

    def clone(self) -> "DomainCounts":
        """Return a copy that changes independently."""
        copy = DomainCounts(self._nodes)
        copy._by_key = dict(self._by_key)
        copy._moved = dict(self._moved)
        copy.total = self.total
        return copy

    def _of(self, key: str) -> tuple[Domains, Sums | None]:
        result = self._by_key.get(key)
        if result is None:
            result = self._by_key[key] = Domains(self._nodes, key), None
        return result
