"""Changed node labels, which may help a group that no domain held."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import NODE, Action, ClusterEventWithHint, QueueingHint, on
from scheduler.framework.groups.pod_groups import PodGroups

TOPOLOGY_LEVELS: Final = "TopologyLevels"
"""Named as a plugin that refuses members of such a group."""


def label_events(groups: PodGroups, configured: Sequence[str]) -> Sequence[ClusterEventWithHint]:
    """Return the events that may help what `TOPOLOGY_LEVELS` refused. `configured`: the labels of the levels."""
    return (on(NODE, Action.ADD | Action.UPDATE_NODE_LABEL, partial(_hint, groups, configured), groups.key_of),)


def _hint(groups: PodGroups, configured: Sequence[str], pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
    """The node has come into another domain of a level that matters to the pod's group."""
    group = groups.of(pod)
    if group is None or new is None:
        return QueueingHint.SKIP
    before = {} if old is None else old.labels
    labels = (*configured, group.required_level, group.preferred_level)
    moved = any(new.labels.get(label) != before.get(label) for label in labels)
    return QueueingHint.QUEUE if moved else QueueingHint.SKIP
