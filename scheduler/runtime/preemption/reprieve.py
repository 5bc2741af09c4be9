"""Which pods would have to leave many nodes, worked out for all of them at once.

First all pods of lower priority are gone, then on each node the most important one comes back if it can, then the next:
one step for all nodes, so there are as many steps as there are such pods on the fullest node.

Rule: SelectVictimsOnNode in defaultpreemption/default_preemption.go at v1.36.3, without disruption budgets.
"""

from collections.abc import Callable

import numpy as np

from scheduler.framework.columns import locked
from scheduler.framework.dry_run import PRIORITY_OFFSET
from scheduler.framework.dry_run_filter import SimulatedNodes
from scheduler.framework.nodes import BoolColumn, Int64Column, Rows
from scheduler.framework.status import Status
from scheduler.runtime.preemption.ranked_pods import RankedLowerPods


class Reprieve:
    """Implements scheduler.framework.dry_run.Reprieves for some nodes and one pod."""

    def __init__(self, lower: RankedLowerPods, simulated: SimulatedNodes, status_of: Callable[[int], Status]) -> None:
        self._lower = lower
        self._simulated = simulated
        self._status_of = status_of
        codes = simulated.codes()
        self.refused: BoolColumn = codes != 0
        """The rows where even removing all pods would not help."""
        self._codes = codes
        self._statuses: dict[int, Status] = {}
        nodes = len(codes)
        self.victims: Int64Column = np.zeros(nodes, np.int64)
        """How many would have to leave."""
        self.priority_sums: Int64Column = np.zeros(nodes, np.int64)
        """Over the victims, each of them PRIORITY_OFFSET."""
        self._first: Int64Column = np.zeros(nodes, np.int64)
        self._let_back()
        for column in (self.refused, self.victims, self.priority_sums):
            locked(column)

    @property
    def highest_priorities(self) -> Int64Column:
        """Of the victims on each node; for a node without any it means nothing."""
        return self._lower.priorities[self._first]

    @property
    def starts(self) -> Int64Column:
        """When the victim started that runs longest among those of the highest priority."""
        return self._lower.starts[self._first]

    def status(self, node: int) -> Status:
        """Why a node is refused, by its place."""
        code = int(self._codes[node])
        found = self._statuses.get(code)
        if found is None:
            found = self._statuses[code] = self._status_of(code)
        return found

    def _let_back(self) -> None:
        lower = self._lower
        counts, first, above = lower.counts, lower.first, lower.priorities + PRIORITY_OFFSET
        # The nodes with the most pods first: those that have a next one are a part at the beginning.
        left: Rows = np.flatnonzero(~self.refused)
        left = left[np.argsort(-counts[left], kind="stable")]
        for step in range(int(counts[left[0]]) if len(left) else 0):
            left = left[: np.searchsorted(-counts[left], -step)]
            pods = first[left] + step
            leaves = ~self._simulated.admit(left, pods)
            nodes, victims = left[leaves], pods[leaves]
            new = self.victims[nodes] == 0
            self._first[nodes[new]] = victims[new]
            self.victims[nodes] += 1
            self.priority_sums[nodes] += above[victims]
