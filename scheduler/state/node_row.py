"""One node of the table, for plugins that look at one node at a time."""

from collections.abc import Collection, Mapping, Sequence

from scheduler.api.objects import Node, Taint
from scheduler.api.pod import Pod
from scheduler.framework.nodes import Int64Column


class NodeRow:
    """Implements framework.nodes.NodeInfo: a lazy view of the table, valid within one decision."""

    __slots__ = ("_allocatable", "_pods", "_requested", "node", "row")

    def __init__(
        self,
        row: int,
        node: Node,
        pods: Mapping[str, Pod],
        allocatable: Mapping[str, Int64Column],
        requested: Mapping[str, Int64Column],
    ) -> None:
        self.row = row
        self.node = node
        self._pods = pods
        self._allocatable = allocatable
        self._requested = requested

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
        return self._non_zero_entries(self._allocatable)

    @property
    def requested(self) -> Mapping[str, int]:
        return self._non_zero_entries(self._requested)

    def _non_zero_entries(self, columns: Mapping[str, Int64Column]) -> dict[str, int]:
        return {name: amount for name, column in columns.items() if (amount := column.item(self.row))}
