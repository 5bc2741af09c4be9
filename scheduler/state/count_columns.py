"""Columns of counts that can be worked out again: kept as long as they are asked for, within a number of bytes."""

from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

import msgspec
import numpy as np

from scheduler.framework.columns import Int32Column, Int64Column
from scheduler.framework.topology import Topology

KeyT = TypeVar("KeyT", bound=Hashable)

COLUMN_BYTES: Final = 64 << 20
"""Memory for the columns of one store: two thousand at 5,000 nodes, a hundred at 100,000."""

MAX_TOPOLOGIES: Final = 4
"""By how many topology keys the sums of one column are kept."""
DOMAIN_ROWS: Final = 8
"""Sums are kept for topologies with so many rows a domain or more: with all sums, a column takes twice the bytes."""

_BYTES_A_COUNT: Final = 4
_DROPPED_SHARE: Final = 4
"""A full store drops a quarter at once: to find the oldest costs a look at all."""


class DomainSums(msgspec.Struct, eq=False, gc=False):
    """The sums of a column over one topology, as long as no label changes."""

    topology: Topology
    version: int
    by_code: Int64Column


class CountColumn(msgspec.Struct, eq=False, gc=False):
    """How many pods of some kind are on each row; at least as long as the table."""

    counts: Int32Column
    used: int = 0
    """When it was asked for last, in requests to its store."""
    kept: tuple[DomainSums, ...] = ()
    """Its sums over topologies, the newest first."""

    def add(self, row: int, pods: int) -> None:
        """Count so many more pods on a row, or fewer."""
        self.counts[row] += pods
        for sums in self.kept:
            topology = sums.topology
            if sums.version == topology.version:
                code = topology.code_at(row)
                if code:
                    sums.by_code[code] += pods

    def sums(self, topology: Topology) -> Int64Column:
        """Return the number of pods of each domain, by code; 0 for code 0. To be read only."""
        for sums in self.kept:
            if sums.topology is topology and sums.version == topology.version:
                return sums.by_code
        by_code = summed(topology, self.counts)
        if DOMAIN_ROWS * len(by_code) <= len(self.counts):
            valid = [sums for sums in self.kept if sums.version == sums.topology.version]
            self.kept = (DomainSums(topology, topology.version, by_code), *valid[: MAX_TOPOLOGIES - 1])
        return by_code

    def check_invariants(self) -> None:
        """The sums equal a new sum. For tests and debugging."""
        for sums in self.kept:
            if sums.version == sums.topology.version:
                assert np.array_equal(sums.by_code, summed(sums.topology, self.counts)), sums.topology


def summed(topology: Topology, counts: Int32Column) -> Int64Column:
    """Return the sum of a column, which may be longer than the topology's, over each domain by code; 0 for code 0."""
    codes = topology.codes
    sums = np.bincount(codes, counts[: len(codes)], len(topology.values)).astype(np.int64)
    sums[0] = 0
    return sums


class CountColumns(Generic[KeyT]):
    """Columns by key. The least recently used go first."""

    def __init__(self, capacity: int, limit: int = COLUMN_BYTES) -> None:
        self.capacity = capacity
        """Length of every column."""
        self._limit = limit
        self._columns: dict[KeyT, CountColumn] = {}
        self._requests = 0

    def __len__(self) -> int:
        return len(self._columns)

    def items(self) -> Iterator[tuple[KeyT, CountColumn]]:
        yield from self._columns.items()

    def peek(self, key: KeyT) -> CountColumn:
        """Return a column for its upkeep. Raises KeyError for an unknown key."""
        return self._columns[key]

    def get(self, key: KeyT) -> CountColumn | None:
        """Return a column, and remember that it is in use."""
        column = self._columns.get(key)
        if column is not None:
            self._requests += 1
            column.used = self._requests
        return column

    def add(self, key: KeyT) -> CountColumn:
        """Return a new column of zeros. Ask `make_room` first."""
        self._requests += 1
        column = self._columns[key] = CountColumn(np.zeros(self.capacity, np.int32), self._requests)
        return column

    def make_room(self) -> list[tuple[KeyT, CountColumn]]:
        """Drop what has to go before one more column fits; return it, for its owner to forget as well."""
        room = max(1, self._limit // (_BYTES_A_COUNT * self.capacity))
        if len(self._columns) < room:
            return []
        oldest = sorted(self._columns.items(), key=lambda item: item[1].used)
        dropped = oldest[: len(oldest) - room + max(1, room // _DROPPED_SHARE)]
        for key, _ in dropped:
            del self._columns[key]
        return dropped

    def remove(self, key: KeyT) -> None:
        """Drop a column. Unknown keys are ignored."""
        self._columns.pop(key, None)

    def grow(self, capacity: int) -> None:
        for column in self._columns.values():
            column.counts = np.concatenate([column.counts, np.zeros(capacity - self.capacity, np.int32)])
        self.capacity = capacity
