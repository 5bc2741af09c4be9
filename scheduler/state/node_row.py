"""One node of the table, for plugins that look at one node at a time."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from scheduler.api.objects import Node, Taint
from scheduler.api.pod import Pod
from scheduler.framework.columns import Int64Column
from scheduler.state.amounts import Amounts


class Allocatable(Mapping[str, int]):
    """What one row offers: resource → amount, never 0. Read from the columns, as most plugins ask for one resource."""

    __slots__ = ("_columns", "_row")

    def __init__(self, columns: Mapping[str, Int64Column], row: int) -> None:
        self._columns = columns
        self._row = row

    def get(self, resource: str, default: Any = None) -> Any:
        column = self._columns.get(resource)
        return default if column is None else column.item(self._row) or default

    def __getitem__(self, resource: str) -> int:
        amount: int = self._columns[resource].item(self._row)
        if not amount:
            raise KeyError(resource)
        return amount

    def __iter__(self) -> Iterator[str]:
        return (resource for resource, column in self._columns.items() if column.item(self._row))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


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
        return Allocatable(self._amounts.allocatable, self.row)

    @property
    def requested(self) -> Mapping[str, int]:
        return self._amounts.requested_at(self.row, (pod.requests for pod in self._pods.values()))
