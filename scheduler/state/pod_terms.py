"""Which affinity terms the pods on nodes have, and where: each distinct term once.

A deployment of three pods may have a term of its own, and a cluster thousands of deployments: a term keeps the few rows
that have it, and its column is made when somebody asks.
"""

from collections.abc import Collection, Iterator, Mapping

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


class _Shape(msgspec.Struct, eq=False):
    """The terms of all pods that ask for the same."""

    terms: tuple[TermCounts, ...]
    pods: int = 0


class TermTable:
    """Counts the terms of pods as they come and go."""

    def __init__(self, capacity: int, limit: int) -> None:
        self.size = 0
        """How many rows the node table has."""
        self._shapes: dict[AffinityTerms, _Shape] = {}
        self._terms: dict[TermKind, dict[tuple[AffinityTerm, int], TermCounts]] = {kind: {} for kind in TermKind}
        self._postings: dict[TermKind, SelectorPostings[TermCounts]] = {kind: SelectorPostings() for kind in TermKind}
        self._columns: CountColumns[TermCounts] = CountColumns(capacity, limit)

    def of_kind(self, kind: TermKind) -> Collection[TermCounts]:
        return self._terms[kind].values()

    def candidates(self, kind: TermKind, namespace: str, labels: Mapping[str, str]) -> Iterator[TermCounts]:
        return self._postings[kind].candidates(namespace, labels)

    def count(self, row: int, terms: AffinityTerms, sign: int) -> None:
        """Count a pod with these terms on a row, or with `sign` -1 stop counting it."""
        shape = self._shapes.get(terms)
        if shape is None:
            shape = self._shapes[terms] = _Shape(tuple(self._find(*wanted) for wanted in _each(terms)))
        shape.pods += sign
        for term in shape.terms:
            pods = term.rows.get(row, 0) + sign
            if pods:
                term.rows[row] = pods
            else:
                del term.rows[row]
            if term.column is not None:
                term.column.add(row, sign)
        if not shape.pods:
            del self._shapes[terms]
            for term in shape.terms:
                if not term.rows:
                    self._drop(term)

    def column_of(self, term: TermCounts) -> CountColumn:
        """Return the column of a term, made if there is none."""
        column = self._columns.get(term)
        if column is None:
            for dropped, _ in self._columns.make_room():
                dropped.column = None
            column = term.column = self._columns.add(term)
            for row, pods in term.rows.items():
                column.counts[row] = pods
        return column

    def grow(self, capacity: int) -> None:
        self._columns.grow(capacity)

    def check_invariants(self) -> None:
        """The terms of the shapes are those that are found, and no others. For tests and debugging."""
        expected = {id(term) for shape in self._shapes.values() for term in shape.terms}
        assert expected == {id(term) for terms in self._terms.values() for term in terms.values()}
        assert all(shape.pods > 0 for shape in self._shapes.values())
        columns = dict(self._columns.items())
        assert {id(term) for term in columns} <= expected
        for kind, terms in self._terms.items():
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

    def _find(self, kind: TermKind, term: AffinityTerm, weight: int) -> TermCounts:
        found = self._terms[kind].get((term, weight))
        if found is None:
            found = self._terms[kind][term, weight] = TermCounts(self, kind, term, weight)
            self._postings[kind].add(found, _namespaces(term), term.selector)
        return found

    def _drop(self, term: TermCounts) -> None:
        # A term that a pod has twice comes here twice.
        if self._terms[term.kind].pop((term.term, term.weight), None) is not None:
            self._postings[term.kind].remove(term, _namespaces(term.term), term.term.selector)
            self._columns.remove(term)


def _namespaces(term: AffinityTerm) -> frozenset[str] | None:
    """Return the namespaces of a term; None if only the labels of a namespace can tell."""
    return term.namespaces if term.namespace_selector.is_nothing else None


def _each(terms: AffinityTerms) -> Iterator[tuple[TermKind, AffinityTerm, int]]:
    for term in terms.required_affinity:
        yield TermKind.REQUIRED_AFFINITY, term, 0
    for term in terms.required_anti_affinity:
        yield TermKind.REQUIRED_ANTI_AFFINITY, term, 0
    for weighted in terms.preferred_affinity:
        yield TermKind.PREFERRED_AFFINITY, weighted.term, weighted.weight
    for weighted in terms.preferred_anti_affinity:
        yield TermKind.PREFERRED_ANTI_AFFINITY, weighted.term, weighted.weight
