"""Which affinity terms the pods on nodes have, and where: each distinct term once.

A deployment of three pods may have a term of its own, and a cluster thousands of deployments: a term stores the few
rows that have it, and its column is made when it is first asked for.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from scheduler.api.pod_affinity import AffinityTerm, AffinityTerms
from scheduler.framework.columns import Int32Column, Int64Column
from scheduler.framework.pods import TermKind
from scheduler.framework.topology import Topology
from scheduler.state.count_columns import CountColumn, CountColumns
from scheduler.state.selector_postings import SelectorPostings


class TermCounts:
    """Implements framework.pods.TermColumn."""

    __slots__ = ("_table", "column", "kind", "rows", "term", "weight")

    def __init__(self, table: "TermTable", kind: TermKind, term: AffinityTerm, weight: int) -> None:
        self._table = table
        self.kind = kind
        self.term = term
        self.weight = weight
        self.rows: dict[int, int] = {}
        self.column: CountColumn | None = None

    @property
    def counts(self) -> Int32Column:
        return self._table.column_of(self).counts[: self._table.size]

    def sums(self, topology: Topology) -> Int64Column:
        return self._table.column_of(self).sums(topology)


class _TermSet(msgspec.Struct, eq=False):
    """The terms of pods that all have the same ones."""

    terms: tuple[TermCounts, ...]
    pods: int = 0


class TermTable:
    """Counts the terms of pods as they come and go."""

    def __init__(self, capacity: int, limit: int) -> None:
        self.size = 0
        """How many rows the node table has."""
        self._term_sets: dict[AffinityTerms, _TermSet] = {}
        self.by_kind: dict[TermKind, dict[tuple[AffinityTerm, int], TermCounts]] = {kind: {} for kind in TermKind}
        self._postings: dict[TermKind, SelectorPostings[TermCounts]] = {kind: SelectorPostings() for kind in TermKind}
        self._columns: CountColumns[TermCounts] = CountColumns(capacity, limit)

    def candidates(self, kind: TermKind, namespace: str, labels: Mapping[str, str]) -> Iterator[TermCounts]:
        return self._postings[kind].candidates(namespace, labels)

    def count(self, row: int, terms: AffinityTerms, sign: int) -> None:
        """Count a pod with these terms on a row, or with `sign` -1 stop counting it."""
        term_set = self._term_sets.get(terms)
        if term_set is None:
            counts = tuple(self._counts_of(kind, term, weight) for kind, term, weight in _by_kind(terms))
            term_set = self._term_sets[terms] = _TermSet(counts)
        term_set.pods += sign
        for term in term_set.terms:
            pods = term.rows.get(row, 0) + sign
            if pods:
                term.rows[row] = pods
            else:
                del term.rows[row]
            if term.column is not None:
                term.column.add(row, sign)
        if not term_set.pods:
            del self._term_sets[terms]
            for term in term_set.terms:
                if not term.rows:
                    self._drop(term)

    def column_of(self, term: TermCounts) -> CountColumn:
        """Return the column of a term, making it if there is none."""
        column = self._columns.get(term)
        if column is None:
            _forget(self._columns.make_room())
            column = term.column = self._columns.add(term)
            for row, pods in term.rows.items():
                column.counts[row] = pods
        return column

    def forget_idle(self) -> None:
        """Drop the columns that were not asked for since the last call."""
        _forget(self._columns.forget_idle())

    @property
    def bytes(self) -> int:
        """About how much memory the columns take."""
        return self._columns.bytes

    def grow(self, capacity: int) -> None:
        self._columns.grow(capacity)

    def check_invariants(self) -> None:
        """The terms of the sets are exactly those that are listed. For tests and debugging."""
        expected = {id(term) for term_set in self._term_sets.values() for term in term_set.terms}
        assert expected == {id(term) for terms in self.by_kind.values() for term in terms.values()}
        assert all(term_set.pods > 0 for term_set in self._term_sets.values())
        columns = dict(self._columns.items())
        assert {id(term) for term in columns} <= expected
        for kind, terms in self.by_kind.items():
            for (term, weight), counts in terms.items():
                assert (kind, term, weight) == (counts.kind, counts.term, counts.weight)
                assert counts.rows, term
                assert all(pods > 0 for pods in counts.rows.values()), term
                assert counts.column is columns.get(counts), term
                assert (counts in self._postings[kind]) != term.selector.is_nothing, term
                if counts.column is not None:
                    counts.column.check_invariants()
                    column = counts.column.counts
                    assert {row: column.item(row) for row in column.nonzero()[0].tolist()} == counts.rows, term

    def _counts_of(self, kind: TermKind, term: AffinityTerm, weight: int) -> TermCounts:
        counts = self.by_kind[kind].get((term, weight))
        if counts is None:
            counts = self.by_kind[kind][term, weight] = TermCounts(self, kind, term, weight)
            self._postings[kind].add(counts, _namespaces(term), term.selector)
        return counts

    def _drop(self, term: TermCounts) -> None:
        # Called twice for a term that a pod has twice.
        if self.by_kind[term.kind].pop((term.term, term.weight), None) is not None:
            self._postings[term.kind].remove(term, _namespaces(term.term), term.term.selector)
            self._columns.remove(term)


def _forget(dropped: Iterable[tuple[TermCounts, CountColumn]]) -> None:
    for term, _ in dropped:
        term.column = None


def _namespaces(term: AffinityTerm) -> frozenset[str] | None:
    """Return the namespaces of a term; None if only the labels of a namespace can tell."""
    return term.namespaces if term.namespace_selector.is_nothing else None


def _by_kind(terms: AffinityTerms) -> Iterator[tuple[TermKind, AffinityTerm, int]]:
    for term in terms.required_affinity:
        yield TermKind.REQUIRED_AFFINITY, term, 0
    for term in terms.required_anti_affinity:
        yield TermKind.REQUIRED_ANTI_AFFINITY, term, 0
    for weighted in terms.preferred_affinity:
        yield TermKind.PREFERRED_AFFINITY, weighted.term, weighted.weight
    for weighted in terms.preferred_anti_affinity:
        yield TermKind.PREFERRED_ANTI_AFFINITY, weighted.term, weighted.weight
