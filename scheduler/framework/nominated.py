"""Pods nominated to nodes on which they are not running yet: a pod that is to be placed yields to them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from scheduler.api.pod import Pod
from scheduler.api.read_only import read_only_attribute
from scheduler.framework.columns import Int64Column, Rows


class NominatedPods:
    """The pods nominated to some nodes, for one pod that yields to them."""

    def __init__(self, pods: Mapping[int, Sequence[Pod]], size: int) -> None:
        """`pods` by row, none of them empty; `size`: the number of rows."""
        self._size = size
        self._by_row = MappingProxyType({row: tuple(of_row) for row, of_row in pods.items()})
        self._pods = [pod for of_row in pods.values() for pod in of_row]
        self._rows = np.repeat(np.fromiter(pods, np.int64, len(pods)), [len(of_row) for of_row in pods.values()])
        self._counts: Int64Column | None = None
        self._sums: dict[str, Int64Column] = {}

    by_row: Mapping[int, Sequence[Pod]] = read_only_attribute("_by_row")

    def __len__(self) -> int:
        return len(self._pods)

    def rows(self) -> Rows:
        """The nodes that have any."""
        return np.fromiter(self._by_row, np.int64, len(self._by_row))

    def counts(self, rows: Rows) -> Int64Column:
        """How many there are for each of `rows`."""
        if self._counts is None:
            self._counts = np.bincount(self._rows, minlength=self._size).astype(np.int64)
        return self._counts[rows]

    def sums(self, resource: str, rows: Rows) -> Int64Column:
        """For each of `rows`, the sum of their requests; beyond int64 it wraps as in Go."""
        sums = self._sums.get(resource)
        if sums is None:
            sums = self._sums[resource] = np.zeros(self._size, np.int64)
            np.add.at(sums, self._rows, [pod.requests.get(resource, 0) for pod in self._pods])
        return sums[rows]
