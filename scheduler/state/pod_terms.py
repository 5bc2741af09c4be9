"""The affinity terms of the pods on nodes: pods that have the same terms are counted together.

A deployment of three pods may have a term of its own, and a pod thousands of terms. So what a decision needs is stored
(`TermSums`), and brought up to date by pods that come and go and by terms that are new. A term with a topology key that
no node has reaches no pod: it is listed nowhere until a node has the label.
"""

from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec
import numpy as np

from scheduler.api.pods.pod_affinity import AffinityTerm, AffinityTerms
from scheduler.framework.pods import TermKind, TermWeights
from scheduler.state.nodes.count_columns import CountColumn
from scheduler.state.nodes.live_column import int32_column
from scheduler.state.nodes.mentioned_labels import KnownLabels, MentionedLabels
from scheduler.state.selector_postings import SelectorPostings

SUMS_BYTES: Final = 32 << 20
"""Memory for the sums of all kinds of pods, about."""

_OWN_BYTES: Final = 1024
"""The approximate size of sums without their columns, in bytes."""

_BYTES_PER_COUNT: Final = 4
_FEW: Final = 16
"""For up to this many rows plain Python is faster than numpy."""

_Feed: TypeAlias = tuple[tuple[str, CountColumn, int], ...]
"""Topology keys with their columns, and what one pod adds to each."""


class _Term(msgspec.Struct, eq=False):
    """One term with its weight, however many pods have it."""

    kind: TermKind
    term: AffinityTerm
    weight: int
    sets: dict["_TermSet", int]
    """The rows where it occurs, and how often."""
    is_listed: bool = False
    """Whether any node has its topology key."""


class _TermSet(msgspec.Struct, eq=False):
    """The terms of pods that all have the same ones."""

    terms: tuple[_Term, ...]
    number: int
    """Ascending, in the order in which the sets came."""
    rows: dict[int, int]
    """Row → number of its pods there; never 0."""
    feeds: "dict[TermSums, _Feed]"


class TermSums(msgspec.Struct, eq=False):
    """The terms that select pods of one kind: how many on each row, for each topology key.

    A kind of pods: all in one namespace that no term's selector distinguishes.
    """

    weights: TermWeights
    namespace: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str]
    columns: dict[str, CountColumn]
    """By topology key."""
    feeding: dict[str, int]
    """Topology key → how many of `sets` count in its column; never 0."""
    seen: int
    """The number of the newest set of terms that was looked at."""
    sets: dict[_TermSet, None]
    """Those that count here."""
    is_in_use: bool = True
    """Whether it was asked for since the last `forget_idle`."""


class TermTable:
    """Counts the terms of pods as they come and go."""

    def __init__(self, capacity: int, label_keys: Container[str], limit: int = SUMS_BYTES) -> None:
        """`label_keys`: the labels that any node has, as they are now."""
        self._capacity = capacity
        self._label_keys = label_keys
        self._limit = limit
        self._sets: dict[AffinityTerms, _TermSet] = {}
        self._newest = 0
        self._terms: dict[tuple[TermKind, AffinityTerm, int], _Term] = {}
        self._by_topology_key: dict[str, dict[_Term, None]] = {}
        self._postings: dict[TermKind, SelectorPostings[_Term]] = {kind: SelectorPostings() for kind in TermKind}
        self.listed = dict.fromkeys(TermKind, 0)
        """How many terms of each kind have a topology key that any node has."""
        self._mentioned = MentionedLabels()
        self._sums: OrderedDict[tuple[TermWeights, str, KnownLabels], TermSums] = OrderedDict()
        self._bytes = 0

    def sums(
        self,
        weights: TermWeights,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str],
    ) -> Mapping[str, CountColumn]:
        """Return for each topology key the sum of the terms on each row that select such a pod."""
        known = self._mentioned.known(labels)
        key = (weights, namespace, known)
        found = self._sums.get(key)
        if found is not None and found.namespace_labels != namespace_labels:
            self._drop(key)
            found = None
        if found is None:
            found = TermSums(weights, namespace, dict(known), namespace_labels, {}, {}, self._newest, {})
            self._sums[key] = found
            self._bytes += _OWN_BYTES
            self._fill(found)
            while self._bytes > self._limit and len(self._sums) > 1:
                self._drop(next(iter(self._sums)))
        else:
            self._sums.move_to_end(key)
            found.is_in_use = True
            if found.seen != self._newest:
                self._catch_up(found)
        return found.columns

    def count(self, row: int, terms: AffinityTerms, sign: int) -> None:
        """Count a pod with these terms on a row, or with `sign` -1 stop counting it."""
        term_set = self._sets.get(terms)
        if term_set is None:
            term_set = self._new_set(terms)
        rows = term_set.rows
        pods = rows.get(row, 0) + sign
        if pods:
            rows[row] = pods
        else:
            del rows[row]
        for feed in term_set.feeds.values():
            for _, column, amount in feed:
                column.add(row, sign * amount)
        if not rows:
            self._drop_set(terms, term_set)

    @property
    def bytes(self) -> int:
        """About how much memory the sums take."""
        return self._bytes

    def forget_idle(self) -> None:
        """Drop the sums that were not asked for since the last call."""
        for key, sums in list(self._sums.items()):
            if not sums.is_in_use:
                self._drop(key)
            sums.is_in_use = False

    def grow(self, capacity: int) -> None:
        self._drop_sums()
        self._capacity = capacity

    def label_keys_changed(self, keys: Iterable[str]) -> None:
        """Take up the terms with one of these topology keys if nodes have it now, and leave those that none has."""
        for key in keys:
            concerned = self._by_topology_key.get(key)
            if concerned:
                self._drop_sums()  # they know the keys of before
                for term in concerned:
                    self._unlist(term)
                    self._list(term)

    def check_invariants(self) -> None:
        """The terms are exactly those of the sets, and the sums are right. For tests and debugging."""
        self._check_terms()
        assert self._bytes == sum(self._bytes_of(sums) for sums in self._sums.values())
        for sums in self._sums.values():
            self._catch_up(sums)
            self._check_sums(sums)
        assert all(term_set in sums.sets for term_set in self._sets.values() for sums in term_set.feeds)

    def _check_terms(self) -> None:
        occurrences: dict[_Term, dict[_TermSet, int]] = {}
        for terms, term_set in self._sets.items():
            assert [(term.kind, term.term, term.weight) for term in term_set.terms] == list(_by_kind(terms))
            assert term_set.rows
            assert all(pods > 0 for pods in term_set.rows.values())
            for term in term_set.terms:
                sets = occurrences.setdefault(term, {})
                sets[term_set] = sets.get(term_set, 0) + 1
        assert occurrences == {term: term.sets for term in self._terms.values()}
        listed = [term for term in self._terms.values() if term.is_listed]
        assert listed == [term for term in self._terms.values() if term.term.topology_key in self._label_keys]
        assert self.listed == {kind: sum(term.kind is kind for term in listed) for kind in TermKind}
        assert all((term in self._postings[term.kind]) != term.term.selector.is_nothing for term in listed)
        assert {term for terms in self._by_topology_key.values() for term in terms} == set(self._terms.values())
        self._mentioned.check_invariants(term.term.selector for term in listed)

    def _check_sums(self, sums: TermSums) -> None:
        feeding: dict[str, int] = {}
        for term_set in sums.sets:
            for topology_key, _, _ in term_set.feeds[sums]:
                feeding[topology_key] = feeding.get(topology_key, 0) + 1
        assert sums.feeding == feeding
        assert feeding.keys() == sums.columns.keys()
        recount = {topology_key: np.zeros(self._capacity, np.int32) for topology_key in feeding}
        for term_set in self._sets.values():
            for topology_key, amount in self._amounts(sums, term_set).items():
                for row, pods in term_set.rows.items():
                    recount[topology_key][row] += amount * pods
        for topology_key, column in sums.columns.items():
            assert np.array_equal(column.counts.values, recount[topology_key]), topology_key
            column.check_invariants()

    # Sums.

    def _fill(self, sums: TermSums) -> None:
        """Count everything that selects these pods: candidates are found by their labels."""
        amounts: dict[_TermSet, dict[str, int]] = {}
        for kind, weight in sums.weights:
            for term in self._postings[kind].candidates(sums.namespace, sums.labels):
                if term.term.matches(sums.namespace, sums.labels, sums.namespace_labels):
                    topology_key, amount = term.term.topology_key, _amount(term, weight)
                    for term_set, times in term.sets.items():
                        of_set = amounts.setdefault(term_set, {})
                        of_set[topology_key] = of_set.get(topology_key, 0) + times * amount
        for term_set, of_set in amounts.items():
            self._feed(sums, term_set, of_set)

    def _catch_up(self, sums: TermSums) -> None:
        """Count the sets of terms that have come since."""
        for term_set in reversed(self._sets.values()):
            if term_set.number <= sums.seen:
                break
            if of_set := self._amounts(sums, term_set):
                self._feed(sums, term_set, of_set)
        sums.seen = self._newest

    def _amounts(self, sums: TermSums, term_set: _TermSet) -> dict[str, int]:
        """Return by topology key what one pod with these terms counts."""
        amounts: dict[str, int] = {}
        weights = dict(sums.weights)
        for each in term_set.terms:
            weight, term = weights.get(each.kind, 0), each.term
            if weight and each.is_listed and term.matches(sums.namespace, sums.labels, sums.namespace_labels):
                amounts[term.topology_key] = amounts.get(term.topology_key, 0) + _amount(each, weight)
        return amounts

    def _feed(self, sums: TermSums, term_set: _TermSet, amounts: Mapping[str, int]) -> None:
        feed = tuple((key, self._column(sums, key), amount) for key, amount in amounts.items())
        for _, column, amount in feed:
            if len(term_set.rows) <= _FEW:
                for row, pods in term_set.rows.items():
                    column.add(row, amount * pods)
            else:
                rows = np.fromiter(term_set.rows, np.intp, len(term_set.rows))
                column.counts.values[rows] += np.fromiter(term_set.rows.values(), np.int32, len(rows)) * amount
                column.stored_sums = ()
        term_set.feeds[sums] = feed
        sums.sets[term_set] = None

    def _column(self, sums: TermSums, topology_key: str) -> CountColumn:
        """Return the column for one more set of terms."""
        sums.feeding[topology_key] = sums.feeding.get(topology_key, 0) + 1
        column = sums.columns.get(topology_key)
        if column is None:
            column = sums.columns[topology_key] = CountColumn(int32_column(self._capacity))
            self._bytes += _BYTES_PER_COUNT * self._capacity
        return column

    def _stop_feeding(self, sums: TermSums, term_set: _TermSet) -> None:
        """Forget a set of terms whose pods are gone, and the columns without others."""
        del sums.sets[term_set]
        for topology_key, _, _ in term_set.feeds[sums]:
            sums.feeding[topology_key] -= 1
            if not sums.feeding[topology_key]:
                del sums.feeding[topology_key], sums.columns[topology_key]
                self._bytes -= _BYTES_PER_COUNT * self._capacity

    def _drop(self, key: tuple[TermWeights, str, KnownLabels]) -> None:
        sums = self._sums.pop(key)
        self._bytes -= self._bytes_of(sums)
        for term_set in sums.sets:
            del term_set.feeds[sums]

    def _drop_sums(self) -> None:
        for key in list(self._sums):
            self._drop(key)

    def _bytes_of(self, sums: TermSums) -> int:
        return _OWN_BYTES + _BYTES_PER_COUNT * self._capacity * len(sums.columns)

    # Terms.

    def _new_set(self, terms: AffinityTerms) -> _TermSet:
        self._newest += 1
        found = tuple(self._term(kind, term, weight) for kind, term, weight in _by_kind(terms))
        term_set = self._sets[terms] = _TermSet(found, self._newest, {}, {})
        for term in found:
            term.sets[term_set] = term.sets.get(term_set, 0) + 1
        return term_set

    def _drop_set(self, terms: AffinityTerms, term_set: _TermSet) -> None:
        del self._sets[terms]
        for sums in term_set.feeds:
            self._stop_feeding(sums, term_set)
        for term in term_set.terms:
            term.sets.pop(term_set, None)  # gone already if the pod has the term twice
            if not term.sets and self._terms.pop((term.kind, term.term, term.weight), None) is not None:
                self._unlist(term)
                concerned = self._by_topology_key[term.term.topology_key]
                del concerned[term]
                if not concerned:
                    del self._by_topology_key[term.term.topology_key]

    def _term(self, kind: TermKind, term: AffinityTerm, weight: int) -> _Term:
        found = self._terms.get((kind, term, weight))
        if found is None:
            found = self._terms[kind, term, weight] = _Term(kind, term, weight, {})
            self._by_topology_key.setdefault(term.topology_key, {})[found] = None
            self._list(found)
        return found

    def _list(self, term: _Term) -> None:
        term.is_listed = term.term.topology_key in self._label_keys
        if term.is_listed:
            self.listed[term.kind] += 1
            self._postings[term.kind].add(term, _namespaces(term.term), term.term.selector)
            self._mentioned.add(term.term.selector)

    def _unlist(self, term: _Term) -> None:
        if term.is_listed:
            self.listed[term.kind] -= 1
            self._postings[term.kind].remove(term, _namespaces(term.term), term.term.selector)
            self._mentioned.remove(term.term.selector)


def _amount(term: _Term, weight: int) -> int:
    required = term.kind in (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY)
    return weight if required else weight * term.weight


def _namespaces(term: AffinityTerm) -> frozenset[str] | None:
    """Return the namespaces of a term; None if only the labels of a namespace decide."""
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
