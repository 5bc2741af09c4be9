"""A reservation: how much is kept for a group, on which nodes, and what that means for other pods.

    of the group, of a higher priority, of a DaemonSet,
    of a group to which it gives way ────────────────────────────► not bound by it
    ends before the group is expected to start ──────────────────► let on: backfill
    fits a node in addition to what is kept there ───────────────► let on there
    all others ──────────────────────────────────────────────────► refused there, and none is evicted for them there

Whether it binds a pod depends on nothing but this, the pod and the node table: no clock, so that a replay decides the
same, where no group gives way. How long it lasts is brought up to date by `keeper.py`.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from scheduler.api.groups.owners import is_of_daemon_set
from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.framework.nodes.columns import BoolColumn, Int64Column, Rows
from scheduler.framework.status import Code, Status, unresolvable
from scheduler.groups.amounts import demand_of, free_of
from scheduler.groups.rejector_events import POD_GROUP_RESERVATION
from scheduler.groups.reservations.run_times import RunTimes
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable

_NO_ROWS: Final[Rows] = np.arange(0)


class Reservation(msgspec.Struct, frozen=True):
    """The amounts that are kept for one group."""

    group: GroupKey
    priority: int
    nodes: tuple[str, ...]
    """Names, each once."""

    kept: Mapping[str, tuple[int, ...]]
    """Resource → what is kept on each of the nodes, in their order."""

    backfill_seconds: float
    """A pod that runs no longer than this ends before the group is expected to start; 0: unknown."""

    trusts_promises: bool
    """Whether the annotation with the time that a pod is expected to run counts, or activeDeadlineSeconds only."""

    reason: str
    """Said of each node to a pod that is refused there."""

    @property
    def refusal(self) -> Status:
        return unresolvable(self.reason).by(POD_GROUP_RESERVATION)

    def binds(self, framework: Framework, pod: Pod) -> bool:
        """Return whether a pod may be refused anywhere."""
        if pod.priority > self.priority or is_of_daemon_set(pod):
            return False
        groups = framework.handle.pod_groups
        if RunTimes(groups, trusts_promises=self.trusts_promises).longest(pod) <= self.backfill_seconds:
            return False
        key = groups.key_of(pod)
        group = None if key in (None, self.group) else groups.of(pod)
        return key != self.group and (group is None or self.group not in groups.giving_way(group))

    def closed_to(self, framework: Framework, table: NodeTable, pod: Pod) -> Rows:
        """Return the rows on which a pod would take kept amounts."""
        if not self.binds(framework, pod):
            return _NO_ROWS
        rows, kept = self._on_rows(table)
        open_to = np.ones(len(rows), np.bool_)
        for resource, amount in demand_of(framework, pod).items():
            if resource in kept:
                open_to &= free_of(table, resource)[rows] - amount >= kept[resource]
        return rows[~open_to]

    def refuse(
        self, framework: Framework, table: NodeTable, state: CycleState, pod: Pod, outcome: FilterOutcome
    ) -> None:
        """Refuse a pod on reserved nodes on which it would fit, or would if others were evicted."""
        closed = self.closed_to(framework, table, pod)
        if not len(closed):
            return
        is_closed = np.zeros(table.size, np.bool_)
        is_closed[closed] = True
        concerned: BoolColumn = outcome.refused_with(Code.UNSCHEDULABLE, state, pod)
        concerned[outcome.feasible] = True
        refusal = self.refusal
        for row in np.flatnonzero(concerned & is_closed).tolist():
            outcome.overrides[row] = refusal
        outcome.feasible = outcome.feasible[~is_closed[outcome.feasible]]
        outcome.view = None

    def spare(self, table: NodeTable) -> Mapping[tuple[str, str], int]:
        """Return the amounts that are free beyond the kept ones: (node, resource) → amount, where there is any."""
        rows, kept = self._on_rows(table)
        names, found = table.names(), {}
        for resource, amounts in kept.items():
            spare = free_of(table, resource)[rows] - amounts
            for place in np.flatnonzero(spare > 0).tolist():
                found[names[rows[place]], resource] = int(spare[place])
        return found

    def _on_rows(self, table: NodeTable) -> tuple[Rows, Mapping[str, Int64Column]]:
        """Return the rows of the nodes that exist, and the amounts kept on each of them."""
        there = [(row, place) for place, name in enumerate(self.nodes) if (row := table.row_of(name)) is not None]
        rows, places = np.array(there, np.intp).reshape(-1, 2).T
        return rows, {resource: np.array(amounts, np.int64)[places] for resource, amounts in self.kept.items()}
