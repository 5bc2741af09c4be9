"""Whether there is room for a volume that has still to be made, as CSIStorageCapacity objects tell.

Rule: volumebinding/binder.go (hasEnoughCapacity, capacitySufficient, nodeHasAccess) at v1.36.3.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from plugins.shared.node_matching import has_label
from plugins.volumes.index import storage_of
from scheduler import framework as fw
from scheduler.api.label_selectors import IN, Selector, parse_label_selector
from scheduler.api.quantity import parse_quantity, to_value
from scheduler.api.selectors import LabelRequirement
from scheduler.api.volumes import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass

_logger = logging.getLogger(__name__)


MAX_SIZES: Final = 1_000
"""Classes and sizes for which it is kept where there is enough."""


class _StorageCapacity(msgspec.Struct, frozen=True, eq=False):
    limit: int
    """Bytes that one volume can have."""
    selector: Selector
    """From which nodes."""


class _AccessibleNodes(msgspec.Struct, frozen=True, eq=False):
    """From which nodes there is enough."""

    labels: dict[str, frozenset[str]]
    """Label → values of which any will do. Drivers for local disks have an object for each node."""
    others: frozenset[Selector]


class CapacityIndex:
    """The room for further volumes, by class."""

    def __init__(self, objects: fw.ObjectLister) -> None:
        self._objects = objects
        self._rooms: defaultdict[str, dict[str, _StorageCapacity]] = defaultdict(dict)
        self._reach: dict[tuple[str, int], _AccessibleNodes] = {}
        """Class and bytes → what was worked out since the last change."""
        objects.listen(fw.CSI_STORAGE_CAPACITY, self._changed)

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
        size = to_value(storage_of(requests))
        key = storage_class.name, size
        reach = self._reach.get(key)
        if reach is None:
            if len(self._reach) == MAX_SIZES:
                self._reach.clear()
            rooms = self._rooms.get(storage_class.name, {}).values()
            reach = self._reach[key] = _reach_of(room.selector for room in rooms if room.limit >= size)
        found = np.zeros(len(rows), np.bool_)
        for label, values in reach.labels.items():
            found |= has_label(LabelRequirement(label, IN, values), nodes, rows)
        for selector in reach.others:
            found |= _selected(selector, nodes, rows)
        return found

    def _changed(self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> None:
        self._reach.clear()
        if old is not None:
            of_class = self._rooms[old.storage_class_name]
            of_class.pop(old.metadata.uid, None)
            if not of_class:
                del self._rooms[old.storage_class_name]
        room = None if new is None else _room_of(new)
        if new is not None and room is not None:
            self._rooms[new.storage_class_name][new.metadata.uid] = room


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """Return how many bytes one volume can have there; None if that is not known."""
    # The size of the largest volume says more than the total space left.
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    try:
        return None if limit is None else to_value(parse_quantity(limit))
    except ValueError:
        return None


def _room_of(capacity: CSIStorageCapacity) -> _StorageCapacity | None:
    limit = volume_limit(capacity)
    if limit is None or capacity.node_topology is None:
        return None
    try:
        return _StorageCapacity(limit, parse_label_selector(capacity.node_topology))
    except ValueError as error:
        fields = {"capacity": f"{capacity.metadata.namespace}/{capacity.metadata.name}", "err": str(error)}
        _logger.error("A CSIStorageCapacity has no valid nodeTopology", extra=fields)
        return None


def _reach_of(selectors: Iterable[Selector]) -> _AccessibleNodes:
    labels: defaultdict[str, set[str]] = defaultdict(set)
    others: set[Selector] = set()
    for selector in selectors:
        if len(selector.requirements) == 1 and selector.requirements[0].operator == IN:
            labels[selector.requirements[0].key] |= selector.requirements[0].values
        else:
            others.add(selector)
    return _AccessibleNodes({key: frozenset(values) for key, values in labels.items()}, frozenset(others))


def _selected(selector: Selector, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    matching = np.full(len(rows), not selector.is_nothing)
    for key, operator, values in selector.requirements:
        matching &= has_label(LabelRequirement(key, operator, values), nodes, rows)
    return matching
