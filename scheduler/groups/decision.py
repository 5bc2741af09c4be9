"""The decision about a group of pods in one cycle, before any of it takes effect.

Rule: algorithmResult and podGroupAlgorithmResult in pkg/scheduler/schedule_one_podgroup.go at v1.36.3.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from scheduler.api.pod import Pod
from scheduler.cycle.algorithm import Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import SchedulerError
from scheduler.framework.pod_groups import GroupKey
from scheduler.framework.queued import QueuedPod
from scheduler.framework.status import Code, Status
from scheduler.groups.topology.near_misses import NearMiss

UNSCHEDULABLE_GROUP: Final = "pod group is unschedulable"
WAITING_FOR_PREEMPTION: Final = "pod group is waiting for preemption to complete"


@dataclass(slots=True, eq=False)
class MemberOutcome:
    """The decision about one member."""

    queued: QueuedPod
    state: CycleState
    decision: Placed | Unplaced | SchedulerError
    started: float
    """When its part began, in seconds of time.perf_counter."""

    seconds: float = 0.0
    """How long that took."""

    node_name: str = ""
    """The node on which the members after it see it: that which was chosen, or that it is nominated to."""

    permit_message: str | None = None
    """The reason why Permit plugins wait; empty if they let it go, None if they were not asked, or refused it."""

    is_permitted: bool = False

    @property
    def is_placed(self) -> bool:
        """Whether a node was chosen, and Reserve and Permit agree."""
        return isinstance(self.decision, Placed)

    @property
    def requires_preemption(self) -> bool:
        """Whether it fits once its victims are gone."""
        return bool(self.node_name) and isinstance(self.decision, Unplaced)


@dataclass(slots=True, eq=False)
class GroupDecision:
    """The decision about the whole group."""

    members: list[MemberOutcome] = field(default_factory=list)
    """In the order in which they were decided; after an error those that come later are missing."""

    status: Status | None = field(default_factory=lambda: Status(Code.UNSCHEDULABLE, (UNSCHEDULABLE_GROUP,)))
    """None: those with a node are to be bound. Otherwise none of them is."""

    is_waiting_for_preemption: bool = False
    keeps_nominations: bool = False
    """Whether members stay nominated where they were: their victims are leaving."""

    refused_by: str = ""
    """The plugin that refused the group before any of its members was looked at."""

    placement: str = ""
    """The name of the placement that was chosen, where there are several."""

    seconds: float = 0.0
    """How long the search for nodes took, without that for victims."""

    changes: int = 0
    """The last change by others, as the cache numbers them, with which the members were known to fit their nodes."""

    victims: Sequence[Pod] = ()
    """The pods that are evicted for the group as a whole, in the order in which they were chosen."""

    preemption: Code | None = None
    """How the search for victims for the group as a whole ended; None without one."""

    given_up: Collection[GroupKey] = ()
    """The damaged groups of which what is left is evicted for it."""

    note: str = ""
    """Why nothing is evicted of other groups that are damaged as it is."""

    near_misses: Sequence[NearMiss] = ()
    """The domains that come nearest to holding a group that has a required level, and what they lack."""

    @property
    def code(self) -> Code:
        return Code.SUCCESS if self.status is None else self.status.code

    @property
    def message(self) -> str:
        return "" if self.status is None else self.status.message

    @property
    def is_rejected(self) -> bool:
        return self.status is not None and self.status.is_rejected
