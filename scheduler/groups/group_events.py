"""Events of groups: all members of one are decided between GroupStarted and GroupDecided.

Later events are published for each member as for a single pod. Those about reserved nodes come at any time between
decisions.
"""

from collections.abc import Sequence

from scheduler.framework.queued import QueuedPod
from scheduler.groups.decision import GroupDecision
from scheduler.groups.reservations.reservation import Reservation
from scheduler.runtime.event_stream import EngineEvent


class GroupStarted(EngineEvent, frozen=True):
    """A decision about a group of pods begins."""

    profile: str
    members: Sequence[QueuedPod]
    """In the order in which they are decided."""


class GroupDecided(EngineEvent, frozen=True):
    """A group of pods was decided about: what follows for each member is published as that of an attempt of its own."""

    profile: str
    name: str
    members: Sequence[QueuedPod]
    decision: GroupDecision


class NodesReserved(EngineEvent, frozen=True):
    """Nodes are reserved for a group from now on, in the place of those that were."""

    reservation: Reservation


class ReservationEnded(EngineEvent, frozen=True):
    """No nodes are reserved any more."""
