"""The pods that a hard spread constraint counts in each topology domain, and the nodes that it refuses.

Rule: podtopologyspread/filtering.go at v1.36.3.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from plugins.pod_topology_spread.constraints import SpreadConstraint
from plugins.pod_topology_spread.nodes import ExcludedNodes
from plugins.shared.topology_domains import NO_DOMAIN, Domains, Sums
from scheduler import framework as fw

SKEWED: Final = 1
"""Reason code: one more pod here would be too many compared with the domain that has fewest."""
MISSING_LABEL: Final = 2
"""Reason code: the node is in no domain."""

NO_DOMAIN_COUNT: Final = 2**31 - 1
"""The fewest pods where there is no domain at all."""


def pods_counted(constraint: SpreadConstraint, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.PodCounts | None:
    """Return where pods count, and how many; None for a selector that selects everything, which counts none.

    Rule: common.go (countPodsMatchSelector).
    """
    if constraint.selector.is_everything:
        return None
    return nodes.pods.matching(fw.PodMatch(frozenset((pod.namespace,)), constraint.selector, alive_only=True))


class BaseCounts:
    """The counts of one constraint before any what-if."""

    __slots__ = ("_counted", "_excluded", "_first", "_second", "counts", "domains")

    def __init__(self, domains: Domains, excluded: fw.BoolColumn | None, pods: fw.PodCounts | None) -> None:
        """`excluded`: rows that do not count; `pods`: where they are."""
        self.domains = domains
        self._excluded = excluded
        self.counts = _counts(domains, excluded, pods)
        """How many pods each domain has."""
        self._counted = _counted(domains, excluded)
        self._first: tuple[int, int] | None = None
        self._second: int | None = None

    @property
    def size(self) -> int:
        """How many domains have a node that counts."""
        return len(self.counts if self._counted is None else self._counted)

    def rows(self) -> fw.Rows:
        """Return the rows that count."""
        is_in_one = self.domains.codes != 0
        return np.flatnonzero(is_in_one if self._excluded is None else is_in_one & ~self._excluded)

    def number(self, row: int) -> int:
        """Return the number of a row's domain; NO_DOMAIN if it is in none or does not count."""
        excluded = self._excluded is not None and self._excluded.item(row)
        return NO_DOMAIN if excluded else self.domains.number(row)

    def fewest_of(self, counts: Sums) -> int:
        """Return how many pods the domain with the fewest has by other `counts`."""
        return int((counts if self._counted is None else counts[self._counted]).min(initial=NO_DOMAIN_COUNT))

    def fewest(self) -> int:
        """Return how many pods the domain with the fewest has."""
        return self._lowest()[0]

    def fewest_except(self, number: int) -> int:
        """Return the same, except for one domain."""
        lowest, where = self._lowest()
        if number != where:
            return lowest
        if self._second is None:
            others = self.counts.copy()
            others[number] = NO_DOMAIN_COUNT
            self._second = self.fewest_of(others)
        return self._second

    def _lowest(self) -> tuple[int, int]:
        if self._first is None:
            counted = self._counted
            counts = self.counts if counted is None else self.counts[counted]
            if not len(counts):
                self._first = NO_DOMAIN_COUNT, NO_DOMAIN
            else:
                where = int(counts.argmin())
                self._first = counts.item(where), where if counted is None else counted.item(where)
        return self._first


def _counts(domains: Domains, excluded: fw.BoolColumn | None, pods: fw.PodCounts | None) -> Sums:
    if pods is None:
        return np.zeros(domains.size, np.int64)
    if excluded is None:
        return domains.sums(pods)
    if domains.are_rows:
        own: fw.Int32Column = pods.counts * _rows_counted(domains, excluded)
        return own
    counts = np.bincount(np.where(excluded, 0, domains.codes), pods.counts, domains.size).astype(np.int64)
    counts[0] = 0
    return counts


def _counted(domains: Domains, excluded: fw.BoolColumn | None) -> fw.Rows | None:
    """Return the domains with a row that is not excluded, in ascending order; None if each number is one."""
    if domains.are_rows:
        if excluded is None:
            return None if domains.is_complete else np.flatnonzero(domains.codes)
        return np.flatnonzero(_rows_counted(domains, excluded))
    if excluded is None:
        return domains.topology.distinct
    nodes = np.bincount(np.where(excluded, 0, domains.codes))
    nodes[0] = 0
    return np.flatnonzero(nodes)


def _rows_counted(domains: Domains, excluded: fw.BoolColumn) -> fw.BoolColumn:
    counted: fw.BoolColumn = ~excluded & (domains.codes != 0)
    return counted


class SpreadDomains:
    """The domains of one constraint. A what-if has a clone of its own, which shares all but the changes."""

    __slots__ = ("_base", "_changes", "constraint")

    def __init__(self, constraint: SpreadConstraint, base: BaseCounts) -> None:
        self.constraint = constraint
        self._base = base
        self._changes: dict[int, int] = {}

    def clone(self) -> "SpreadDomains":
        copy = SpreadDomains(self.constraint, self._base)
        copy._changes = dict(self._changes)
        return copy

    def has(self, row: int) -> bool:
        """Return whether a row has the topology key."""
        return self._base.domains.number(row) != NO_DOMAIN

    def count(self, row: int) -> int | None:
        """Return how many pods the domain of a row has; None if it is in none."""
        number = self._base.domains.number(row)
        return None if number == NO_DOMAIN else self._base.counts.item(number) + self._changes.get(number, 0)

    def change(self, row: int, pods: int) -> None:
        """Count this many more pods on a row, or fewer if negative, if it is counted at all."""
        number = self._base.number(row)
        if number != NO_DOMAIN:
            self._changes[number] = self._changes.get(number, 0) + pods

    @property
    def size(self) -> int:
        """How many domains have a node that counts."""
        return self._base.size

    def rows_with_fewest(self) -> fw.Rows:
        """Return the rows that count, of the domains that have the fewest pods."""
        counts, rows = self._counts(), self._base.rows()
        lowest: fw.Rows = rows[self._base.domains.at(counts == self._base.fewest_of(counts), rows)]
        return lowest

    def rows_left_out(self) -> fw.Rows:
        """Return the rows of domains of which none counts."""
        domains, rows = self._base.domains, self._base.rows()
        counts = np.zeros(domains.size, np.bool_)
        counts[rows if domains.are_rows else domains.codes[rows]] = True
        labelled = np.flatnonzero(domains.codes != 0)
        return labelled[~domains.at(counts, labelled)]

    def fewest(self) -> int:
        """Return how many pods the domain with the fewest has; 0 if there are fewer domains than minDomains."""
        base, changes = self._base, self._changes
        if base.size < self.constraint.min_domains:
            return 0
        if not changes:
            return base.fewest()
        if len(changes) == 1:
            ((number, pods),) = changes.items()
            return min(base.fewest_except(number), base.counts.item(number) + pods)
        return base.fewest_of(self._counts())

    def refusals(self, self_match: int, rows: fw.Rows) -> fw.Int32Column:
        """Return a reason code for each of `rows`, 0 where it may go. `self_match`: 1 if the pod matches, else 0."""
        most = self.constraint.max_skew + self.fewest() - self_match
        domains = self._base.domains
        if len(rows) == 1:
            number = domains.number(rows.item())
            if number == NO_DOMAIN:
                return np.array([MISSING_LABEL], np.int32)
            count = self._base.counts.item(number) + self._changes.get(number, 0)
            return np.array([SKEWED if count > most else 0], np.int32)
        refused = (self._counts() > most).astype(np.int32)  # SKEWED is 1
        domains.set_absent(refused, MISSING_LABEL)
        return domains.at(refused, rows)

    def _counts(self) -> Sums:
        if not self._changes:
            return self._base.counts
        counts = self._base.counts.copy()
        for number, pods in self._changes.items():
            counts[number] += pods
        return counts


class HardSpread:
    """The state of a pod's hard constraints, made by PreFilter. The framework clones it for a what-if."""

    __slots__ = ("_domains", "_namespace", "_self_match")

    def __init__(self, namespace: str, domains: Sequence[SpreadDomains], self_match: Sequence[int]) -> None:
        self._namespace = namespace
        self._domains = domains
        self._self_match = self_match

    @classmethod
    def of(
        cls, constraints: Sequence[SpreadConstraint], pod: fw.Pod, nodes: fw.NodeColumns, excluded_nodes: ExcludedNodes
    ) -> "HardSpread":
        """Count the pods of every domain. Only nodes that have all topology keys count."""
        domains = [Domains(nodes, constraint.topology_key) for constraint in constraints]
        incomplete = rows_in_none(domains) if len(domains) > 1 else None
        spread = []
        for constraint, key_domains in zip(constraints, domains, strict=True):
            excluded = union(incomplete, excluded_nodes.of(constraint, pod, nodes))
            spread.append(
                SpreadDomains(constraint, BaseCounts(key_domains, excluded, pods_counted(constraint, pod, nodes)))
            )
        self_match = [int(constraint.selector.matches(pod.labels)) for constraint in constraints]
        return cls(pod.namespace, spread, self_match)

    @property
    def domains(self) -> Sequence[SpreadDomains]:
        """Those of each constraint."""
        return self._domains

    def clone(self) -> "HardSpread":
        return HardSpread(self._namespace, [each.clone() for each in self._domains], self._self_match)

    def change(self, other: fw.Pod, row: int, pods: int) -> None:
        """Count `other` once more (1) or once less (-1) on a row.

        Unlike the first count this one looks neither at deletion nor for a selector that selects everything.
        """
        if other.namespace != self._namespace or not all(each.has(row) for each in self._domains):
            return
        for each in self._domains:
            if each.constraint.selector.matches(other.labels):
                each.change(row, pods)

    def refused_by(self, row: int) -> Iterator[SpreadDomains]:
        """Yield the domains of each constraint that refuses a row."""
        for domains, self_match in zip(self._domains, self._self_match, strict=True):
            if domains.refusals(self_match, np.array([row]))[0]:
                yield domains

    def refusals(self, rows: fw.Rows) -> fw.Int32Column:
        """Return a reason code for each of `rows`: that of the first constraint that refuses it, or 0."""
        found: fw.Int32Column | None = None
        for domains, self_match in zip(self._domains, self._self_match, strict=True):
            codes = domains.refusals(self_match, rows)
            found = codes if found is None else np.where(found, found, codes)
        assert found is not None, "without constraints PreFilter skips"
        return found


def rows_in_none(domains: Iterable[Domains]) -> fw.BoolColumn | None:
    """Return for each row whether it is in no domain of any of these keys; None if all rows are in one of each."""
    found: fw.BoolColumn | None = None
    for each in domains:
        if not each.is_complete:
            found = union(found, each.codes == 0)
    return found


def union(some: fw.BoolColumn | None, others: fw.BoolColumn | None) -> fw.BoolColumn | None:
    """Return which rows are in one of two sets; None stands for no row, and as a result for two of that."""
    if some is None or others is None:
        return others if some is None else some
    return some | others
