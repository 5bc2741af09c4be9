"""Pods nominated to nodes on which they are not running yet: a pod that is to be placed yields to them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.api.quantities.go_quantity import wrapped
from scheduler.api.read_only import read_only_attribute
from scheduler.framework.handle import PodNominator
from scheduler.framework.nodes.columns import Int64Column, Rows


def yields_to(pod: Pod, other: Pod, node_name: str, nominator: PodNominator) -> bool:
    """Say whether a pod leaves the space on a node to another one that is nominated there.

    It does to one of the same or a higher priority, and to one for which others are evicted: unless they are for this
    pod, too, on that node, and that began before the other one was nominated. A more important one that was nominated
    there before that keeps its place as long as all of them are there: they count in addition to what is kept. Then
    others may have taken its place, and what was freed for this pod is left.
    """
    kept = nominator.kept
    number, own = kept.get(other.uid), kept.get(pod.uid)
    if number is None:
        if other.priority < pod.priority or other.uid == pod.uid:
            return False
        is_later = own is not None and (nominator.has_gained(pod.uid) or nominator.kept_before(other.uid) >= own)
    elif own is None and other.priority < pod.priority and not nominator.has_gained(other.uid):
        return nominator.node_of(pod.uid) != node_name or nominator.kept_before(pod.uid) >= number
    elif own is None or number <= own:
        return number != own
    else:
        is_later = True
    return not is_later or nominator.kept_on(pod.uid) != node_name


class NominatedPods:
    """The pods nominated to some nodes, for one pod that yields to them."""

    def __init__(self, pods: Mapping[int, Sequence[Pod]], size: int) -> None:
        """`pods` by row, none of them empty; `size`: the number of rows."""
        self._size = size
        self._by_row = MappingProxyType({row: tuple(of_row) for row, of_row in pods.items()})
        self._counts: Int64Column | None = None
        self._sums: dict[str, Int64Column] = {}

    by_row: Mapping[int, Sequence[Pod]] = read_only_attribute("_by_row")
    size: int = read_only_attribute("_size")

    def with_rows(self, pods: Mapping[int, Sequence[Pod]]) -> "NominatedPods":
        """Return the same with other pods on these rows, which may be none: after a change it takes the least time."""
        made = NominatedPods({}, self._size)
        by_row = {**self._by_row, **{row: tuple(of_row) for row, of_row in pods.items()}}
        made._by_row = MappingProxyType({row: of_row for row, of_row in by_row.items() if of_row})
        if self._counts is not None:
            made._counts = _replaced(self._counts, {row: len(of_row) for row, of_row in pods.items()})
        made._sums = {
            resource: _replaced(sums, {row: _sum(of_row, resource) for row, of_row in pods.items()})
            for resource, sums in self._sums.items()
        }
        return made

    def __len__(self) -> int:
        return sum(map(len, self._by_row.values()))

    def __bool__(self) -> bool:
        return bool(self._by_row)

    def rows(self) -> Rows:
        """The nodes that have any."""
        return np.fromiter(self._by_row, np.int64, len(self._by_row))

    def counts(self, rows: Rows) -> Int64Column:
        """How many there are for each of `rows`."""
        if self._counts is None:
            self._counts = self._column({row: len(pods) for row, pods in self._by_row.items()})
        return self._counts[rows]

    def sums(self, resource: str, rows: Rows) -> Int64Column:
        """For each of `rows`, the sum of their requests; beyond int64 it wraps as in Go."""
        sums = self._sums.get(resource)
        if sums is None:
            of_rows = {row: _sum(pods, resource) for row, pods in self._by_row.items()}
            sums = self._sums[resource] = self._column(of_rows)
        return sums[rows]

    def _column(self, values: Mapping[int, int]) -> Int64Column:
        return _replaced(np.zeros(self._size, np.int64), values)


def _replaced(column: Int64Column, values: Mapping[int, int]) -> Int64Column:
    column = column.copy()
    column[list(values)] = list(values.values())
    return column


def _sum(pods: Sequence[Pod], resource: str) -> int:
    return wrapped(sum(pod.requests.get(resource, 0) for pod in pods))
