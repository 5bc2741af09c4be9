"""One node of the table, for plugins that look at one node at a time."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from scheduler.api.objects import Node, Taint
from scheduler.api.pods.pod import Pod
from scheduler.api.read_only import ReadOnlyDict
from scheduler.state.nodes.amounts import Amounts
from scheduler.state.nodes.live_column import LiveColumn


class Allocatable(Mapping[str, int]):
    """The allocatable amounts of one row: resource → amount, never 0. Read from the columns, as most plugins ask for
    one resource."""

    __slots__ = ("_columns", "_row")

    def __init__(self, columns: Mapping[str, LiveColumn[np.int64]], row: int) -> None:
        self._columns = columns
        self._row = row

    def get(self, resource: str, default: Any = None) -> Any:
        column = self._columns.get(resource)
        return default if column is None else column.values.item(self._row) or default

    def __getitem__(self, resource: str) -> int:
        amount: int = self._columns[resource].values.item(self._row)
        if not amount:
            raise KeyError(resource)
        return amount

    def __iter__(self) -> Iterator[str]:
        return (resource for resource, column in self._columns.items() if column.values.item(self._row))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


class NodeRow(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Implements framework.nodes.NodeInfo: a lazy view of the table, valid within one decision."""

    row: int
    node: Node
    _pods: Mapping[str, Pod]
    _amounts: Amounts

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
        return ReadOnlyDict(self._amounts.requested_at(self.row, (pod.requests for pod in self._pods.values())))

    def __repr__(self) -> str:
        return f"<node {self.name}>"
