"""The number of matching pods on each row, updated as pods come and go, for every match that was asked for.

Pods that no selector distinguishes form a group, and a match is evaluated once per group. A pod then costs a look-up
of its group, and one addition for each match that the group fulfils.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np

from scheduler.api.label_selectors import EXISTS, IN, Selector
from scheduler.api.objects import labels_of
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.pod_affinity import NO_TERMS
from scheduler.framework.nodes.columns import Int32Column, Int64Column
from scheduler.framework.pods import PodCounts, PodMatch, TermWeights, Topology
from scheduler.state.nodes.count_columns import COLUMN_BYTES, CountColumn, CountColumns
from scheduler.state.pod_terms import SUMS_BYTES, TermTable
from scheduler.state.selector_postings import SelectorPostings

GroupKey: TypeAlias = tuple[str | bool, ...]
"""Within a namespace: being deleted or not, the label keys, the label values. Flat, since there may be one per pod."""


class AlikePods(msgspec.Struct, eq=False, gc=False):
    """Those of one namespace with equal labels, all being deleted or none.

    It refers to columns, which refer to nothing, so the garbage collector need not track it.
    """

    labels: Mapping[str, str]
    is_deleting: bool
    rows: dict[int, int]
    """Row → number of its pods there; never 0."""
    columns: tuple[CountColumn, ...] = ()
    """The columns in which its pods are counted: those of the matches that it fulfils."""


def group_key(pod: Pod) -> GroupKey:
    """Return the key of the pod's group within its namespace."""
    metadata = pod.metadata
    labels = labels_of(metadata)
    # The API server sends labels sorted by key; another order only costs one more group.
    if labels:
        return (metadata.deletion_timestamp is not None, *labels, *labels.values())
    return (metadata.deletion_timestamp is not None,)


def fulfils(match: PodMatch, namespace: str, group: AlikePods) -> bool:
    """Return whether the pods of a group match."""
    if group.is_deleting and match.alive_only:
        return False
    return (match.namespaces is None or namespace in match.namespaces) and match.selector.matches(group.labels)


def add_up(groups: Iterable[AlikePods], counts: Int32Column) -> None:
    """Add to `counts` how many pods of the groups are on each row."""
    by_row = [group.rows for group in groups]
    if not by_row:
        return
    size = sum(map(len, by_row))
    rows = np.fromiter(chain.from_iterable(by_row), np.intp, size)
    pods = np.fromiter(chain.from_iterable(of_group.values() for of_group in by_row), np.int32, size)
    np.add.at(counts, rows, pods)


MAX_COLUMNS_OF_A_GROUP: Final = 128
"""A pod is counted in no more columns than this: 25 ns each, or 3 µs. The least recently used ones make room."""

MAX_UNLISTED: Final = 256
"""Matches that no label leads to, such as all of `NotIn`: each is asked about every new group."""

MAX_LOOKS: Final = 80_000
"""Groups that one decision looks at for matches that are new, about 80 ms. Whatever it found until then is stored."""

FREE_MATCHES: Final = 8
"""New matches of a decision for which it may look at any number of groups: more than any usual pod has."""

_NO_GROUPS: Final[Mapping[GroupKey, AlikePods]] = {}


class MatchCounts(NamedTuple):
    """Implements framework.pods.PodCounts, for a table of `size` rows."""

    column: CountColumn
    size: int

    @property
    def counts(self) -> Int32Column:
        return self.column.counts.shown[: self.size]

    def sums(self, topology: Topology) -> Int64Column:
        return self.column.sums(topology)


class AlikePodsIndex:
    """Implements framework.pods.PodIndex. The node table is the only writer."""

    def __init__(
        self, capacity: int, label_keys: Container[str], limit: int = COLUMN_BYTES, sums_limit: int = SUMS_BYTES
    ) -> None:
        """`label_keys`: the labels that any node has, as they are now."""
        self._size = 0
        self._capacity = capacity
        self._label_keys = label_keys
        self._limit, self._sums_limit = limit, sums_limit
        self._groups: dict[str, dict[GroupKey, AlikePods]] = {}
        self._matches: CountColumns[PodMatch] = CountColumns(capacity, limit)
        self._postings: SelectorPostings[PodMatch] = SelectorPostings()
        self._unlisted: set[PodMatch] = set()
        self.decision = 0
        """A number that changes with each decision, and with it the looks that are left."""
        self._looked_in = 0
        self._new_matches = 0
        self._looks = 0
        self._terms = TermTable(capacity, label_keys, sums_limit)

    # What plugins read.

    def counts(self, match: PodMatch) -> Int32Column:
        return self._column(match).counts.shown[: self._size]

    def matching(self, match: PodMatch) -> PodCounts:
        return MatchCounts(self._column(match), self._size)

    def has_terms(self, weights: TermWeights) -> bool:
        listed = self._terms.listed
        for kind, _ in weights:  # noqa: SIM110 - asked in each decision, and `any` costs more than the look
            if listed[kind]:
                return True
        return False

    def terms_towards(
        self, weights: TermWeights, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> Sequence[tuple[str, PodCounts]]:
        columns = self._terms.sums(weights, namespace, labels, namespace_labels)
        return [(key, MatchCounts(column, self._size)) for key, column in columns.items()]

    # What the node table writes.

    def clear(self) -> None:
        """Forget all pods, rows and columns, whatever state they are in."""
        self._size = 0
        self._groups = {}
        self._matches = CountColumns(self._capacity, self._limit)
        self._postings = SelectorPostings()
        self._unlisted.clear()
        self._terms = TermTable(self._capacity, self._label_keys, self._sums_limit)

    def resize(self, size: int) -> None:
        """Follow the node table to a new number of rows, which never decreases."""
        self._size = size
        if size > self._capacity:
            self._capacity = max(size, 2 * self._capacity)
            self._matches.grow(self._capacity)
            self._terms.grow(self._capacity)

    def label_keys_changed(self, keys: Iterable[str]) -> None:
        """Take over that these label keys came to the nodes, or left them."""
        self._terms.label_keys_changed(keys)

    def count(self, row: int, pod: Pod, sign: int) -> None:
        """Count a pod on a row, or with `sign` -1 stop counting it.

        Raises KeyError if no such pod, with these labels, was counted there.
        """
        key = group_key(pod)
        groups = self._groups.get(pod.metadata.namespace)
        group = groups.get(key) if groups is not None else None
        if group is None:
            if sign < 0:
                raise KeyError(f"no pod like {pod} was counted")
            group = self._new_group(pod, key)
        rows = group.rows
        pods = rows.get(row, 0) + sign
        if pods > 0:
            rows[row] = pods
        else:
            del rows[row]  # a KeyError if there was none
            if not rows:
                self._drop_group(pod.metadata.namespace, key)
        for column in group.columns:
            column.add(row, sign)
        if pod.spec.affinity is not None:
            terms = pod.affinity_terms
            if terms is not NO_TERMS:
                self._terms.count(row, terms, sign)

    def replace(self, row: int, old: Pod, new: Pod) -> bool:
        """Replace a pod by its new version; return whether they differ in anything that is counted here."""
        if old.affinity_terms is new.affinity_terms and group_key(old) == group_key(new):
            return False
        self.count(row, old, -1)
        self.count(row, new, 1)
        return True

    def forget_idle(self) -> None:
        """Drop the columns that were not asked for since the last call."""
        self._forget(self._matches.forget_idle())
        self._terms.forget_idle()

    @property
    def bytes(self) -> int:
        """About how much memory the columns take."""
        return self._matches.bytes + self._terms.bytes

    def check_invariants(self, pods_by_row: Sequence[Collection[Pod]]) -> None:
        """Every column equals a recount of the pods. For tests and debugging."""
        assert self._size == len(pods_by_row)
        expected: dict[tuple[str, GroupKey], dict[int, int]] = {}
        for row, pods in enumerate(pods_by_row):
            for pod in pods:
                rows = expected.setdefault((pod.namespace, group_key(pod)), {})
                rows[row] = rows.get(row, 0) + 1
        groups = {(name, key): group for name, of_name in self._groups.items() for key, group in of_name.items()}
        assert expected == {key: group.rows for key, group in groups.items()}
        assert all(self._groups.values()), "a namespace without groups"
        columns = {id(column): match for match, column in self._matches.items()}
        for (namespace, _), group in groups.items():
            counted = [columns[id(column)] for column in group.columns]
            assert len(group.columns) <= MAX_COLUMNS_OF_A_GROUP
            assert len(counted) == len(set(counted)), group
            assert set(counted) == {match for match, _ in self._matches.items() if fulfils(match, namespace, group)}
        assert self._unlisted == {match for match, _ in self._matches.items() if is_unlisted(match.selector)}
        for match, column in self._matches.items():
            recount = np.zeros(self._capacity, np.int32)
            add_up((group for (namespace, _), group in groups.items() if fulfils(match, namespace, group)), recount)
            assert np.array_equal(column.counts.values, recount), match
            column.check_invariants()
        self._terms.check_invariants()

    # Internals.

    def _column(self, match: PodMatch) -> CountColumn:
        column = self._matches.get(match)
        if column is None:
            if self._looked_in != self.decision:
                self._looked_in, self._new_matches, self._looks = self.decision, 0, 0
            self._new_matches += 1
            if self._new_matches > FREE_MATCHES and self._looks > MAX_LOOKS:
                raise ValueError(f"{self._looks} sets of labels were looked at; the next attempt goes on from here")
            self._forget(self._matches.make_room())
            groups = self._fulfilling(match)
            self._make_room_in(groups)
            if is_unlisted(match.selector):
                self._make_room_unlisted()
                self._unlisted.add(match)
            column = self._matches.add(match)
            self._postings.add(match, match.namespaces, match.selector)
            add_up(groups, column.counts.values)
            for group in groups:
                group.columns = (*group.columns, column)
        return column

    def _new_group(self, pod: Pod, key: GroupKey) -> AlikePods:
        namespace = pod.metadata.namespace
        group = AlikePods(labels_of(pod.metadata) or {}, pod.is_deleting, {})
        group.columns = tuple(
            self._matches.peek(match)
            for match in self._postings.candidates(namespace, group.labels)
            if fulfils(match, namespace, group)
        )
        self._groups.setdefault(namespace, {})[key] = group
        return group

    def _drop_group(self, namespace: str, key: GroupKey) -> None:
        groups = self._groups[namespace]
        del groups[key]
        if not groups:
            del self._groups[namespace]

    def _fulfilling(self, match: PodMatch) -> list[AlikePods]:
        if match.selector.is_nothing:
            return []
        namespaces: Iterable[str] = self._groups if match.namespaces is None else match.namespaces
        fulfilling: list[AlikePods] = []
        for namespace in namespaces:
            groups: Collection[AlikePods] = self._groups.get(namespace, _NO_GROUPS).values()
            self._looks += len(groups)
            for requirement in match.selector.requirements:
                if requirement.operator == IN:  # leaves few groups to evaluate, and is cheap itself
                    key, values = requirement.key, requirement.values
                    groups = [group for group in groups if group.labels.get(key) in values]
                    break
            fulfilling += (group for group in groups if fulfils(match, namespace, group))
        return fulfilling

    def _make_room_in(self, groups: Iterable[AlikePods]) -> None:
        """Forget the columns that were not used for the longest time of each group that has too many."""
        for group in groups:
            if len(group.columns) >= MAX_COLUMNS_OF_A_GROUP:
                oldest = sorted(group.columns, key=by_use)[: MAX_COLUMNS_OF_A_GROUP // 4]
                self._forget(self._matches.drop(oldest))

    def _make_room_unlisted(self) -> None:
        if len(self._unlisted) >= MAX_UNLISTED:
            oldest = sorted((self._matches.peek(match) for match in self._unlisted), key=by_use)[: MAX_UNLISTED // 4]
            self._forget(self._matches.drop(oldest))

    def _forget(self, dropped: Sequence[tuple[PodMatch, CountColumn]]) -> None:
        if not dropped:
            return
        gone = {id(column) for _, column in dropped}
        for match, _ in dropped:
            self._unlisted.discard(match)
            self._postings.remove(match, match.namespaces, match.selector)
        for groups in self._groups.values():
            for group in groups.values():
                if group.columns and not gone.isdisjoint(map(id, group.columns)):
                    group.columns = tuple(column for column in group.columns if id(column) not in gone)


def is_unlisted(selector: Selector) -> bool:
    """Return whether no label of a pod leads to the selector."""
    return not selector.is_nothing and all(each.operator not in (IN, EXISTS) for each in selector.requirements)


def by_use(column: CountColumn) -> int:
    return column.used
