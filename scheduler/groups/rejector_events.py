"""The events that may help what the rules of groups refused, which are named as plugins there."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import NODE, Action, ClusterEvent, ClusterEventWithHint, QueueingHint, on
from scheduler.framework.groups.pod_groups import PodGroups

TOPOLOGY_LEVELS: Final = "TopologyLevels"
"""Refuses members of a group that no domain holds."""

POD_GROUP_RESERVATION: Final = "PodGroupReservation"
"""Refuses pods on nodes that are reserved for a group; also the resource of the events of reservations."""

RESERVATION_ENDED: Final = ClusterEvent(POD_GROUP_RESERVATION, Action.DELETE)
RESERVATION_EASED: Final = ClusterEvent(POD_GROUP_RESERVATION, Action.UPDATE_OTHER)
"""Nodes have left it, there is more space than what it keeps, or it is later that the group is expected to start."""


def rejector_events(groups: PodGroups, levels: Sequence[str]) -> Mapping[str, Sequence[ClusterEventWithHint]]:
    """Return who refused → the events. `levels`: the labels of the topology.

    A pod that leaves a reserved node is none of them: see `reservations/keeper.py`.
    """
    labels = on(NODE, Action.ADD | Action.UPDATE_NODE_LABEL, partial(_hint, groups, levels), groups.key_of)
    of_nodes = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
    return {
        TOPOLOGY_LEVELS: (labels,),
        POD_GROUP_RESERVATION: (on(POD_GROUP_RESERVATION), on(NODE, of_nodes)),
    }


def _hint(groups: PodGroups, levels: Sequence[str], pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
    """The node has come into another domain of a level that matters to the pod's group."""
    group = groups.of(pod)
    if group is None or new is None:
        return QueueingHint.SKIP
    before = {} if old is None else old.labels
    labels = (*levels, group.required_level, group.preferred_level)
    moved = any(new.labels.get(label) != before.get(label) for label in labels)
    return QueueingHint.QUEUE if moved else QueueingHint.SKIP
