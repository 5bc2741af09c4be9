"""Nodes as plugins see them: all at once, by columns, or one by one.

A node is a row. A column has one entry per row; its length is `size`, and rows may be unused (`in_use` says which are
nodes). Columns are live views of the scheduler's tables: read them, never keep or change them.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import IntFlag
from typing import Protocol

from scheduler.api.objects import Node, Taint
from scheduler.api.pods.pod import Pod
from scheduler.api.storage.pod_storage import VolumeKey
from scheduler.framework.nodes.columns import BoolColumn as BoolColumn
from scheduler.framework.nodes.columns import Int32Column as Int32Column
from scheduler.framework.nodes.columns import Int64Column as Int64Column
from scheduler.framework.nodes.columns import Rows as Rows
from scheduler.framework.pods import PodIndex
from scheduler.framework.pods import Topology as Topology


class VolumeIndex(Protocol):
    """The claims and disks that pods on nodes use; also on rows that are not nodes (see `in_use` of NodeColumns)."""

    def users(self, key: VolumeKey) -> Mapping[int, int]:
        """Row → how many pods there use the claim or disk; also within a what-if. Read it, never keep it."""

    def most(self, row: int) -> int:
        """Return how many volumes the pods of a row have, one that two pods use counted twice; also in a what-if."""

    def has_odd_pods(self, row: int) -> bool:
        """Return whether a pod of a row has volumes that are not `regular` (PodStorage); also within a what-if."""


class Aspect(IntFlag):
    """A kind of facts about a node. A stored answer is refreshed where an aspect that it reads has changed."""

    NAME = 1 << 0
    ALLOCATABLE = 1 << 1
    REQUESTED = 1 << 2
    """Amounts requested by the pods on the node, and their number."""
    LABELS = 1 << 3
    TAINTS = 1 << 4
    """Taints and `spec.unschedulable`."""
    PORTS = 1 << 5
    IMAGES = 1 << 6
    """Images on the node; a change touches every row, since the number of nodes with an image counts."""
    PODS = 1 << 7
    """Which pods are on the node, with their labels."""
    NODE = 1 << 8
    """Anything in the Node object."""
    VOLUMES = 1 << 9
    """Which pods with claims or disks are on the node."""
    STARTS = 1 << 10
    """Which pods are on the node, with their requests, priorities and starts, and which are leaving."""
    EXTERNAL = 1 << 11
    """Facts about the node from other sources, such as metrics; `handle.columns.mark` reports changes."""


class ImageState(Protocol):
    """One image name, over the cluster."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def rows(self) -> Collection[int]:
        """The nodes that have it."""


class NodeInfo(Protocol):
    """One node and the pods on it, assumed ones included."""

    @property
    def row(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def node(self) -> Node: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def taints(self) -> Sequence[Taint]: ...
    @property
    def unschedulable(self) -> bool: ...
    @property
    def pods(self) -> Collection[Pod]: ...
    @property
    def allocatable(self) -> Mapping[str, int]:
        """Resource name → amount (cpu in thousandths of a core), `pods` included."""

    @property
    def requested(self) -> Mapping[str, int]:
        """Resource name → sum over the pods on the node, in the units of `allocatable`."""


class NodeColumns(Protocol):
    """All nodes, by columns."""

    @property
    def size(self) -> int:
        """Length of every column."""

    @property
    def count(self) -> int:
        """How many rows are nodes."""

    @property
    def in_use(self) -> BoolColumn: ...
    @property
    def unschedulable(self) -> BoolColumn: ...
    @property
    def pod_count(self) -> Int64Column: ...
    @property
    def allowed_pods(self) -> Int64Column: ...

    def allocatable(self, resource: str) -> Int64Column:
        """Amounts of one resource; 0 where a node does not report it."""

    def requested(self, resource: str) -> Int64Column:
        """Sums over the pods on each node."""

    def non_zero_requested(self, resource: str) -> Int64Column:
        """Like `requested` for `cpu` and `memory`, with scoring's defaults for containers without requests."""

    def label_codes(self, key: str) -> Int32Column:
        """A number for each distinct value of a label; 0 where the node has no such label."""

    def label_values(self, key: str) -> Sequence[str]:
        """The value behind each code of `label_codes`; the first entry, for code 0, means nothing."""

    def label_code(self, key: str, value: str) -> int:
        """The code of one value of a label; 0 if no node ever had it."""

    def topology(self, key: str) -> Topology:
        """The label as a topology: shared by all plugins that look at whole domains."""

    @property
    def taints(self) -> Mapping[Taint, BoolColumn]:
        """Every distinct taint in the cluster, and where it is."""

    @property
    def host_ports(self) -> Mapping[tuple[str, int], Mapping[str, Mapping[int, int]]]:
        """(protocol, port) → address → row → how many pods hold it; `0.0.0.0` is any address."""

    @property
    def images(self) -> Mapping[str, ImageState]:
        """Every image name on any node."""

    @property
    def pods(self) -> PodIndex:
        """Counts over the pods on nodes."""

    @property
    def volumes(self) -> VolumeIndex:
        """The claims and disks that the pods on nodes use."""

    def row_of(self, name: str) -> int | None:
        """The row of a node, or None if there is no such node."""

    def names(self) -> Sequence[str]:
        """The name of every row; empty where a row is not in use."""

    def info(self, row: int) -> NodeInfo:
        """One node. Raises KeyError for a row that is not in use."""
