"""The events that may help a pod which nodes refused because they are reserved for a group."""

from collections.abc import Sequence
from typing import Final

from scheduler.framework.events import NODE, Action, ClusterEvent, ClusterEventWithHint, on

POD_GROUP_RESERVATION: Final = "PodGroupReservation"
"""Named as the plugin that refuses pods on reserved nodes, and as the resource of the events of reservations."""

RESERVATION_ENDED: Final = ClusterEvent(POD_GROUP_RESERVATION, Action.DELETE)
RESERVATION_EASED: Final = ClusterEvent(POD_GROUP_RESERVATION, Action.UPDATE_OTHER)
"""Nodes have left it, there is more space than what it keeps, or it is later that the group is expected to start."""


def reservation_events() -> Sequence[ClusterEventWithHint]:
    """Return the events that may help such pods. A pod that leaves a reserved node is none of them: `keeper.py`."""
    of_nodes = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
    return on(POD_GROUP_RESERVATION), on(NODE, of_nodes)
