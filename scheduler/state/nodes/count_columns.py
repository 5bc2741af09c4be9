"""Columns of counts that can be computed again: a cache, bounded by bytes; the least recently used are dropped."""

from collections.abc import Collection, Hashable, Iterator
from typing import Final, Generic, TypeVar

import msgspec
import numpy as np

from scheduler.framework.nodes.columns import Int32Column, Int64Column
from scheduler.framework.pods import Topology
from scheduler.state.nodes.live_column import LiveColumn, int32_column

KeyT = TypeVar("KeyT", bound=Hashable)

COLUMN_BYTES: Final = 64 << 20
"""Memory for the columns of one store: two thousand at 5,000 nodes, a hundred at 100,000."""

MAX_TOPOLOGIES: Final = 4
"""Sums of one column are kept for this many topologies."""
DOMAIN_ROWS: Final = 8
"""Sums are kept for topologies with at least this many rows per domain: all sums of a column then double its bytes."""

MAX_COLUMNS: Final = 4096
"""The number of columns of one store, however few nodes there are: the search for the oldest looks at all of them."""

_BYTES_PER_COUNT: Final = 4
_KEY_BYTES: Final = 2_000
"""About what the key of a column takes, a match or a term, with all that points to it."""
_DROPPED_SHARE: Final = 16
"""A full store drops one in so many at once: finding the oldest columns means looking at all of them."""


class DomainSums(msgspec.Struct, eq=False, gc=False):
    """The sums of a column over one topology, valid until a label changes."""

    topology: Topology
    version: int
    by_code: LiveColumn[np.int64]


class CountColumn(msgspec.Struct, eq=False, gc=False):
    """The number of pods of some kind on each row; at least as long as the table."""

    counts: LiveColumn[np.int32]
    used: int = 0
    """When it was last asked for, as a number of requests to its store."""
    stored_sums: tuple[DomainSums, ...] = ()
    """Its sums over topologies, the newest first."""

    def add(self, row: int, pods: int) -> None:
        """Add to the number of pods on a row; `pods` may be negative."""
        self.counts.values[row] += pods
        for sums in self.stored_sums:
            topology = sums.topology
            if sums.version == topology.version:
                code = topology.code_at(row)
                if code:
                    sums.by_code.values[code] += pods

    def sums(self, topology: Topology) -> Int64Column:
        """Return the number of pods of each domain, by code; 0 for code 0."""
        for sums in self.stored_sums:
            if sums.topology is topology and sums.version == topology.version:
                return sums.by_code.shown
        by_code = LiveColumn(summed(topology, self.counts.values))
        if DOMAIN_ROWS * len(by_code.values) <= len(self.counts.values):
            valid = [sums for sums in self.stored_sums if sums.version == sums.topology.version]
            self.stored_sums = (DomainSums(topology, topology.version, by_code), *valid[: MAX_TOPOLOGIES - 1])
        return by_code.shown

    def check_invariants(self) -> None:
        """The stored sums are right. For tests and debugging."""
        for sums in self.stored_sums:
            if sums.version == sums.topology.version:
                expected = summed(sums.topology, self.counts.values)
                assert np.array_equal(sums.by_code.values, expected), sums.topology


def summed(topology: Topology, counts: Int32Column) -> Int64Column:
    """Return the sum of a column, which may be longer than the topology's, over each domain by code; 0 for code 0."""
    codes = topology.codes
    sums = np.bincount(codes, counts[: len(codes)], len(topology.values)).astype(np.int64)
    sums[0] = 0
    return sums


def column_bytes(capacity: int) -> int:
    """Return about how much memory a column of that length takes, with its key."""
    return _BYTES_PER_COUNT * capacity + _KEY_BYTES


class CountColumns(Generic[KeyT]):
    """Columns by key. The least recently used are dropped first."""

    def __init__(self, capacity: int, limit: int = COLUMN_BYTES) -> None:
        self.capacity = capacity
        """Length of every column."""
        self._limit = limit
        self._columns: dict[KeyT, CountColumn] = {}
        self._requests = 0
        self._idle_before = 0
        """The number of requests at the last `forget_idle`."""

    def __len__(self) -> int:
        return len(self._columns)

    def items(self) -> Iterator[tuple[KeyT, CountColumn]]:
        yield from self._columns.items()

    def peek(self, key: KeyT) -> CountColumn:
        """Return a column without counting it as a use. Raises KeyError for an unknown key."""
        return self._columns[key]

    def get(self, key: KeyT) -> CountColumn | None:
        """Return a column, and count it as a use."""
        column = self._columns.get(key)
        if column is not None:
            self._requests += 1
            column.used = self._requests
        return column

    def add(self, key: KeyT) -> CountColumn:
        """Return a new column of zeros. Call `make_room` first."""
        self._requests += 1
        column = self._columns[key] = CountColumn(int32_column(self.capacity), self._requests)
        return column

    def make_room(self) -> list[tuple[KeyT, CountColumn]]:
        """Drop columns until one more fits; return them, so that their owner can forget them too."""
        limit = max(1, min(MAX_COLUMNS, self._limit // column_bytes(self.capacity)))
        if len(self._columns) < limit:
            return []
        oldest = sorted(self._columns.items(), key=lambda item: item[1].used)
        dropped = oldest[: len(oldest) - limit + max(1, limit // _DROPPED_SHARE)]
        for key, _ in dropped:
            del self._columns[key]
        return dropped

    def forget_idle(self) -> list[tuple[KeyT, CountColumn]]:
        """Drop the columns that were not asked for since the last call; return them as `make_room` does."""
        idle = [(key, column) for key, column in self._columns.items() if column.used <= self._idle_before]
        for key, _ in idle:
            del self._columns[key]
        self._idle_before = self._requests
        return idle

    @property
    def bytes(self) -> int:
        """About how much memory the columns take, with their keys."""
        return column_bytes(self.capacity) * len(self._columns)

    def drop(self, columns: Collection[CountColumn]) -> list[tuple[KeyT, CountColumn]]:
        """Drop these columns; return them with their keys."""
        chosen = {id(column) for column in columns}
        dropped = [(key, column) for key, column in self._columns.items() if id(column) in chosen]
        for key, _ in dropped:
            del self._columns[key]
        return dropped

    def grow(self, capacity: int) -> None:
        for column in self._columns.values():
            column.counts.grow(capacity)
        self.capacity = capacity
