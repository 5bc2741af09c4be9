"""The reservation in force, which is for one group at a time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import KeptNodes
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.status import Status
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable

if TYPE_CHECKING:  # loaded once there are groups
    from scheduler.groups.reservations.reservation import Reservation


class ReservedNodes(KeptNodes):
    def __init__(self) -> None:
        self.are_any = False
        self.reservation: Reservation | None = None

    def __len__(self) -> int:
        """How many nodes are reserved."""
        return 0 if self.reservation is None else len(self.reservation.nodes)

    def reserve(self, reservation: "Reservation | None") -> None:
        """Keep these nodes from now on, in the place of those that were; None: none."""
        self.reservation = reservation
        self.are_any = reservation is not None

    def refuse(
        self, framework: Framework, table: NodeTable, state: CycleState, pod: Pod, outcome: FilterOutcome
    ) -> None:
        if self.reservation is not None:
            self.reservation.refuse(framework, table, state, pod, outcome)

    def closed_to(self, framework: Framework, table: NodeTable, pod: Pod) -> Mapping[int, Status]:
        kept = self.reservation
        return {} if kept is None else dict.fromkeys(kept.closed_to(framework, table, pod).tolist(), kept.refusal)
