"""An index of devices: the pools of each node, and the allocated devices.

One catalog for all profiles of a scheduler. The watch keeps it up to date.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final

from plugins.dynamic_resources.allocation.allocations import Allocations
from plugins.dynamic_resources.allocation.pools import DeviceId, Pool, PoolId, SliceView
from plugins.dynamic_resources.allocation.search import Allocated
from plugins.dynamic_resources.allocation.slices import NodeSlices
from plugins.dynamic_resources.extended.claims import ExtendedClaims
from plugins.dynamic_resources.gates import DeviceGates
from scheduler import framework as fw
from scheduler.api.devices import Allocation, Device, DeviceClass, ResourceClaim
from scheduler.api.objects import Node

_CHANGES: Final = 8192
DEFAULT_GATES: Final = DeviceGates()


class DeviceCatalog:
    """Reads the objects of devices, and stores the data derived from them."""

    def __init__(self, objects: fw.ObjectLister, gates: DeviceGates = DEFAULT_GATES) -> None:
        self._objects = objects
        self.gates = gates
        self.changed: fw.BoundedLog[str] = fw.BoundedLog(_CHANGES)
        """The nodes for which it matters that slices, or allocations of devices, changed."""
        self._slices = NodeSlices(objects, self.changed, gates)
        self._allocations = Allocations(objects, self._slices.taken_or_freed)
        self.extended_claims = ExtendedClaims(objects)

    # Objects.

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return the newest known version of a claim."""
        return self._allocations.claim(namespace, name)

    def extended_claim_for(self, pod: fw.Pod) -> ResourceClaim | None:
        """Return the claim that an earlier attempt made for the pod's extended resources."""
        name = self.extended_claims.name_for(pod)
        return None if name is None else self.claim(pod.namespace, name)

    def device_class(self, name: str) -> DeviceClass | None:
        """Return a class: the same object for as long as the class is unchanged."""
        found: DeviceClass | None = self._objects.get(fw.DEVICE_CLASS, name)
        return found

    def pools_for(self, node: Node) -> Sequence[Pool]:
        """Return the pools that a node can use: see NodeSlices.pools_for. Raises DevicesError."""
        return self._slices.pools_for(node)

    def slices_for(self, node: Node) -> Iterator[SliceView]:
        """Yield every slice with devices that may be for this node, whatever its pool. Raises DevicesError."""
        return self._slices.slices_for(node)

    def have_amounts(self, node_name: str) -> bool:
        """Return whether a device that may be of this node stands for resources of it, or costs some."""
        return self._slices.have_amounts(node_name)

    def nodes_with_amounts(self, pools: Iterable[PoolId]) -> Set[str] | None:
        """Return the nodes with devices of these pools of which some need more of their node; None if any may be."""
        return self._slices.nodes_with_amounts(pools)

    def device(self, device: DeviceId) -> Device | None:
        """Return a device that some node has, of any generation of its pool."""
        return self._slices.device(device)

    def nodes_with_slices(self) -> Set[str] | None:
        """Return the nodes with devices of their own, if all others cannot differ; None if they can. A live view."""
        return self._slices.nodes_with_slices()

    # Allocations: see Allocations.

    def allocated(self) -> Allocated:
        """Return the devices that are taken, by allocated claims and by those in flight: a live view."""
        self._allocations.expire()
        return self._allocations.allocated

    def in_flight(self, uid: str) -> Allocation | None:
        """Return the allocation of a claim that is reserved in memory and not written yet."""
        return self._allocations.in_flight(uid)

    def shared_by(self, group: fw.GroupKey, uid: str) -> Allocation | None:
        """Return the allocation of a claim in flight that another pod of this group has reserved."""
        return self._allocations.shared_by(group, uid)

    def reserve(self, claim: ResourceClaim, group: fw.GroupKey | None = None) -> Allocation:
        """Take the devices of an allocated claim that is not written yet; return the allocation that counts."""
        return self._allocations.reserve(claim, group)

    def release(self, uid: str, *, is_written: bool = True) -> None:
        """Forget a pod's reservation, which was written or was not needed after all."""
        self._allocations.release(uid, is_written=is_written)

    def created(self, uid: str, claim: ResourceClaim) -> None:
        """Go on with the claim of this UID, in flight, as the object that was created for it."""
        self._allocations.created(uid, claim)

    def assume_created(self, claim: ResourceClaim) -> None:
        """Take the API server's answer to the creation of a claim; the watch may not show the claim yet."""
        self._allocations.assume_created(claim)

    def assume(self, claim: ResourceClaim) -> None:
        """Take what the API server answered for the newest version, until the watch has it."""
        self._allocations.assume(claim)


def catalog_of(handle: fw.Handle) -> DeviceCatalog:
    """Return the scheduler's catalog, with the allocations in flight that its profiles share."""
    gates = DeviceGates(handle.feature_gates)
    return handle.shared.get(DeviceCatalog, lambda: DeviceCatalog(handle.objects, gates))
