"""One node of the table, for plugins that look at one node at a time."""

from collections.abc import Collection, Mapping, Sequence

from scheduler.api.objects import Node, Taint
from scheduler.api.pod import Pod
from scheduler.state.amounts import Amounts


class NodeRow:
    """Implements framework.nodes.NodeInfo: a lazy view of the table, valid within one decision."""

    __slots__ = ("_amounts", "_pods", "node", "row")

    def __init__(self, row: int, node: Node, pods: Mapping[str, Pod], amounts: Amounts) -> None:
        self.row = row
        self.node = node
        self._pods = pods
        self._amounts = amounts

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.labels

    @property
    def taints(self) -> Sequence[Taint]:
        return self.node.taints

    @property
    def unschedulable(self) -> bool:
        return self.node.spec.unschedulable

    @property
    def pods(self) -> Collection[Pod]:
        return self._pods.values()

    @property
    def allocatable(self) -> Mapping[str, int]:
        return dict(self._amounts.allocatable_at(self.row))

    @property
    def requested(self) -> Mapping[str, int]:
        return self._amounts.requested_at(self.row, (pod.requests for pod in self._pods.values()))
