"""What plugins know of devices beyond the objects: pools of each node, what is allocated, what is on its way to be.

One catalog for all profiles of a scheduler. An allocation goes the way

    (free) --reserve--> IN FLIGHT --written--> ASSUMED --the watch shows it--> (in the store)
                            |                     |
                            +--unreserve--> (free)+--the watch shows something newer--> (in the store)

In flight is by UID: another pod with the same claim has to wait. Assumed is the object that the API server answered
with, until the watch has it. Rule: dynamicresources/dra_manager.go and allocateddevices.go at v1.36.3.
"""

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from plugins.devices.capacity import amounts
from plugins.devices.pools import DeviceId, Pool, SliceView, gather_pools
from plugins.devices.search import Allocated
from scheduler import framework as fw
from scheduler.api.devices import Allocation, DeviceClass, DeviceResult, ResourceClaim
from scheduler.api.objects import Node
from scheduler.api.versions import is_newer
from scheduler.framework.handle import ObjectLister

_MAX_NODES = 100_000
"""Nodes whose pools are kept; more are worked out anew each time."""


class DeviceCatalog:
    """Reads the objects and keeps what follows from them, brought up to date when it is asked."""

    def __init__(self, objects: ObjectLister) -> None:
        self._objects = objects
        self._slices = _Slices(objects)
        self._classes: dict[str, tuple[Any, DeviceClass]] = {}
        self._in_flight: dict[str, ResourceClaim] = {}
        self._assumed: dict[tuple[str, str], ResourceClaim] = {}
        self._known: dict[str, ResourceClaim] = {}
        self._known_version = -1
        self._allocated = Allocated()

    # Objects.

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the newest claim that we know of."""
        stored: ResourceClaim | None = self._objects.get(fw.RESOURCE_CLAIM, name, namespace)
        assumed = self._assumed.get((namespace, name))
        if assumed is None:
            return stored
        if stored is not None and stored.uid == assumed.uid and _is_older(stored, assumed):
            return assumed
        del self._assumed[namespace, name]
        self._known_version = -1
        return stored

    def device_class(self, name: str) -> DeviceClass | None:
        stored = self._objects.get(fw.DEVICE_CLASS, name)
        if stored is None:
            self._classes.pop(name, None)
            return None
        known = self._classes.get(name)
        if known is None or known[0] is not stored:
            cls = stored if isinstance(stored, DeviceClass) else msgspec.convert(stored.content, DeviceClass)
            known = self._classes[name] = stored, cls
        return known[1]

    def pools_for(self, node: Node) -> list[Pool]:
        """Return the pools that a node can use. Raises DevicesError."""
        return self._slices.pools_for(node)

    # Allocations.

    def in_flight(self, uid: str) -> Allocation | None:
        """Return the allocation of a claim that is reserved in memory and not written yet."""
        claim = self._in_flight.get(uid)
        return None if claim is None else claim.status.allocation

    def reserve(self, claim: ResourceClaim) -> None:
        """Take the devices of an allocated claim that is not written yet. The first allocation of a claim counts."""
        self._in_flight.setdefault(claim.uid, claim)

    def release(self, uid: str) -> bool:
        """Forget a reservation, which was written or was not needed after all. Whether there was one."""
        return self._in_flight.pop(uid, None) is not None

    def assume(self, claim: ResourceClaim) -> None:
        """Take what the API server answered for the newest version, until the watch has it."""
        stored: ResourceClaim | None = self._objects.get(
            fw.RESOURCE_CLAIM, claim.metadata.name, claim.metadata.namespace
        )
        if stored is not None and stored.uid == claim.uid and _is_older(stored, claim):
            self._assumed[claim.metadata.namespace, claim.metadata.name] = claim
            self._known_version = -1

    def allocated(self) -> Allocated:
        """Return the devices that are taken, by allocated claims and by those in flight: not to be changed or kept."""
        self._refresh()
        if not self._in_flight:
            return self._allocated
        found = Allocated(
            set(self._allocated.whole),
            dict(self._allocated.shared),
            {device: dict(consumed) for device, consumed in self._allocated.capacity.items()},
        )
        for claim in self._in_flight.values():
            # Written, and not yet released: the same devices, which must not count twice.
            if claim.uid not in self._known or self._known[claim.uid].status.allocation is None:
                _count(found, claim, 1)
        return found

    def _refresh(self) -> None:
        """Bring the sums up to date: by the claims that changed."""
        for namespace, name in tuple(self._assumed):
            self.claim(namespace, name)
        version = self._objects.version(fw.RESOURCE_CLAIM)
        if version == self._known_version:
            return
        self._known_version = version
        gone = self._known
        self._known = {}
        for stored in self._objects.list(fw.RESOURCE_CLAIM):
            claim = self._assumed.get((stored.metadata.namespace, stored.metadata.name), stored)
            self._known[claim.uid] = claim
            before = gone.pop(claim.uid, None)
            if before is claim:
                continue
            # An allocation is replaced only by none, and none only by one.
            if before is not None and before.status.allocation is not None:
                if claim.status.allocation is not None:
                    continue
                _count(self._allocated, before, -1)
            if claim.status.allocation is not None:
                _count(self._allocated, claim, 1)
        for claim in gone.values():
            _count(self._allocated, claim, -1)


class _Slices:
    """The slices, by node, with the pools that follow."""

    def __init__(self, objects: ObjectLister) -> None:
        self._objects = objects
        self._version = -1
        self._views: dict[str, SliceView] = {}
        self._of_node: dict[str, list[SliceView]] = {}
        self._shared: list[SliceView] = []
        self._pools: dict[str, tuple[Node, list[Pool]]] = {}

    def pools_for(self, node: Node) -> list[Pool]:
        self._refresh()
        known = self._pools.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        views = (*self._of_node.get(node.name, ()), *self._shared)
        pools = gather_pools(node, views, self._views.values())
        if len(self._pools) >= _MAX_NODES:
            self._pools.clear()
        self._pools[node.name] = node, pools
        return pools

    def _refresh(self) -> None:
        version = self._objects.version(fw.RESOURCE_SLICE)
        if version == self._version:
            return
        self._version = version
        old, self._views = self._views, {}
        self._of_node, self._shared = {}, []
        self._pools.clear()
        for stored in self._objects.list(fw.RESOURCE_SLICE):
            view = old.get(stored.metadata.uid)
            if view is None or view.slice is not stored:
                view = SliceView(stored)
            self._views[stored.metadata.uid] = view
            node = stored.spec.node_name
            if node and not view.has_counters:
                self._of_node.setdefault(node, []).append(view)
            else:
                self._shared.append(view)


def results_of(claim: ResourceClaim) -> Iterator[DeviceResult]:
    """Yield the devices that a claim has, if it is allocated."""
    if claim.status.allocation is not None:
        yield from claim.status.allocation.devices.results or ()


def _count(allocated: Allocated, claim: ResourceClaim, sign: int) -> None:
    """Count the devices of a claim in, or with -1 out. Rule: foreachAllocatedDevice."""
    for result in results_of(claim):
        if result.admin_access:
            continue
        device = DeviceId(result.driver, result.pool, result.device)
        if result.share_id is None:
            (allocated.whole.add if sign > 0 else allocated.whole.discard)(device)
            continue
        shares = allocated.shared.get(device, 0) + sign
        if shares > 0:
            allocated.shared[device] = shares
        else:
            allocated.shared.pop(device, None)
        if result.consumed_capacity is not None:
            total = allocated.capacity.setdefault(device, {})
            for name, amount in amounts(result.consumed_capacity).items():
                total[name] = total.get(name, 0) + sign * amount
            if sign < 0 and not any(total.values()):
                del allocated.capacity[device]


def _is_older(one: ResourceClaim, other: ResourceClaim) -> bool:
    return is_newer(other.metadata.resource_version, one.metadata.resource_version)


_catalogs: WeakKeyDictionary[ObjectLister, DeviceCatalog] = WeakKeyDictionary()


def catalog_of(objects: ObjectLister) -> DeviceCatalog:
    """Return the catalog of a scheduler: all of its profiles share the objects, and so must share what is in flight."""
    found = _catalogs.get(objects)
    if found is None:
        found = _catalogs[objects] = DeviceCatalog(objects)
    return found
