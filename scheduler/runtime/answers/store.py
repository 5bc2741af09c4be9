"""The store: everything that one profile keeps from one decision to the next, with one bound in bytes.

    Column (one plugin's answers) ─┬─► FeasibleNodes ─┬─► BestNodes
                                   └─► TotalScores  ──┘       │
                                             └────────────────┴─► PodClass ─► KnownSpec

An arrow leads from an entry to what is made of it. An entry that is dropped takes with it everything that was made of
it, so every entry is valid; it may only need a refresh. Where space is needed, the least recently used of the entries
from which nothing is made goes, such as the spec that no pod has had for the longest time, and with it the entries that
only it was made of: its class, views and columns. The same happens to entries that are not used from one `forget_idle`
to the next, since their pods are probably gone.

A plugin signs a pod with the fragment on which its answer depends and names the aspects of a node that it reads. Its
answers are a column, asked again only where a node has changed: ten thousand pods of one Deployment cost one evaluation
of all nodes, and one of a single row after each placement. A plugin that cannot sign a pod is evaluated in full for it;
that concerns no other plugin.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import numpy.typing as npt

from scheduler.api.recent_caches import weight_of
from scheduler.framework.nodes.change_log import ChangeLog, LogReader
from scheduler.framework.nodes.columns import Rows, locked, read_only
from scheduler.framework.nodes.nodes import Aspect
from scheduler.runtime.live_nodes import LiveNodes

STORE_BYTES: Final = 80 * 1024 * 1024
"""About how much memory one profile's stored answers may take."""

FEWEST: Final = 24
"""This many entries are kept however large they are: enough for a pod class or two."""

EXPIRED: Final = "expired"
"""It was not used for a while."""

NO_ROOM: Final = "no_room"
"""Others needed its place."""

POD_FAILED: Final = "pod_failed"
"""A plugin failed while it was brought up to date."""

FLUSH_REASONS: Final = (EXPIRED, NO_ROOM, POD_FAILED)

FORGOTTEN_AT_ONCE: Final = 50
"""Specs, with what only they have, that are dropped before others get their turn: less than 2 ms."""

FEW: Final = 8
"""For up to this many values plain Python is faster than numpy."""

Values = npt.NDArray[Any]

Evaluate = Callable[[Rows], Values | None]
"""Answers for some rows; None means 0 for all of them."""


class Stored(LogReader):
    """An entry, with its sources and the entries derived from it."""

    __slots__ = ("dependents", "key", "own_bytes", "sources")

    least_bytes: ClassVar[int] = 2048
    """About how much memory it takes without its key, whatever the number of nodes."""

    is_hint: ClassVar[bool] = False
    """Whether it says where pods can run: what kube-scheduler's metrics of batches call a hint."""

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
        self._positions = [-1] * len(self.logs)
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
            row = rows.item()
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


S = TypeVar("S", bound=Stored)


class AnswerStore:
    """All stored answers of one profile, and the data derived from them."""

    def __init__(self, nodes: LiveNodes) -> None:
        self.nodes = nodes
        self.on_flush: Callable[[str], None] = lambda reason: None
        """Called with the reason each time that the feasible nodes of a pod class are dropped."""
        self._entries: dict[Hashable, Stored] = {}
        self._mark = Stored("what comes before it was not used since the last `forget_idle`")
        self._tops: OrderedDict[Stored, None] = OrderedDict({self._mark: None})
        """The entries of which nothing is made, the least recently used first; and the mark."""
        self._bytes_per_row = 0
        self._own_bytes = 0
        self.era = object()
        """Another one after each `clear`."""
        self._all_rows: Rows = np.arange(0)
        self._one_row: tuple[int, Rows] = (-1, self._all_rows)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: Stored) -> bool:
        return self._entries.get(entry.key) is entry

    @property
    def bytes(self) -> int:
        """About how much memory the entries take."""
        return self._bytes_per_row * self.nodes.size + self._own_bytes

    def find(self, key: Hashable, kind: type[S]) -> S | None:
        """Return the entry stored under `key`, which is of that kind, and count it as used; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        assert type(entry) is kind, "each kind has keys of its own"
        if not entry.dependents:
            self._tops.move_to_end(entry)
        return entry

    def add(self, entry: S) -> S:
        """Store an entry under its key, which is not in use; return it."""
        self._entries[entry.key] = entry
        self._tops[entry] = None
        self._bytes_per_row += entry.bytes_per_row
        self._own_bytes += entry.own_bytes
        for source in entry.sources:
            self._depend(entry, source)
        while self.bytes > STORE_BYTES and len(self) > FEWEST:
            oldest = next(top for top in self._tops if top is not self._mark)
            if oldest is entry:
                break
            self._release(oldest, NO_ROOM)
        return entry

    def link(self, entry: Stored, source: Stored) -> None:
        """Note that an entry is made of `source` too. One that was dropped meanwhile is not linked any more."""
        if entry in self and source not in entry.sources:
            entry.sources.append(source)
            self._depend(entry, source)

    def drop(self, entry: Stored, reason: str = POD_FAILED) -> None:
        """Drop an entry, and everything that is made of it."""
        if entry in self:
            if entry.is_hint:
                self.on_flush(reason)
            del self._entries[entry.key]
            self._tops.pop(entry, None)
            self._bytes_per_row -= entry.bytes_per_row
            self._own_bytes -= entry.own_bytes
        for source in entry.sources:
            source.dependents.discard(entry)
            if not source.dependents and source in self:
                self._tops[source] = None
        dependents, entry.dependents, entry.sources = entry.dependents, set(), []
        for dependent in dependents:
            self.drop(dependent, reason)
        entry.on_drop()

    def clear(self) -> None:
        """Drop everything, and with a new `era` data kept elsewhere for this store."""
        for entry in list(self._entries.values()):
            self.drop(entry)
        self.era = object()

    def forget_idle(self) -> Iterator[None]:
        """Drop what was not used since the last time; yield now and then, that others may have their turn."""
        count = 0
        while (oldest := next(iter(self._tops))) is not self._mark:
            self._release(oldest, EXPIRED)
            count += 1
            if count % FORGOTTEN_AT_ONCE == 0:
                yield
        self._tops.move_to_end(self._mark)

    def _release(self, entry: Stored, reason: str) -> None:
        """Drop an entry of which nothing is made, and what only it was made of."""
        sources = entry.sources
        self.drop(entry, reason)
        for source in sources:
            if source in self._tops:
                self._release(source, reason)

    def _depend(self, entry: Stored, source: Stored) -> None:
        source.dependents.add(entry)
        self._tops.pop(source, None)

    def drop_columns(self, prefix: Hashable) -> None:
        """Drop the columns whose key is a tuple that begins with `prefix`, and everything that is made of them."""
        for entry in [each for each in self._entries.values() if isinstance(each, Column)]:
            if isinstance(entry.key, tuple) and entry.key[0] == prefix:
                self.drop(entry, NO_ROOM)

    # Columns.

    def column_of(self, key: Hashable, aspects: tuple[Aspect, ...], dtype: npt.DTypeLike) -> Column:
        """Return the column stored under `key`, or a new one. It may be stale."""
        column = self.find(key, Column)
        return self.add(Column(key, map(self.nodes.change_log, aspects), dtype)) if column is None else column

    def column(self, key: Hashable, aspects: tuple[Aspect, ...], dtype: npt.DTypeLike, evaluate: Evaluate) -> Column:
        """Return the column stored under `key`, brought up to date. What `evaluate` raises passes through."""
        column = self.column_of(key, aspects, dtype)
        self.bring_up_to_date(column, evaluate)
        return column

    def bring_up_to_date(self, column: Column, evaluate: Evaluate) -> None:
        """Ask about the rows that changed. If that raises, the column is dropped, and all that is made of it."""
        stale, size = column.stale_rows(), self.nodes.size
        if stale is None or stale or len(column.values) < size:
            rows = self._rows_to_ask(stale, size)
            try:
                column.take(rows, evaluate(rows), size)
            except BaseException:
                self.drop(column)  # its log positions have moved on
                raise

    def _rows_to_ask(self, stale: Collection[int] | None, size: int) -> Rows:
        """Return which of the `size` rows a plugin is asked about where `stale` ones changed (None: any may have)."""
        if stale is None or len(stale) * 4 > size:
            return self.all_rows()
        if len(stale) != 1:
            return locked(np.array(sorted(stale), dtype=np.intp))
        [row] = stale
        if row != self._one_row[0]:  # several columns have the same stale row, one after the other
            one = np.array((row,), np.intp)
            one.flags.writeable = False
            self._one_row = row, one
        return self._one_row[1]

    def all_rows(self) -> Rows:
        """Every row number of the table."""
        if len(self._all_rows) != self.nodes.size:
            self._all_rows = locked(np.arange(self.nodes.size))
        return self._all_rows
