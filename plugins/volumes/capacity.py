"""Whether there is enough storage for volumes still to be provisioned, by the CSIStorageCapacity objects.

Rule: volumebinding/binder.go (hasEnoughCapacity, capacitySufficient, nodeHasAccess) at v1.37.2. Of several that
are sufficient for a node kube-scheduler takes any; here the first by namespace and name counts.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

import msgspec
import numpy as np

from plugins.shared.column_math import pick
from plugins.shared.node_matching import has_label
from plugins.volumes.index import bytes_of
from plugins.volumes.scoring import UNKNOWN, ClaimStorage, Places
from scheduler import framework as fw
from scheduler.api.label_selectors import IN, Selector, parse_label_selector
from scheduler.api.quantities.quantity import value_of
from scheduler.api.selectors import LabelRequirement
from scheduler.api.storage.volumes import CSIDriver, CSIStorageCapacity, PersistentVolumeClaim, StorageClass

_logger = logging.getLogger(__name__)


MAX_SIZES: Final = 1_000
"""Classes and sizes for which the nodes with enough storage are cached."""


class _StorageCapacity(msgspec.Struct, frozen=True, eq=False):
    order: tuple[str, str]
    limit: int
    """Bytes that one volume may have."""
    size: int
    """Bytes in all; UNKNOWN if only the limit is known."""
    selector: Selector
    """The nodes that can access it."""


class _AccessibleNodes(msgspec.Struct, eq=False):
    """The nodes that can access enough storage, and which they access first."""

    sizes: fw.Int64Column
    """Of each capacity, in order; UNKNOWN at the end."""
    labels: dict[str, dict[str, int]]
    """Label → value → its first capacity. Drivers for local disks have an object for each node."""
    other_selectors: dict[Selector, int]
    by_code: dict[str, tuple[Sequence[str], int, Places]] = {}
    """Label → its values when this was computed, how many there were, and the first capacity for the code of each."""

    def enough(self, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
        """Return which of `rows` can access any."""
        found = np.zeros(len(rows), np.bool_)
        for label, values in self.labels.items():
            found |= has_label(LabelRequirement(label, IN, frozenset(values)), nodes, rows)
        for selector in self.other_selectors:
            found |= _selected(selector, nodes, rows)
        return found

    def places(self, nodes: fw.NodeColumns, rows: fw.Rows) -> Places:
        """Return for each of `rows` the first capacity that it can access, as a place in `sizes`."""
        found = np.full(len(rows), len(self.sizes) - 1, np.int32)
        for label in self.labels:
            np.minimum(found, self._by_code(label, nodes)[pick(nodes.label_codes(label), rows)], out=found)
        for selector, place in self.other_selectors.items():
            selected = _selected(selector, nodes, rows)
            found[selected] = np.minimum(found[selected], place)
        return found

    def _by_code(self, label: str, nodes: fw.NodeColumns) -> Places:
        values = nodes.label_values(label)
        known = self.by_code.get(label)
        if known is not None and known[0] is values and known[1] == len(values):
            return known[2]
        places, last = self.labels[label], len(self.sizes) - 1
        column = np.array([places.get(value, last) for value in values], np.int32)
        column[0] = last  # stands for nodes without the label
        self.by_code[label] = values, len(values), column
        return column


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
        accessible = self._accessible_for(claim, storage_class)
        return None if accessible is None else accessible.enough(nodes, rows)

    def storage(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> ClaimStorage | None:
        """Return what `rows` can reach of enough storage for the claim; None if it is not tracked."""
        accessible = self._accessible_for(claim, storage_class)
        if accessible is None:
            return None
        return ClaimStorage(storage_class.name, requested_by(claim), accessible.sizes, accessible.places(nodes, rows))

    def _accessible_for(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> _AccessibleNodes | None:
        resources = claim.spec.resources
        requests = (None if resources is None else resources.requests) or {}
        if "storage" not in requests:
            return None
        driver: CSIDriver | None = self._objects.get(fw.CSI_DRIVER, storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        size = requested_by(claim)
        key = storage_class.name, size
        accessible = self._accessible.get(key)
        if accessible is None:
            if len(self._accessible) == MAX_SIZES:
                self._accessible.clear()
            capacities = self._capacities.get(storage_class.name, {}).values()
            sufficient = sorted((each for each in capacities if each.limit >= size), key=attrgetter("order"))
            accessible = self._accessible[key] = _accessible_from(sufficient)
        return accessible

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


def requested_by(claim: PersistentVolumeClaim) -> int:
    """Return how many bytes a claim asks for."""
    resources = claim.spec.resources
    return bytes_of(None if resources is None else resources.requests)


def _storage_capacity(capacity: CSIStorageCapacity) -> _StorageCapacity | None:
    limit = volume_limit(capacity)
    if limit is None or capacity.node_topology is None:
        return None
    try:
        size = UNKNOWN if capacity.capacity is None else value_of(capacity.capacity)
        order = capacity.metadata.namespace, capacity.metadata.name
        return _StorageCapacity(order, limit, size, parse_label_selector(capacity.node_topology))
    except ValueError as error:
        fields = {"capacity": f"{capacity.metadata.namespace}/{capacity.metadata.name}", "err": str(error)}
        _logger.error("A CSIStorageCapacity has no valid nodeTopology", extra=fields)
        return None


def _accessible_from(capacities: Sequence[_StorageCapacity]) -> _AccessibleNodes:
    labels: defaultdict[str, dict[str, int]] = defaultdict(dict)
    other_selectors: dict[Selector, int] = {}
    for place, capacity in enumerate(capacities):
        requirements = capacity.selector.requirements
        if len(requirements) == 1 and requirements[0].operator == IN:
            for value in requirements[0].values:
                labels[requirements[0].key].setdefault(value, place)
        else:
            other_selectors.setdefault(capacity.selector, place)
    sizes = np.array([*(capacity.size for capacity in capacities), UNKNOWN], np.int64)
    return _AccessibleNodes(sizes, dict(labels), other_selectors)


def _selected(selector: Selector, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
    matching = np.full(len(rows), not selector.is_nothing)
    for key, operator, values in selector.requirements:
        matching &= has_label(LabelRequirement(key, operator, values), nodes, rows)
    return matching
