"""Tries changes of the cluster in the engine's own tables, in one synchronous step, and undoes them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

import msgspec

from scheduler.api.decoding import reread
from scheduler.api.groups.owners import is_of_daemon_set, is_static, node_of
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.unstructured import Unstructured, unstructured_hook
from scheduler.engine.engine import Engine
from scheduler.explain.full_evaluation import FullEvaluation, evaluate_fully
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.resources import struct_of
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.new_nodes import comes_with, new_names, node_like, own_labels, pod_for
from scheduler.state.nodes.node_objects import belong_to_nodes, is_of_node, renamed


class Trials:
    """Trials for one pod with the plugins of its profile."""

    def __init__(self, engine: Engine, framework: Framework) -> None:
        self._engine = engine
        self._framework = framework
        self._table = engine.cache.table

    def evaluated(self, pod: Pod, row: int | None = None) -> FullEvaluation:
        """Return the answers of all plugins about a pod, on all nodes or one. Raises PluginError."""
        return evaluate_fully(self._framework, self._engine.algorithm, pod, row)

    def nodes_for(self, pod: Pod) -> list[str]:
        """Return the names of the nodes that a pod fits, in their order. Raises PluginError."""
        names = self._table.names()
        return sorted(names[row] for row in self.evaluated(pod).fits.tolist())

    def fits(self, pod: Pod, row: int) -> bool:
        try:
            return bool(len(self.evaluated(pod, row).fits))
        except PluginError:
            return False

    def fits_changed(self, pod: Pod, node: Node) -> bool:
        """Return whether a pod fits an existing node if it changes to this."""
        with self._table.what_if_node(node) as row:
            return self.fits(pod, row)

    def fits_without(self, pod: Pod, node_name: str, others: Collection[Pod]) -> bool:
        """Return whether a pod fits a node once other pods there are deleted. Static pods come back."""
        row = self._table.row_of(node_name)
        there = {each.uid for each in self._table.pods_on(node_name)}
        if row is None or any(is_static(each) or each.uid not in there for each in others):
            return False
        with self._table.what_if(row, remove=others):
            return self.fits(pod, row)

    def may_preempt(self, pod: Pod, node_name: str) -> bool:
        """Return whether a pod fits a node without all pods of lower priority there, as a preemption asks first."""
        row = self._table.row_of(node_name)
        if row is None:
            return False
        lower = [each for each in self._table.pods_on(node_name) if each.priority < pod.priority]
        with self._table.what_if(row, remove=lower):
            return self.fits(pod, row)

    def objects(self, changed: Iterable[tuple[str, Any]]) -> AbstractContextManager[None]:
        """Have objects in another version, each with its resource, within a `with` block."""
        return self._engine.objects.what_if(changed, replaces=True)

    def nodes_without(self, pod: Pod, other: Pod, objects: Iterable[tuple[str, Any]] = ()) -> list[str]:
        """Return the names of the nodes that a pod fits once another one is deleted, in their order.

        `objects`: other objects as they are then.
        """
        row = self._table.row_of(other.node_name)
        if row is None or is_static(other) or not self._table.has_pod(row, other.uid):
            return []
        with self.objects(objects), self._table.what_if(row, remove=[other]):
            try:
                return self.nodes_for(pod)
            except PluginError:
                return []

    def fits_new(self, pod: Pod, like: str, key: str = "") -> bool:
        """Return whether a pod fits one more node, as `simulate --add-nodes 1 --like` makes it, with all pods of
        daemons.

        `key`: a label with which it has a value that no other node has.
        """
        try:
            with self._one_more(like, key) as row:
                return row is not None and self.fits(pod, row)
        except ValueError:  # Unreadable included
            return False

    @contextmanager
    def _one_more(self, like: str, key: str = "") -> Iterator[int | None]:
        table = self._table
        model = table.node(like)
        if model is None:
            yield None
            return
        name = next(new_names(like, set(table.node_names())))
        node = node_like(model, name, own_labels(model, self._nodes()))
        if key:
            metadata = msgspec.structs.replace(node.metadata, labels={**node.labels, key: name})
            node = msgspec.structs.replace(node, metadata=metadata)
        coming = [*(pod for pod in table.pods_on(like) if comes_with(pod, like)), *self._waiting_daemons.get(like, ())]
        pods = [pod_for(pod, name).bound_to(name) for pod in coming]
        with self._engine.objects.what_if(self._objects_like(like, name)), table.what_if_node(node, pods) as row:
            yield row

    def _nodes(self) -> Iterator[Node]:
        return (node for name in self._table.node_names() if (node := self._table.node(name)) is not None)

    @cached_property
    def _waiting_daemons(self) -> dict[str, list[Pod]]:
        """Node → pods of DaemonSets that wait for it. A new node gets such pods too."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._engine.pods.values():
            if not pod.node_name and is_of_daemon_set(pod) and comes_with(pod, node_of(pod)):
                found[node_of(pod)].append(pod)
        return found

    def _objects_like(self, like: str, name: str) -> Iterator[tuple[str, Any]]:
        """Copies of the objects that belong to a node and that plugins watch."""
        for event_resource, resource in self._engine.watched.items():
            if not belong_to_nodes(resource):
                continue
            for obj in tuple(self._engine.objects.list(event_resource)):
                if not _may_be_of(obj, like):
                    continue
                content = _content(obj)
                if is_of_node(resource, content, like):
                    made = renamed(resource, content, like, name)
                    made["metadata"]["uid"] = f"{event_resource}//{made['metadata']['name']}"
                    yield event_resource, reread(made, struct_of(event_resource), unstructured_hook)


def _may_be_of(obj: Any, node: str) -> bool:
    """Return whether an object may belong to a node: a cheap test for thousands of objects."""
    return obj.metadata.name == node or getattr(getattr(obj, "spec", None), "node_name", "") == node


def _content(obj: Any) -> dict[str, Any]:
    content: dict[str, Any] = obj.content if isinstance(obj, Unstructured) else msgspec.to_builtins(obj)
    return content
