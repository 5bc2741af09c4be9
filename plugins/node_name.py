"""Keep a pod with `spec.nodeName` off all other nodes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from scheduler import framework as fw

OTHER_NODE: Final = fw.unresolvable("node(s) didn't match the requested node name")


@dataclass(frozen=True, slots=True)
class NodeName(fw.PreFilterPlugin, fw.FilterNodesPlugin, fw.SignPlugin, fw.ExplainPlugin):
    """Filter: the node is the one in `spec.nodeName`, if that names one.

    Rule: nodename/node_name.go at v1.37.2.
    """

    name: ClassVar[str] = "NodeName"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.NAME
    signs_spec: ClassVar[bool] = True
    filters_all: ClassVar[bool] = True
    filters_resizes: ClassVar[bool] = True

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: node_name.go (EventsToRegister), which has no hint for a new node."""
        return (fw.on(fw.NODE, fw.Action.ADD),)

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The node that the pod names."""
        return pod.spec.node_name

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.PreFilterResult | None:
        """Leave the named node only."""
        return fw.PreFilterResult(frozenset({pod.spec.node_name})) if pod.spec.node_name else None

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(pod.spec.node_name)

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return 1 for each of `rows` that is another node."""
        if not pod.spec.node_name:
            return None
        row = nodes.row_of(pod.spec.node_name)
        return np.ones(len(rows), np.int32) if row is None else (rows != row).astype(np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return OTHER_NODE

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        return (fw.Obstacle(f"spec.nodeName is {pod.spec.node_name}"),)
