"""Filter's answer for nodes while pods leave it and come back, without anything being changed.

For plugins whose answer depends on the pods of the node and on nothing else that changes with them: in a preemption
they are asked thousands of times. Plugins without are asked by `filter_nodes` or `filter` on a changed table.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np

from scheduler.api.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes import BoolColumn, Int32Column, NodeColumns, Rows
from scheduler.framework.plugin import FilterNodesPlugin
from scheduler.runtime.preemption.nominated import Guests
from scheduler.runtime.preemption.ranked_pods import LowerPods


class FilterTrial(Protocol):
    """One node, as one plugin sees it. It begins with the pods that are there."""

    def code(self) -> int:
        """Return the reason code that `filter_nodes` would have for the node now; 0 if the pod can run."""

    def remove(self, other: Pod) -> None:
        """Go on as if `other`, which is there, was not."""

    def admit(self, other: Pod) -> bool:
        """Go on as if `other`, which is not there, was, if the code is 0 then; else change nothing and say False."""


class BulkTrial(Protocol):
    """Many nodes at once, as one plugin sees them. It begins without the pods of lower priority.

    A node with guests is asked about twice, with them and then without; it must be right both times.
    """

    def codes(self) -> Int32Column:
        """Return for each node the reason code that `filter_nodes` would have now."""

    def admit(self, nodes: Rows, pods: Rows) -> BoolColumn:
        """For nodes without refusal, put one pod on each as `FilterTrial.admit` does; both are given by their place."""


class BulkTrials(ABC):
    """What `filter_trials` returns, of a plugin that can follow many nodes at once too."""

    @abstractmethod
    def __call__(self, row: int) -> FilterTrial:
        """Begin with one node."""

    @abstractmethod
    def without(self, lower: LowerPods, rows: Rows, guests: Guests) -> BulkTrial:
        """Begin with the nodes of `rows`, whose pods of lower priority are `lower`, beside `guests` and without."""

    @abstractmethod
    def codes_with(self, guests: Guests, rows: Rows) -> Int32Column:
        """Return for each of `rows` the reason code that `filter_nodes` would have if `guests` were there too."""


class TrialPlugin(FilterNodesPlugin):
    """A plugin that can follow."""

    @abstractmethod
    def filter_trials(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Callable[[int], FilterTrial]:
        """Return what begins to follow the node of a row, for a pod and the state of its cycle.

        It is used up within one decision, while nothing else changes.
        """


class WithoutPods(FilterNodesPlugin):
    """A plugin without a signature whose answer does not depend on which pods are on the nodes."""


class EasierWithFewerPods(FilterNodesPlugin):
    """A plugin that lets a pod onto a node from which others have gone if it does so while they are there."""

    def still_admits(self, state: CycleState, pod: Pod, guests: Guests, rows: Rows) -> BoolColumn:
        """Which of `rows`, on which the pod can be, it certainly lets it onto beside their guests too."""
        return np.zeros(len(rows), np.bool_)
