"""Allocatable and requested amounts of nodes, by resource and row.

A resource has columns as long as any node offers some of it. Requests for other resources, which may have any name and
fit nowhere, are counted where they occur:

    unoffered, a few rows ──the first node with it──► columns ──the last one without it──► unoffered
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from scheduler.api.quantities.go_quantity import wrapped
from scheduler.framework.nodes.columns import Int64Column
from scheduler.state.nodes.live_column import LiveColumn, int64_column

_NATIVE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""These always have columns."""


class Amounts:
    """Amounts in the units of `scheduler.api.pods.requests`. Columns are as long as `capacity`."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.allocatable = {resource: int64_column(capacity) for resource in _NATIVE}
        self.requested = {resource: int64_column(capacity) for resource in _NATIVE}
        self.nodes_with: dict[str, int] = {}
        """Resource → how many rows offer some of it."""
        self._unoffered: dict[str, dict[int, int]] = {}
        """Resource without columns → row → what its pods ask for; never 0."""
        self._unoffered_at: dict[int, int] = {}
        """Row → how many resources without columns its pods ask for."""

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> bool:
        """Replace what a node offers; return whether that changes anything."""
        before = dict(self.allocatable_at(row))
        after = {resource: amount for resource, amount in amounts.items() if amount}
        if before == after:
            return False
        for resource in before.keys() - after.keys():
            self.allocatable[resource].values[row] = 0
            self.nodes_with[resource] -= 1
            if not self.nodes_with[resource]:
                del self.nodes_with[resource]
                if resource not in _NATIVE:
                    self._drop_columns(resource)
        for resource, amount in after.items():
            if resource not in self.allocatable:
                self._make_columns(resource)
            self.allocatable[resource].values[row] = amount
            if resource not in before:
                self.nodes_with[resource] = self.nodes_with.get(resource, 0) + 1
        return True

    def count(self, row: int, requests: Mapping[str, int], sign: int) -> None:
        """Count what a pod asks for on a row, or with `sign` -1 stop counting it."""
        for resource, amount in requests.items():
            column = self.requested.get(resource)
            if column is not None:
                add_at(column.values, row, sign * amount)
            elif amount:
                self._count_unoffered(resource, row, sign * amount)

    def unoffered(self, resource: str) -> LiveColumn[np.int64] | None:
        """Return the requests for a resource without columns, as a new column; None if there are none."""
        rows = self._unoffered.get(resource)
        if rows is None:
            return None
        column = int64_column(self._capacity)
        column.values[list(rows)] = list(rows.values())
        return column

    def allocatable_at(self, row: int) -> Iterator[tuple[str, int]]:
        """Yield each resource of a row with its amount; never 0."""
        for resource, column in self.allocatable.items():
            amount = column.values.item(row)
            if amount:
                yield resource, amount

    def requested_at(self, row: int, pods: Iterable[Mapping[str, int]]) -> dict[str, int]:
        """Return resource → sum of the requests of a row's pods; never 0. `pods`: the requests of each."""
        found = {resource: amount for resource, column in self.requested.items() if (amount := column.values.item(row))}
        if row in self._unoffered_at:
            asked = {resource for of_pod in pods for resource in of_pod if resource not in self.requested}
            for resource in asked:
                amount = self._unoffered.get(resource, {}).get(row, 0)
                if amount:
                    found[resource] = amount
        return found

    def is_clear(self, row: int) -> bool:
        """Return whether nothing is offered or asked for on a row. For tests and debugging."""
        return row not in self._unoffered_at and not any(
            column.values[row] for columns in (self.allocatable, self.requested) for column in columns.values()
        )

    def check_invariants(self) -> None:
        """There are columns for what nodes offer, and for nothing else. For tests and debugging."""
        offered = {resource: int(np.count_nonzero(column.values)) for resource, column in self.allocatable.items()}
        assert {resource: nodes for resource, nodes in offered.items() if nodes} == self.nodes_with
        assert self.allocatable.keys() == self.requested.keys() == {*_NATIVE, *self.nodes_with}
        assert not self._unoffered.keys() & self.requested.keys()
        entries: dict[int, int] = {}
        for rows in self._unoffered.values():
            assert rows
            assert all(rows.values())
            for row in rows:
                entries[row] = entries.get(row, 0) + 1
        assert entries == self._unoffered_at

    def grow(self, capacity: int) -> None:
        for columns in (self.allocatable, self.requested):
            for column in columns.values():
                column.grow(capacity)
        self._capacity = capacity

    def _count_unoffered(self, resource: str, row: int, amount: int) -> None:
        rows = self._unoffered.setdefault(resource, {})
        before = rows.get(row, 0)
        after = wrapped(before + amount)
        if after:
            rows[row] = after
        else:
            rows.pop(row, None)
            if not rows:
                del self._unoffered[resource]
        self._move(row, bool(after) - bool(before))

    def _move(self, row: int, entries: int) -> None:
        total = self._unoffered_at.get(row, 0) + entries
        if total:
            self._unoffered_at[row] = total
        else:
            self._unoffered_at.pop(row, None)

    def _make_columns(self, resource: str) -> None:
        column = self.unoffered(resource)
        for row in self._unoffered.pop(resource, ()):
            self._move(row, -1)
        self.allocatable[resource] = int64_column(self._capacity)
        self.requested[resource] = int64_column(self._capacity) if column is None else column

    def _drop_columns(self, resource: str) -> None:
        del self.allocatable[resource]
        column = self.requested.pop(resource).values
        for row in np.flatnonzero(column).tolist():
            self._count_unoffered(resource, row, column.item(row))


def add_at(column: Int64Column, row: int, amount: int) -> None:
    """Add to one row, wrapping on overflow as Go does; numpy would warn or raise."""
    total = column.item(row) + amount
    column[row] = total if -(2**63) <= total < 2**63 else wrapped(total)
