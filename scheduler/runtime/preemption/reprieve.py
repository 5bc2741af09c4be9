"""The pods that would have to leave each of many nodes, found for all nodes at once.

First all pods of lower priority are gone, then on each node the most important one comes back if it can, then the next,
those that violate a disruption budget before the others. A step is for all nodes at once, so there are as many steps as
there are such pods on the fullest node.

Rule: SelectVictimsOnNode in defaultpreemption/default_preemption.go at v1.36.3.
"""

from collections.abc import Callable

import numpy as np

from scheduler.framework.nodes.columns import locked
from scheduler.framework.nodes.nodes import BoolColumn, Int64Column, Rows
from scheduler.framework.preemption.dry_run import PRIORITY_OFFSET, Violates
from scheduler.framework.preemption.dry_run_filter import SimulatedNodes
from scheduler.framework.status import Status
from scheduler.runtime.preemption.ranked_pods import RankedLowerPods


class Reprieve:
    """Implements scheduler.framework.preemption.dry_run.Reprieves for some nodes and one pod."""

    def __init__(
        self,
        lower: RankedLowerPods,
        simulated: SimulatedNodes,
        status_of: Callable[[int], Status],
        violates: Violates,
    ) -> None:
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
        self.violations: Int64Column = np.zeros(nodes, np.int64)
        """How many of them violate a budget."""
        self._first: Int64Column = np.full(nodes, np.iinfo(np.int64).max)
        self._let_back(self._violating(violates))
        self._first[self.victims == 0] = 0
        for column in (self.refused, self.victims, self.violations, self.priority_sums):
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
        code = int(self._codes[node])
        found = self._statuses.get(code)
        if found is None:
            found = self._statuses[code] = self._status_of(code)
        return found

    def _violating(self, violates: Violates) -> BoolColumn | None:
        """Which pods violate a budget on nodes that are not refused; None if none does."""
        fits = ~self.refused
        there = violates(self._lower.on(fits)) if fits.any() else None
        if there is None or not there.any():
            return None
        everywhere = np.repeat(fits, self._lower.counts)
        everywhere[everywhere] = there
        return everywhere

    def _let_back(self, violates: BoolColumn | None) -> None:
        lower = self._lower
        in_turn = None if violates is None else self._in_turn(violates)
        counts, first, above = lower.counts, lower.first, lower.priorities + PRIORITY_OFFSET
        # The nodes with the most pods first: those that have a next one are a part at the beginning.
        left: Rows = np.flatnonzero(~self.refused)
        left = left[np.argsort(-counts[left], kind="stable")]
        for step in range(int(counts[left[0]]) if len(left) else 0):
            left = left[: np.searchsorted(-counts[left], -step)]
            pods = first[left] + step
            if in_turn is not None:
                pods = in_turn[pods]
            leaves = ~self._simulated.admit(left, pods)
            nodes, victims = left[leaves], pods[leaves]
            self._first[nodes] = np.minimum(self._first[nodes], victims)
            self.victims[nodes] += 1
            if violates is not None:
                self.violations[nodes] += violates[victims]
            self.priority_sums[nodes] += above[victims]

    def _in_turn(self, violates: BoolColumn) -> Rows:
        """All pods, node after node, on each those first that violate a budget."""
        nodes = np.repeat(np.arange(len(self._lower.counts)), self._lower.counts)
        return np.lexsort((~violates, nodes))
