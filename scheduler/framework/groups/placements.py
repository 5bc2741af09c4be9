"""Placements: sets of nodes in which a group of pods is tried as a whole, and the result of trying one."""

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.api.pods.pod import Pod
from scheduler.framework.nodes.columns import Rows


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Nodes among which all pods of a group are to be placed, such as those of one rack."""

    name: str
    """The value of the label that its nodes have in common; empty for all nodes."""

    rows: Rows
    """Its nodes, each once."""


@dataclass(frozen=True, slots=True)
class ProposedAssignment:
    """A pod of a group, and the node that it would get in a placement."""

    pod: Pod
    node_name: str


@dataclass(frozen=True, slots=True)
class PodGroupAssignments:
    """A placement in which the group fits, and which of its pods would go where."""

    placement: Placement
    proposed: Sequence[ProposedAssignment]
