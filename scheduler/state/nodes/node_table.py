"""All nodes as columns: a node is a row, each of its facts an entry of a numpy array. Design: docs/design/columns.md.

A row is in one of three states:

    free ──add_node──► in use ──remove_node, no pods──► free
      │                  │  ▲
      │       remove_node│  │add_node
      │        with pods ▼  │
      └─add_pod──►  placeholder ──last pod removed──► free

A placeholder holds pods whose node has not arrived yet, or was removed before them. It is never chosen.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from types import MappingProxyType
from typing import Any

import numpy as np

from scheduler.api.objects import Node, Taint, labels_of
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import CPU, MEMORY, PODS, PodResources, allocatable_of, requests_of
from scheduler.api.quantities.go_quantity import wrapped
from scheduler.api.read_only import ReadOnlyList, read_only_attribute
from scheduler.framework.nodes.change_log import ChangeLog
from scheduler.framework.nodes.nodes import Aspect, BoolColumn, Int32Column, Int64Column, Rows
from scheduler.state.nodes.amounts import Amounts, add_at
from scheduler.state.nodes.aspect_logs import ALL_ASPECTS, OF_PODS, AspectLogs, node_aspects
from scheduler.state.nodes.holdings import HostPorts, VolumeUsers
from scheduler.state.nodes.images import ImageRows, ImageTable
from scheduler.state.nodes.labels import LabelColumn, LabelColumns
from scheduler.state.nodes.live_column import LiveColumn, bool_column, int64_column
from scheduler.state.nodes.node_row import NodeRow
from scheduler.state.pod_index import AlikePodsIndex


class NodeTable:
    """Implements framework.nodes.NodeColumns. The cache is the only writer; readers see every write at once."""

    def __init__(self, capacity: int = 64) -> None:
        self._size = 0
        self._count = 0
        self._logs = AspectLogs(capacity)
        self._volumes = VolumeUsers()
        self._capacity = capacity
        self._free: list[int] = []
        self._row_of: dict[str, int] = {}
        self._names: ReadOnlyList[str] = ReadOnlyList()
        self._nodes: list[Node | None] = []
        self._pods: list[dict[str, Pod]] = []
        self._in_use = bool_column(capacity)
        self._unschedulable = bool_column(capacity)
        self._pod_count = int64_column(capacity)
        self._allowed_pods = int64_column(capacity)
        self._amounts = Amounts(capacity)
        self._non_zero = {CPU: int64_column(capacity), MEMORY: int64_column(capacity)}
        self._zeros = int64_column(capacity)
        self._taints: dict[Taint, LiveColumn[np.bool_]] = {}
        self._labels = LabelColumns(capacity)
        self._alike_pods = AlikePodsIndex(capacity, self._labels.rows_with)
        self._images = ImageTable()
        self._ports = HostPorts()
        self.is_broken = False
        """Whether a change failed half way: nothing in the table may be used before the cache has rebuilt it."""

    # What plugins read: nothing of it can be written to.

    size: int = read_only_attribute("_size")
    count: int = read_only_attribute("_count")
    volumes: VolumeUsers = read_only_attribute("_volumes")
    pods: AlikePodsIndex = read_only_attribute("_alike_pods")
    host_ports: Mapping[tuple[str, int], Mapping[str, Mapping[int, int]]] = read_only_attribute("_ports.rows")
    images: Mapping[str, ImageRows] = read_only_attribute("_images.shown")

    @property
    def in_use(self) -> BoolColumn:
        return self._in_use.shown[: self.size]

    @property
    def unschedulable(self) -> BoolColumn:
        return self._unschedulable.shown[: self.size]

    @property
    def pod_count(self) -> Int64Column:
        return self._pod_count.shown[: self.size]

    @property
    def allowed_pods(self) -> Int64Column:
        return self._allowed_pods.shown[: self.size]

    def allocatable(self, resource: str) -> Int64Column:
        return self._amounts.allocatable.get(resource, self._zeros).shown[: self.size]

    def requested(self, resource: str) -> Int64Column:
        column = self._amounts.requested.get(resource) or self._amounts.unoffered(resource) or self._zeros
        return column.shown[: self.size]

    @property
    def offered(self) -> Mapping[str, int]:
        """Resource → how many nodes offer some of it."""
        return MappingProxyType(self._amounts.nodes_with)

    def non_zero_requested(self, resource: str) -> Int64Column:
        return self._non_zero[resource].shown[: self.size]

    def label_codes(self, key: str) -> Int32Column:
        return self.topology(key).codes

    def label_values(self, key: str) -> Sequence[str]:
        return self.topology(key).values

    def label_code(self, key: str, value: str) -> int:
        return self.topology(key).code_of(value)

    def topology(self, key: str) -> LabelColumn:
        by_row = (None if node is None else labels_of(node.metadata) for node in self._nodes)
        return self._labels.column(key, self.size, by_row)

    @property
    def taints(self) -> Mapping[Taint, BoolColumn]:
        return MappingProxyType({taint: column.shown[: self.size] for taint, column in self._taints.items()})

    def row_of(self, name: str) -> int | None:
        row = self._row_of.get(name)
        return row if row is not None and self._nodes[row] is not None else None

    def rows_of(self, names: Collection[str]) -> Rows:
        """The rows of those of these nodes that are there, in their order."""
        rows = np.fromiter(map(self._row_of.get, names, repeat(-1)), np.intp, len(names))
        found: Rows = rows[self._in_use.values[rows] & (rows >= 0)]
        return found

    def names(self) -> Sequence[str]:
        return self._names

    def info(self, row: int) -> NodeRow:
        node = self._nodes[row]
        if node is None:
            raise KeyError(f"row {row} is not in use")
        return NodeRow(row, node, self._pods[row], self._amounts)

    def has_pod(self, row: int, uid: str) -> bool:
        """Return whether a pod is on a row, also within a what-if."""
        return uid in self._pods[row]

    # For stored answers.

    def change_log(self, aspect: Aspect) -> ChangeLog:
        """The rows in which an aspect changed."""
        return self._logs.of(aspect)

    # For replays: which row a node has, decides among equals.

    def layout(self) -> tuple[list[str], list[int]]:
        """Return the name of each row, empty for free ones, and the free rows in the order of their release."""
        names = [""] * self.size
        for name, row in self._row_of.items():
            names[row] = name
        return names, list(self._free)

    def lay_out(self, names: Sequence[str], free: Sequence[int]) -> None:
        """Give a table without rows the layout of another one; nodes and pods of these names are to follow."""
        for row, name in enumerate(names):
            self._claim_row(name or f"free row {row}")
        for row in free:
            self._release_row(f"free row {row}", row)

    # What the cache writes.

    def node(self, name: str) -> Node | None:
        """The node of that name, or None if there is none or its row is a placeholder."""
        row = self._row_of.get(name)
        return None if row is None else self._nodes[row]

    def node_names(self) -> list[str]:
        return [name for name, node in zip(self._names, self._nodes, strict=True) if node is not None]

    def placeholder_names(self) -> list[str]:
        return [name for name, row in self._row_of.items() if self._nodes[row] is None]

    def pods_on(self, name: str) -> Collection[Pod]:
        """The pods counted on a node or placeholder."""
        row = self._row_of.get(name)
        return self._pods[row].values() if row is not None else ()

    def set_node(self, node: Node) -> int:
        """Add a node, or replace it by its new version; return its row.

        Raises ValueError, before anything is changed, if a quantity of the node cannot be read.
        """
        amounts = allocatable_of(node.status.allocatable)
        row = self._row_of.get(node.name)
        if row is None:
            row = self._claim_row(node.name)
        old = self._nodes[row]
        if old is None:
            self._count += 1
            aspects = ALL_ASPECTS
        else:
            aspects = self._clear_node(row, old, node)
        if self._amounts.set_allocatable(row, amounts):
            aspects |= Aspect.ALLOCATABLE
        self._nodes[row] = node
        list.__setitem__(self._names, row, node.name)
        self._in_use.values[row] = True
        self._unschedulable.values[row] = node.spec.unschedulable
        self._allowed_pods.values[row] = amounts.get(PODS, 0)
        for taint in node.taints:
            column = self._taints.get(taint)
            if column is None:
                column = self._taints[taint] = bool_column(self._capacity)
            column.values[row] = True
        self._set_labels(row, old, node)
        if aspects & Aspect.IMAGES:
            self._images.add(row, node)
            if self._images.states:
                # An image scores by its share of all nodes: one more node changes the share of every image.
                self._logs.of(Aspect.IMAGES).mark_all()
        self._logs.mark(row, aspects)
        return row

    def remove_node(self, name: str) -> None:
        """Remove a node; its row stays as a placeholder while pods are on it. Unknown names are ignored."""
        row = self._row_of.get(name)
        node = None if row is None else self._nodes[row]
        if row is None or node is None:
            return
        self._clear_node(row, node, None)
        self._amounts.set_allocatable(row, {})
        self._nodes[row] = None
        self._in_use.values[row] = False
        self._unschedulable.values[row] = False
        self._allowed_pods.values[row] = 0
        list.__setitem__(self._names, row, "")
        self._set_labels(row, node, None)
        self._count -= 1
        self._logs.of(Aspect.IMAGES).mark_all()
        self._logs.mark(row, ALL_ASPECTS)
        if not self._pods[row]:
            self._release_row(name, row)

    def add_pod(self, name: str, pod: Pod) -> None:
        """Count `pod` on a node, known or not. Raises ValueError for a quantity that cannot be read."""
        resources = pod.resources
        row = self._row_of.get(name)
        if row is None:
            row = self._claim_row(name)
        self._logs.mark(row, self._count_pod(row, pod, resources, 1))

    def remove_pod(self, name: str, pod: Pod) -> None:
        """Stop counting `pod`, which must be the very version that was added."""
        row = self._row_of[name]
        self._logs.mark(row, self._count_pod(row, pod, pod.resources, -1))
        if not self._pods[row] and self._nodes[row] is None:
            self._release_row(name, row)

    def renew_pod(self, name: str, pod: Pod) -> None:
        """Have an equal pod in the place of one that is counted, as if it had come last of those on its node."""
        uid, pods = pod.metadata.uid, self._pods[self._row_of[name]]
        del pods[uid]
        pods[uid] = pod

    def replace_pod(self, name: str, old: Pod, new: Pod) -> None:
        """Replace a pod on a node by its new version. Raises ValueError for a quantity that cannot be read."""
        if new.takes_the_same_as(old):
            row = self._row_of[name]
            self._pods[row][new.metadata.uid] = new
            if self.pods.replace(row, old, new) or new.raw_json != old.raw_json:
                self._logs.mark(row, Aspect.PODS)
            if (old.status.start_time, old.priority, old.is_deleting) != (
                new.status.start_time,
                new.priority,
                new.is_deleting,
            ):
                self._logs.mark(row, Aspect.STARTS)
        else:
            self.remove_pod(name, old)
            self.add_pod(name, new)

    @contextmanager
    def what_if(self, row: int, add: Iterable[Pod] = (), remove: Collection[Pod] = ()) -> Iterator[None]:
        """Change the pods of one row within a `with` block, in which nothing may await.

        No change is logged: stored answers do not see the block, and none may be stored from within. All is as before
        after it, the order of the pods included.
        """
        done: list[tuple[Pod, int]] = []
        order = self.order_on(row) if remove else ()
        try:
            for pods, sign in ((remove, -1), (add, 1)):
                for pod in pods:
                    self._try_pod(row, pod, sign)
                    done.append((pod, sign))
            yield
        finally:
            for pod, sign in reversed(done):
                self._try_pod(row, pod, -sign)
            self.restore_order(row, order)

    @contextmanager
    def what_if_node(self, node: Node, pods: Collection[Pod] = ()) -> Iterator[int]:
        """Have another version of a node, or a new one with these pods, within a `with` block; yield its row.

        Nothing may await in the block. Unlike `what_if`, this is logged as the change that it is, and so is its end:
        stored answers stay right, and the row costs what a change of the node costs. Raises ValueError for a quantity
        that cannot be read.
        """
        old = self.node(node.name)
        row = self.set_node(node)
        there: list[Pod] = []
        try:
            for pod in pods:
                self.add_pod(node.name, pod)
                there.append(pod)
            yield row
        finally:
            for pod in there:
                self.remove_pod(node.name, pod)
            if old is None:
                self.remove_node(node.name)
            else:
                self.set_node(old)

    def order_on(self, row: int) -> tuple[str, ...]:
        """The UIDs of a row's pods, in their order: among equally important ones it decides who is evicted."""
        return tuple(self._pods[row])

    def restore_order(self, row: int, order: tuple[str, ...]) -> None:
        """Put a row's pods in this order again, or a decision would depend on what was only tried before."""
        pods = self._pods[row]
        if order and order != tuple(pods):
            for uid in order:
                if uid in pods:
                    pods[uid] = pods.pop(uid)

    def clear(self) -> None:
        """Forget all nodes and pods, whatever state the table is in. Readers learn that any row may have changed."""
        self._size = self._count = 0
        list.clear(self._names)
        for rows in (self._free, self._row_of, self._nodes, self._pods):
            rows.clear()
        for column in self._columns():
            column.values[:] = 0
        self._amounts = Amounts(self._capacity)
        self._taints.clear()
        self._labels.clear()
        self._images.states.clear()
        self._ports.clear()
        self.volumes.clear()
        self.pods.clear()
        for aspect in Aspect:
            self._logs.of(aspect).mark_all()

    def forget_idle(self) -> None:
        """Give back what was derived for pods, and was not asked for since the last call."""
        self._labels.forget_idle()
        self.pods.forget_idle()

    def cache_bytes(self) -> Iterator[tuple[str, int]]:
        """Yield the approximate memory of data derived for pods, by kind."""
        yield "label columns", self._labels.bytes
        yield "pod counts", self.pods.bytes

    def check_invariants(self) -> None:
        """Sums match the pods, rows match the names. For tests and debugging."""
        assert not self.is_broken
        assert self.count == int(self.in_use.sum()) == sum(node is not None for node in self._nodes)
        assert sorted([*self._row_of.values(), *self._free]) == list(range(self.size))
        for name, row in self._row_of.items():
            node, pods = self._nodes[row], self._pods[row].values()
            assert (node is not None) == bool(self._in_use.values[row]), name
            assert node is not None or pods, f"empty placeholder {name}"
            assert self._names[row] == (name if node is not None else ""), name
            assert self._pod_count.values[row] == len(pods), name
            expected: dict[str, int] = {}
            for pod in pods:
                for resource, amount in pod.requests.items():
                    expected[resource] = expected.get(resource, 0) + amount
            requested = self._amounts.requested_at(row, (pod.requests for pod in pods))
            sums = {resource: wrapped(amount) for resource, amount in expected.items()}
            assert requested == {resource: amount for resource, amount in sums.items() if amount}, (name, requested)
            cpu, memory = self._non_zero[CPU].values[row], self._non_zero[MEMORY].values[row]
            assert cpu == wrapped(sum(pod.resources.non_zero_cpu for pod in pods)), name
            assert memory == wrapped(sum(pod.resources.non_zero_memory for pod in pods)), name
            taints = {taint for taint, column in self._taints.items() if column.values[row]}
            assert taints == (set(node.taints) if node is not None else set()), name
        for row in self._free:
            assert not self._pods[row], row
            assert self._pod_count.values[row] == 0, row
            assert self._amounts.is_clear(row), row
        self._amounts.check_invariants()
        self.pods.check_invariants([pods.values() for pods in self._pods])
        self.volumes.check_invariants(pods.values() for pods in self._pods)

    # Internals.

    def _set_labels(self, row: int, old: Node | None, new: Node | None) -> None:
        before, after = (None if node is None else labels_of(node.metadata) for node in (old, new))
        if changed := self._labels.set_row(row, before, after):
            self.pods.label_keys_changed(changed)

    def _try_pod(self, row: int, pod: Pod, sign: int) -> None:
        """Count a pod, or stop counting it, for a what-if."""
        resources = pod.resources
        was_there = pod.uid in self._pods[row]
        try:
            self._count_pod(row, pod, resources, sign)
        except Exception:
            self.is_broken |= was_there != (pod.uid in self._pods[row])
            raise

    def _count_pod(self, row: int, pod: Pod, resources: PodResources, sign: int) -> Aspect:
        """Count a pod, or with `sign` -1 stop counting it; return in which aspects that changes the row."""
        uid, pods = pod.metadata.uid, self._pods[row]
        if sign > 0:
            if uid in pods:
                raise ValueError(f"{pod} is on row {row} already")
            pods[uid] = pod
        else:
            del pods[uid]
        self._pod_count.values[row] += sign
        self._amounts.count(row, requests_of(resources), sign)
        add_at(self._non_zero[CPU].values, row, sign * resources.non_zero_cpu)
        add_at(self._non_zero[MEMORY].values, row, sign * resources.non_zero_memory)
        ports, storage, aspects = pod.host_ports, pod.storage, OF_PODS
        if ports:
            self._ports.count(row, ports, sign)
            aspects |= Aspect.PORTS
        if storage.volumes:
            self.volumes.count(row, storage, sign)
            aspects |= Aspect.VOLUMES
        self._alike_pods.count(row, pod, sign)
        return aspects

    def _clear_node(self, row: int, old: Node, new: Node | None) -> Aspect:
        """Take the old version's facts out of the columns; return the aspects in which the new one differs, if any."""
        aspects = Aspect(0) if new is None else node_aspects(old, new)
        for taint in set(old.taints):
            holders = self._taints[taint].values
            holders[row] = False
            if not holders.any():
                del self._taints[taint]
        if self._images.is_resized_by(old):
            aspects |= Aspect.IMAGES
        if new is None or aspects & Aspect.IMAGES:  # a heartbeat reports the images that it had
            self._images.remove(row, old)
        return aspects

    def _claim_row(self, name: str) -> int:
        if self._free:
            row = self._free.pop()
        else:
            row = self.size
            if row == self._capacity:
                self._grow()
            self._size += 1
            list.append(self._names, "")
            self._nodes.append(None)
            self._pods.append({})
            self.pods.resize(self.size)
        self._row_of[name] = row
        return row

    def _release_row(self, name: str, row: int) -> None:
        del self._row_of[name]
        self._free.append(row)

    def _columns(self) -> Iterator[LiveColumn[Any]]:
        """Those that are there whatever the nodes have."""
        yield from (self._in_use, self._unschedulable)
        yield from (self._pod_count, self._allowed_pods, *self._non_zero.values())

    def _grow(self) -> None:
        capacity = 2 * self._capacity
        for column in (*self._columns(), *self._taints.values(), self._zeros):
            column.grow(capacity)
        self._amounts.grow(capacity)
        self._labels.grow(capacity)
        self._logs.grow(capacity)
        self._capacity = capacity
