"""The interface by which a Filter plugin makes dry runs quick: see dry_run.py.

`DryRunFilter` is for plugins whose answer depends on the pods of the node and on nothing else that changes with them.
All other plugins are asked by `filter_nodes` or `filter` on a table that is changed and changed back, unless they sign
without reading pods, or promise to be `IgnoresPods` or `MonotoneInPods`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.nodes import BoolColumn, Int32Column, NodeColumns, Rows
from scheduler.framework.plugin import FilterNodesPlugin
from scheduler.framework.preemption.dry_run import LowerPods
from scheduler.framework.preemption.nominated import NominatedPods


class SimulatedNode(Protocol):
    """One node, as one plugin sees it. It begins with the pods that are there."""

    def code(self) -> int:
        """Return the reason code that `filter_nodes` would have for the node now; 0 if the pod can run."""

    def remove(self, other: Pod) -> None:
        """Go on as if `other`, which is there, was not."""

    def admit(self, other: Pod) -> bool:
        """Go on as if `other`, which is not there, was, if the code is 0 then; else change nothing and say False."""


class SimulatedNodes(Protocol):
    """Many nodes at once, as one plugin sees them. It begins without the pods of lower priority.

    A node with nominated pods is evaluated twice, with them and without; it must be right both times.
    """

    def codes(self) -> Int32Column:
        """Return for each node the reason code that `filter_nodes` would have now."""

    def admit(self, nodes: Rows, pods: Rows) -> BoolColumn:
        """For nodes without refusal, put one pod on each as `SimulatedNode.admit` does; both by their place."""


class BulkSimulator(ABC):
    """The result of `DryRunFilter.simulator` if the plugin can also simulate many nodes at once."""

    @abstractmethod
    def __call__(self, row: int) -> SimulatedNode:
        """Begin with one node."""

    @abstractmethod
    def without(self, lower: LowerPods, rows: Rows, nominated: NominatedPods) -> SimulatedNodes:
        """Begin with the nodes of `rows`, their pods of lower priority being `lower`, with `nominated` and without."""

    @abstractmethod
    def codes_with(self, nominated: NominatedPods, rows: Rows) -> Int32Column:
        """Return for each of `rows` the reason code that `filter_nodes` would have if `nominated` were there too."""


class DryRunFilter(FilterNodesPlugin):
    """A Filter plugin that can simulate a node by itself, without a changed table."""

    @abstractmethod
    def simulator(self, state: CycleState, pod: Pod, nodes: NodeColumns) -> Callable[[int], SimulatedNode]:
        """Return what begins the simulation of a row, for a pod and the state of its cycle.

        It is used within one decision, while nothing else changes.
        """


class IgnoresPods(FilterNodesPlugin):
    """A Filter plugin without a signature whose answer does not depend on which pods are on the nodes."""


class MonotoneInPods(FilterNodesPlugin):
    """A Filter plugin that never refuses a node because pods have left it."""

    def still_admits(self, state: CycleState, pod: Pod, nominated: NominatedPods, rows: Rows) -> BoolColumn:
        """Which of `rows`, which it admits the pod to, it certainly still does with their nominated pods."""
        return np.zeros(len(rows), np.bool_)
