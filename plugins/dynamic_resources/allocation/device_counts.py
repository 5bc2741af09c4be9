"""The devices of the DeviceClasses behind extended resources on each node, all and allocated: for Score.

Counted as kube-scheduler does for the score, which is simpler than what can be allocated: all slices count, whatever
their pool's generation, and taints keep no device out. Rule: noderesources/resource_allocation.go at v1.36.3
(calculateDRAResourceTotals).
"""

import logging
from collections.abc import Iterable, Sequence

import numpy as np

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog, StaleRows, catalog_of
from plugins.dynamic_resources.allocation.pools import DevicesError, is_for_node
from plugins.dynamic_resources.allocation.requests import class_selects
from plugins.dynamic_resources.extended.resources import (
    ExtendedResources,
    extended_resources_of,
    is_dra_extended_resource,
)
from plugins.shared.column_math import grown
from scheduler import framework as fw
from scheduler.api.devices import DeviceClass
from scheduler.api.objects import Node

_logger = logging.getLogger(__name__)


class DeviceCounts:
    """The devices of those resources that count in the score of one profile's plugin."""

    def __init__(self, handle: fw.Handle, resources: frozenset[str]) -> None:
        self.resources = resources
        """Those for which a class may stand."""
        self._extended: ExtendedResources = extended_resources_of(handle)
        self._catalog = catalog_of(handle)
        self._columns = handle.columns
        self._counted: dict[str, _CountedClass] = {}

    def of(self, resource: str, nodes: fw.NodeColumns, rows: fw.Rows) -> tuple[fw.Int64Column, fw.Int64Column] | None:
        """Return for each of `rows` how many devices there are, and are taken; None if no class stands for it."""
        device_class = self._extended.class_of(resource)
        if device_class is None or resource not in self.resources:
            return None
        counted = self._counted.get(resource)
        if counted is None or counted.device_class is not device_class:
            counted = self._counted[resource] = _CountedClass(device_class, self._catalog, self._columns)
        return counted.of(nodes, rows)


class _CountedClass:
    def __init__(self, device_class: DeviceClass, catalog: DeviceCatalog, columns: fw.StoredColumns) -> None:
        self.device_class = device_class
        self._catalog = catalog
        self._stale = StaleRows(catalog, columns)
        self._there = np.zeros(0, np.int64)
        self._taken = np.zeros(0, np.int64)

    def of(self, nodes: fw.NodeColumns, rows: fw.Rows) -> tuple[fw.Int64Column, fw.Int64Column]:
        self._there, self._taken = grown(self._there, nodes.size), grown(self._taken, nodes.size)
        for row in self._stale.among(nodes, rows).tolist():
            if nodes.in_use[row]:
                self._there[row], self._taken[row] = self._count(nodes.info(row).node)
                self._stale.computed(row)
        return self._there[rows], self._taken[rows]

    def _count(self, node: Node) -> tuple[int, int]:
        """Count for one node; nothing counts if a selector fails for one of its devices."""
        there = taken = 0
        allocated = self._catalog.allocations.allocated()
        try:
            for view in self._catalog.slices.slices_for(node):
                for device in view.devices:
                    if view.slice.spec.per_device_node_selection and not is_for_node(node, device.device):
                        continue
                    if class_selects(self.device_class, device):
                        there += 1
                        taken += allocated.has(device.id)
        except DevicesError as error:
            fields = {"node": node.name, "deviceClass": self.device_class.name, "err": str(error)}
            _logger.error("Failed to calculate DRA resource capacity and allocated", extra=fields)
            return 0, 0
        return there, taken


def device_counts(handle: fw.Handle, resources: Iterable[str]) -> DeviceCounts | None:
    """Return what counts the devices for a score of these resources; None if no class can stand for one."""
    names = frozenset(filter(is_dra_extended_resource, resources))
    return DeviceCounts(handle, names) if names else None


def objects_read(resources: Iterable[str]) -> Sequence[str]:
    """Return the kinds of objects that `device_counts` reads for them."""
    if any(map(is_dra_extended_resource, resources)):
        return fw.DEVICE_CLASS, fw.RESOURCE_SLICE, fw.RESOURCE_CLAIM
    return ()
