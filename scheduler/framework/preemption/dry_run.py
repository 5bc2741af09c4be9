"""Dry runs: Filter's answers for a node while pods leave it and come back, without any change.

A preemption asks about hundreds of nodes again and again. Two sides:

    a PostFilter      handle.dry_runs.begin ─► DryRun.simulate(row) ─► NodeSimulation    the node as all plugins see it
    a Filter plugin   DryRunFilter.simulator ─► SimulatedNode, SimulatedNodes    the node as that plugin sees it

This file is the first, `dry_run_filter.py` the second.
"""

from collections.abc import Callable, Hashable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.nodes.columns import BoolColumn, Int64Column, Rows
from scheduler.framework.status import Status

PRIORITY_OFFSET: Final = 2**31
"""Added to each priority in a sum, so that one victim more is never better than one less."""


class Victims(NamedTuple):
    """The pods that would have to go."""

    pods: Sequence[Pod]
    """The most important first."""

    violations: int
    """How many of them a disruption budget protects."""


class NodeSimulation(Protocol):
    """One node, as all Filter plugins see it, for the length of a `with` block. Methods raise PluginError."""

    @property
    def depends_on_others(self) -> bool:
        """Whether pods on other nodes matter: then they, too, may be removed and come back."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def remove(self, others: Sequence[Pod]) -> None:
        """Go on as if these pods, which are there, were not."""

    def refusal(self) -> Status | None:
        """Return what the first plugin that refuses the node says of it now."""

    def reprieve(self, others: Sequence[Pod]) -> list[Pod]:
        """Put removed pods back one by one where the pod fits nevertheless; return those that have to stay away."""

    def takes_back(self, others: Sequence[Pod]) -> bool:
        """Put removed pods back together if the pod fits nevertheless; return whether it does."""


class LowerPods(Protocol):
    """The pods of lower priority on some nodes, node after node, on each the most important first."""

    @property
    def counts(self) -> Int64Column:
        """How many there are on each node."""

    @property
    def pods(self) -> Sequence[Pod]:
        """All of them, in this order."""

    def amounts(self, resource: str) -> Int64Column:
        """By pod, the amount that it requests."""

    def sums(self, resource: str) -> Int64Column:
        """By node, the sum of their requests; beyond int64 it wraps as in Go."""


Violates = Callable[[LowerPods], BoolColumn | None]
"""Says by pod whether it violates a disruption budget; None: none does."""


class Reprieves(Protocol):
    """The pods that would have to leave many nodes. Columns have one entry for each node."""

    @property
    def refused(self) -> BoolColumn:
        """The rows where even removing all pods would not help."""

    @property
    def victims(self) -> Int64Column:
        """How many pods would have to leave."""

    @property
    def violations(self) -> Int64Column:
        """How many of them violate a disruption budget."""

    @property
    def priority_sums(self) -> Int64Column:
        """Sum of the victims' priorities, PRIORITY_OFFSET added to each."""

    @property
    def highest_priorities(self) -> Int64Column:
        """The highest priority of a victim; without meaning for a node that has none."""

    @property
    def starts(self) -> Int64Column:
        """When the longest running of the victims with the highest priority started: see api/pods/importance.py."""

    def status(self, node: int) -> Status:
        """Why a node is refused, by its place."""


class DryRun(Protocol):
    """One pod, any number of nodes. Valid as long as nothing else changes: within one decision."""

    @property
    def situation(self) -> Hashable:
        """Equal as long as alike pods get the same answers, as nothing that counts has changed; None if unknown."""

    @property
    def lowest_priorities(self) -> Int64Column:
        """The lowest priority of the pods on each row; above all priorities where there are none."""

    @property
    def hopeless(self) -> BoolColumn:
        """Whether each row is known to refuse the pod, whatever pods leave it."""

    def first_fitting(self, rows: Rows) -> int | None:
        """Return the first of `rows` that the pod fits now, with those who are nominated there. Raises PluginError."""

    def simulate(self, row: int) -> NodeSimulation:
        """Begin with one node, as it is now. Raises PluginError."""

    def simulate_all(self, rows: Rows, violates: Violates) -> Reprieves | None:
        """Simulate `rows`, each with a pod of lower priority, all at once; None if only `simulate` can.

        Pods that violate a disruption budget are put back first.
        """

    def only_singly(self, rows: Rows) -> BoolColumn:
        """Which of `rows` need `simulate` even where `simulate_all` covers the others."""


class DryRuns(Protocol):
    """Begins dry runs."""

    def begin(self, state: CycleState, pod: Pod) -> DryRun:
        """Begin for a pod that was through PreFilter with this state. Raises PluginError."""
