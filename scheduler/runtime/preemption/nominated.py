"""Pods nominated to nodes on which they are not yet, and to which a pod that is to be placed has to yield."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from scheduler.api.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes import BoolColumn, Int64Column, NodeColumns, Rows

_KEY: Final = "pods nominated to nodes"


class HoldingColumns(NodeColumns, Protocol):
    """Nodes that know their pods by UID."""

    def has_pod(self, row: int, uid: str) -> bool:
        """Whether a pod is on a row."""


class Guests:
    """Pods that are not on their nodes yet, but may come: they were nominated to them."""

    def __init__(self, pods: Mapping[int, Sequence[Pod]], size: int) -> None:
        """`pods` by row, none of them empty; `size`: how many rows there are."""
        self.by_row = pods
        self._size = size
        self._pods = [pod for of_row in pods.values() for pod in of_row]
        self._rows = np.repeat(np.fromiter(pods, np.int64, len(pods)), [len(of_row) for of_row in pods.values()])
        self._counts: Int64Column | None = None
        self._sums: dict[str, Int64Column] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def rows(self) -> Rows:
        """Where there are any."""
        return np.fromiter(self.by_row, np.int64, len(self.by_row))

    def counts(self, rows: Rows) -> Int64Column:
        """How many there are for each of `rows`."""
        if self._counts is None:
            self._counts = np.bincount(self._rows, minlength=self._size).astype(np.int64)
        return self._counts[rows]

    def sums(self, resource: str, rows: Rows) -> Int64Column:
        """For each of `rows`, what all of them ask for; beyond int64 it wraps as in Go."""
        sums = self._sums.get(resource)
        if sums is None:
            sums = self._sums[resource] = np.zeros(self._size, np.int64)
            np.add.at(sums, self._rows, [pod.requests.get(resource, 0) for pod in self._pods])
        return sums[rows]


class GuestFinder:
    """Finds them for one pod after the other."""

    def __init__(self, nodes: HoldingColumns, nominated: Callable[[], Iterator[tuple[str, Collection[Pod]]]]) -> None:
        """`nominated` yields each node that is promised to pods, with these pods."""
        self._nodes = nodes
        self._nominated = nominated

    def any(self) -> bool:
        """Whether there are any, for whomever."""
        return any(self._nominated())

    def of(self, state: CycleState, pod: Pod) -> Guests:
        """Return the guests of all nodes, found once in the cycle of a pod: nothing changes within it."""
        found = state.get(_KEY, Guests)
        if found is None:
            found = Guests(self.on(self._nodes.in_use, pod), self._nodes.size)
            state.write(_KEY, found)
        return found

    def on(self, asked: BoolColumn, pod: Pod) -> dict[int, list[Pod]]:
        """Return those of the rows that are `asked`, by row: pods of the same or a higher priority.

        A pod whose nomination ended without our hearing of it may be on its node already; such a one is left out.
        """
        by_row: dict[int, list[Pod]] = {}
        priority, uid = pod.priority, pod.uid
        row_of, has_pod = self._nodes.row_of, self._nodes.has_pod
        for name, nominated in self._nominated():
            row = row_of(name)
            if row is None or not asked[row]:
                continue
            coming = [
                other
                for other in nominated
                if other.priority >= priority and other.uid != uid and not has_pod(row, other.uid)
            ]
            if coming:
                by_row[row] = coming
        return by_row
