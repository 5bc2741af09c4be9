"""Enough storage for volumes that are still to be provisioned, by the CSIStorageCapacity objects.

Rule: volumebinding/binder.go (hasEnoughCapacity, capacitySufficient, nodeHasAccess) at v1.36.3.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from plugins.shared.node_matching import has_label
from scheduler import framework as fw
from scheduler.api.label_selectors import IN, Selector, parse_label_selector
from scheduler.api.quantity import value_of
from scheduler.api.selectors import LabelRequirement
from scheduler.api.volumes import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass

_logger = logging.getLogger(__name__)


MAX_SIZES: Final = 1_000
"""Classes and sizes for which the nodes with enough storage are cached."""


class _StorageCapacity(msgspec.Struct, frozen=True, eq=False):
    limit: int
    """Bytes that one volume may have."""
    selector: Selector
    """The nodes that can access it."""


class _AccessibleNodes(msgspec.Struct, frozen=True, eq=False):
    """The nodes that can access enough storage."""

    labels: dict[str, frozenset[str]]
    """Label → values, any of which will do. Drivers for local disks have an object for each node."""
    other_selectors: frozenset[Selector]


class CapacityIndex:
    """The storage for further volumes, by class."""

    def __init__(self, objects: fw.ObjectLister) -> None:
        self._objects = objects
        self._capacities: defaultdict[str, dict[str, _StorageCapacity]] = defaultdict(dict)
        self._accessible: dict[tuple[str, int], _AccessibleNodes] = {}
        """Class and bytes → what was computed since the last change."""
        objects.listen(fw.CSI_STORAGE_CAPACITY, self._changed, self._reset)

    def enough(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.BoolColumn | None:
        """Return which of `rows` can reach enough storage for the claim; None if all can, or if it is not tracked."""
        resources = claim.spec.resources
        requests = (None if resources is None else resources.requests) or {}
        if "storage" not in requests:
            return None
        driver: CSIDriver | None = self._objects.get(fw.CSI_DRIVER, storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        size = _bytes_of(requests["storage"])
        key = storage_class.name, size
        accessible = self._accessible.get(key)
        if accessible is None:
            if len(self._accessible) == MAX_SIZES:
                self._accessible.clear()
            capacities = self._capacities.get(storage_class.name, {}).values()
            accessible = self._accessible[key] = _accessible_from(
                capacity.selector for capacity in capacities if capacity.limit >= size
            )
        enough = np.zeros(len(rows), np.bool_)
        for label, values in accessible.labels.items():
            enough |= has_label(LabelRequirement(label, IN, values), nodes, rows)
        for selector in accessible.other_selectors:
            enough |= _selected(selector, nodes, rows)
        return enough

    def _reset(self) -> None:
        self._capacities.clear()
        self._accessible.clear()

    def _changed(self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> None:
        self._accessible.clear()
        if old is not None:
            of_class = self._capacities[old.storage_class_name]
            of_class.pop(old.metadata.uid, None)
            if not of_class:
                del self._capacities[old.storage_class_name]
        capacity = None if new is None else _storage_capacity(new)
        if new is not None and capacity is not None:
            self._capacities[new.storage_class_name][new.metadata.uid] = capacity


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return how many bytes one volume can have there; None if that is not known."""
    # The size of the largest volume says more than the total space left.
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return None if limit is None else value_of(limit)
    except ValueError:
        return None


def _bytes_of(storage: str | int | float) -> int:
    try:
        return value_of(storage)
    except ValueError:
        return 0


def _storage_capacity(capacity: CSIStorageCapacity) -> _StorageCapacity | None:
    limit = volume_limit(capacity)
    if limit is None or capacity.node_topology is None:
        return None
    try:
        return _StorageCapacity(limit, parse_label_selector(capacity.node_topology))
    except ValueError as error:
        fields = {"capacity": f"{capacity.metadata.namespace}/{capacity.metadata.name}", "err": str(error)}
        _logger.error("A CSIStorageCapacity has no valid nodeTopology", extra=fields)
        return None


def _accessible_from(selectors: Iterable[Selector]) -> _AccessibleNodes:
    labels: defaultdict[str, set[str]] = defaultdict(set)
    other_selectors: set[Selector] = set()
    for selector in selectors:
        if len(selector.requirements) == 1 and selector.requirements[0].operator == IN:
            labels[selector.requirements[0].key] |= selector.requirements[0].values
        else:
            other_selectors.add(selector)
    return _AccessibleNodes({key: frozenset(values) for key, values in labels.items()}, frozenset(other_selectors))


def _selected(selector: Selector, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    matching = np.full(len(rows), not selector.is_nothing)
    for key, operator, values in selector.requirements:
        matching &= has_label(LabelRequirement(key, operator, values), nodes, rows)
    return matching
