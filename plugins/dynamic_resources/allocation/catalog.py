"""Everything known of devices: the pools of each node, the allocated devices, and the claims for extended resources.

One catalog for all profiles of a scheduler. The watch keeps it up to date.
"""

from collections.abc import Collection
from typing import Final

import numpy as np

from plugins.dynamic_resources.allocation.allocations import Allocations
from plugins.dynamic_resources.allocation.slices import NodeSlices
from plugins.dynamic_resources.extended.claims import ExtendedClaims
from plugins.dynamic_resources.gates import OPTIONAL_OPERATIONS, DeviceGates
from plugins.shared.column_math import grown
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


_ASPECTS: Final = (fw.Aspect.NAME, fw.Aspect.LABELS)
"""The aspects of a node that slices select by; it is also asked which operations of drivers it can do without."""


class StaleRows:
    """Rows whose node, slices, or devices that are taken of these, changed since they were computed."""

    __slots__ = ("_catalog", "_changes", "_flags", "_seen")

    def __init__(self, catalog: DeviceCatalog, columns: fw.StoredColumns) -> None:
        """Every row is stale at first."""
        self._catalog = catalog
        asks_nodes = OPTIONAL_OPERATIONS in catalog.gates.names
        self._changes = columns.changes((*_ASPECTS, fw.Aspect.NODE) if asks_nodes else _ASPECTS)
        self._seen = catalog.changed.position
        self._flags = np.zeros(0, np.bool_)

    def among(self, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Rows:
        """Return those of `rows` that are stale by now."""
        self._flags = grown(self._flags, nodes.size, True)
        self._mark(self._changes.stale_rows())
        changed = self._catalog.changed
        if changed.position != self._seen:
            names = changed.since(self._seen)
            self._mark(None if names is None else [row for row in map(nodes.row_of, names) if row is not None])
            self._seen = changed.position
        return rows[self._flags[rows]]

    def computed(self, rows: int | list[int]) -> None:
        """Note that these are not stale any more."""
        self._flags[rows] = False

    def _mark(self, rows: Collection[int] | None) -> None:
        if rows is None:
            self._flags[:] = True
        else:
            for row in rows:
                self._flags[row] = True
