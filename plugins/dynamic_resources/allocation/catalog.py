"""Everything known of devices: the pools of each node, the allocated devices, and the claims for extended resources.

One catalog for all profiles of a scheduler. The watch keeps it up to date.
"""

from typing import Final

from plugins.dynamic_resources.allocation.allocations import Allocations
from plugins.dynamic_resources.allocation.slices import NodeSlices
from plugins.dynamic_resources.extended.claims import ExtendedClaims
from plugins.dynamic_resources.gates import DeviceGates
from scheduler import framework as fw
from scheduler.api.devices import DeviceClass, ResourceClaim

_CHANGES: Final = 8192
DEFAULT_GATES: Final = DeviceGates()


class DeviceCatalog:
    """The indices over the objects of devices."""

    def __init__(self, objects: fw.ObjectLister, gates: DeviceGates = DEFAULT_GATES) -> None:
        self._objects = objects
        self.gates = gates
        self.changed: fw.BoundedLog[str] = fw.BoundedLog(_CHANGES)
        """The nodes for which it matters that slices, or allocations of devices, changed."""
        self.slices = NodeSlices(objects, self.changed, gates)
        self.allocations = Allocations(objects, self.slices.taken_or_freed)
        self.extended_claims = ExtendedClaims(objects)

    def device_class(self, name: str) -> DeviceClass | None:
        """Return a class: the same object for as long as the class is unchanged."""
        found: DeviceClass | None = self._objects.get(fw.DEVICE_CLASS, name)
        return found

    def extended_claim_for(self, pod: fw.Pod) -> ResourceClaim | None:
        """Return the claim that an earlier attempt made for the pod's extended resources."""
        name = self.extended_claims.name_for(pod)
        return None if name is None else self.allocations.claim(pod.namespace, name)


def catalog_of(handle: fw.Handle) -> DeviceCatalog:
    """Return the scheduler's catalog, with the allocations in flight that its profiles share."""
    gates = DeviceGates(handle.feature_gates)
    return handle.shared.get(DeviceCatalog, lambda: DeviceCatalog(handle.objects, gates))
