"""The ResourceSlices by node, with the pools that follow; kept up to date by the slices that change."""

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Final, TypeVar

from plugins.dynamic_resources.allocation.pools import (
    DeviceId,
    Pool,
    PoolId,
    SliceView,
    gather_pools,
    is_for_node,
)
from plugins.dynamic_resources.gates import COMPATIBILITY, DeviceGates
from scheduler import framework as fw
from scheduler.api.devices import Device, DeviceTaintRule, DeviceTaintSelector, ResourceSlice
from scheduler.api.objects import Node

Key = TypeVar("Key")

_MAX_NODES: Final = 100_000
"""Nodes whose pools are kept; more are computed each time."""

_MANY: Final = 64
"""Slices of a pool above which a change of one counts as a change for all nodes."""


class NodeSlices:
    """The pools of each node. `changed` gets the nodes whose pools, or allocated devices, changed."""

    def __init__(self, objects: fw.ObjectLister, changed: fw.BoundedLog[str], gates: DeviceGates) -> None:
        self._may_have_groups = COMPATIBILITY in gates.names
        self._changed = changed
        self._of_node: dict[str, dict[str, SliceView]] = {}
        """Node → UID → slice; here and below."""
        self._shared: dict[str, SliceView] = {}
        """Those that name no node."""
        self._of_pool: dict[PoolId, dict[str, SliceView]] = {}
        """All of them."""
        self._pools: dict[str, tuple[Node, list[Pool]]] = {}
        self._common: list[Pool] | None = None
        """The pools of nodes without slices of their own, if they are the same for all."""
        self._is_for_all: bool | None = None
        """Whether they are; None if that has to be looked up."""
        self._rules = _TaintRules(objects, self._forget_all)
        objects.listen(fw.RESOURCE_SLICE, self._slice_changed, self._reset)

    def pools_for(self, node: Node) -> list[Pool]:
        """Return the pools that a node can use. Raises DevicesError.

        It is the same list, and not only an equal one, for nodes that cannot differ in what is found there.
        """
        own = self._of_node.get(node.name)
        if own is None and self._shared_is_for_all():
            if self._common is None:
                self._common = self._gather(node, self._shared)
            return self._common
        known = self._pools.get(node.name)
        if known is not None and (known[0] is node or known[0].labels == node.labels):
            return known[1]
        pools = self._gather(node, {**(own or {}), **self._shared})
        if len(self._pools) >= _MAX_NODES:
            self._pools.clear()
        self._pools[node.name] = node, pools
        return pools

    def nodes_with_slices(self) -> Set[str] | None:
        """Return the nodes with slices of their own, if all others have the same pools; None if they may differ."""
        return self._of_node.keys() if self._shared_is_for_all() else None

    def slices_for(self, node: Node) -> Iterator[SliceView]:
        """Yield every slice with devices that may be for this node, whatever its pool. Raises DevicesError."""
        yield from self._of_node.get(node.name, {}).values()
        for view in self._shared.values():
            spec = view.slice.spec
            if spec.per_device_node_selection or spec.node_selector is None or is_for_node(node, spec):
                yield view

    def have_amounts(self, node_name: str) -> bool:
        """Return whether a device that may be of this node stands for resources of it, or costs some."""
        own = self._of_node.get(node_name, {})
        return any(view.has_amounts for views in (own, self._shared) for view in views.values())

    def nodes_with_amounts(self, pools: Iterable[PoolId]) -> Set[str] | None:
        """Return the nodes with devices of these pools of which some need more of their node; None if any may be."""
        views = [view for pool_id in pools for view in self._of_pool.get(pool_id, {}).values()]
        if not any(view.has_amounts for view in views):
            return frozenset()
        names = {view.slice.spec.node_name or "" for view in views}
        return None if "" in names else names

    def device(self, device: DeviceId) -> Device | None:
        """Return a device that some node has, of any generation of its pool."""
        for view in self._of_pool.get((device.driver, device.pool), {}).values():
            for each in view.devices:
                if each.id == device:
                    return each.device
        return None

    def taken_or_freed(self, device: DeviceId) -> None:
        """Note that a device was allocated or freed."""
        views = self._of_pool.get((device.driver, device.pool), {}).values()
        has_counters = any(view.has_counters for view in views)
        for view in views:
            if view.has_counters or not (has_counters or device.device in view.names):
                continue  # counters are shared by all devices of the pool
            node = view.slice.spec.node_name
            if not node:
                self._changed.mark_all()
                return
            self._changed.mark(node)

    def _gather(self, node: Node, views: dict[str, SliceView]) -> list[Pool]:
        return gather_pools(node, views.values(), self._of_pool)

    def _reset(self) -> None:
        for index in (self._of_node, self._shared, self._of_pool):
            index.clear()
        self._forget_all()

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        if old is not None:
            pool_id = old.spec.driver, old.spec.pool.name
            self._forget_pool(pool_id)
            self._remove(old.metadata.uid, pool_id, old.spec.node_name)
            self._forget_pool(pool_id)
        if new is not None:
            view = SliceView(new, self._rules.taints_of, may_have_groups=self._may_have_groups)
            self._add(view)
            self._forget_pool(view.pool_id)

    def _forget_all(self) -> None:
        self._pools.clear()
        self._common = self._is_for_all = None
        self._changed.mark_all()

    def _forget_pool(self, pool_id: PoolId) -> None:
        """The pool on one node depends on all of its slices."""
        nodes = [view.slice.spec.node_name for view in self._of_pool.get(pool_id, {}).values()]
        if len(nodes) > _MANY or not all(nodes):
            self._forget_all()
            return
        for node in filter(None, nodes):
            self._pools.pop(node, None)
            self._changed.mark(node)

    def _add(self, view: SliceView) -> None:
        uid, node = view.slice.metadata.uid, view.slice.spec.node_name
        self._of_pool.setdefault(view.pool_id, {})[uid] = view
        if node:
            self._of_node.setdefault(node, {})[uid] = view
        else:
            self._shared[uid] = view

    def _remove(self, uid: str, pool_id: PoolId, node: str | None) -> None:
        self._shared.pop(uid, None)
        _drop(self._of_pool, pool_id, uid)
        if node:
            _drop(self._of_node, node, uid)

    def _shared_is_for_all(self) -> bool:
        if self._is_for_all is None:
            self._is_for_all = all(map(_is_for_all, self._shared.values()))
        return self._is_for_all


def _drop(index: dict[Key, dict[str, SliceView]], key: Key, uid: str) -> None:
    views = index.get(key, {})
    views.pop(uid, None)
    if not views:
        index.pop(key, None)


def _is_for_all(view: SliceView) -> bool:
    spec = view.slice.spec
    return bool(spec.all_nodes) and not spec.per_device_node_selection and not spec.skip_node_operations


class _TaintRules:
    """Taints that an administrator adds to those in the driver's slices. `changed` is called after each change.

    Rule: k8s.io/dynamic-resource-allocation resourceslice/tracker/tracker.go at v0.37.2 (applyPatches).
    """

    def __init__(self, objects: fw.ObjectLister, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._rules: dict[str, tuple[DeviceTaintSelector, fw.Taint]] = {}
        """UID → selector and taint; a rule without a selector selects nothing."""
        objects.listen(fw.DEVICE_TAINT_RULE, self._rule_changed, self._reset)

    def taints_of(self, device: DeviceId) -> Iterator[fw.Taint]:
        """Yield the taints that rules give to a device."""
        for selector, taint in self._rules.values():
            named = selector.driver, selector.pool, selector.device
            if all(name is None or name == own for name, own in zip(named, device, strict=True)):
                yield taint

    def _rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        if old is not None:
            self._rules.pop(old.metadata.uid, None)
        if new is not None and new.spec.device_selector is not None:
            self._rules[new.metadata.uid] = new.spec.device_selector, new.spec.taint
        self._changed()

    def _reset(self) -> None:
        self._rules.clear()
        self._changed()
