"""Filter: whether a kubelet with the policy single-numa-node finds a NUMA node for each container, or for the pod.

Rule: pkg/noderesourcetopology/filter.go of scheduler-plugins. What a container takes is taken from the first zone that
has all of it, as a kubelet does; init containers that end give it back before the next one starts.
"""

from typing import Final

import numpy as np

from plugins.contrib.node_resource_topology.requests import Amounts, Asked, is_numa_affine, may_be_of_the_host
from plugins.contrib.node_resource_topology.zones import (
    BY_CONTAINER,
    BY_POD,
    INVALID,
    MISSING,
    Grid,
    Marks,
    ZoneRows,
)
from scheduler import framework as fw
from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY

ALIGNED: Final = 0
NO_DATA: Final = 1
NO_INIT_CONTAINER: Final = 2
NO_CONTAINER: Final = 3
NO_POD: Final = 4

ALWAYS_LISTED: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""Every node counts as having these, however much: whether it is enough is NodeResourcesFit's business. What else a
node does not have, none of its zones has. Rule: filter.go (resourcesAvailableInAnyNUMANodes), util.ResourceList."""

REASONS: Final = {
    NO_DATA: fw.unschedulable("invalid node topology data"),
    NO_INIT_CONTAINER: fw.unschedulable("cannot align init container"),
    NO_CONTAINER: fw.unschedulable("cannot align container"),
    NO_POD: fw.unschedulable("cannot align pod"),
}


def codes(wanted: Asked, zones: ZoneRows, allocatable: dict[str, fw.Int64Column]) -> fw.Int32Column:
    """Return for each row why it is no good, or ALIGNED. `allocatable`: of the nodes, for all that is asked for."""
    found = np.zeros(len(zones.kinds), np.int32)
    found[zones.kinds == INVALID] = NO_DATA
    by_pod = np.flatnonzero(zones.kinds == BY_POD)
    if len(by_pod):
        fits = _Fits(wanted, zones, allocatable, by_pod)
        found[by_pod] = np.where(fits.take(wanted.whole), ALIGNED, NO_POD)
    by_container = np.flatnonzero(zones.kinds == BY_CONTAINER)
    if len(by_container):
        found[by_container] = _containers(wanted, _Fits(wanted, zones, allocatable, by_container))
    return found


def _containers(wanted: Asked, fits: "_Fits") -> fw.Int32Column:
    result = np.zeros(len(fits.rows), np.int32)
    phases = (
        (wanted.init, NO_INIT_CONTAINER, False),
        (wanted.sidecars, NO_INIT_CONTAINER, True),
        (wanted.containers, NO_CONTAINER, True),
    )
    for containers, code, keeps in phases:
        for amounts in containers:
            good = fits.take(amounts) if keeps else fits.would_take(amounts)
            result[(result == ALIGNED) & ~good] = code
    return result


class _Fits:
    """The free amounts in the zones of some rows, while containers take their share."""

    def __init__(self, wanted: Asked, zones: ZoneRows, allocatable: dict[str, fw.Int64Column], rows: fw.Rows) -> None:
        self.rows = rows
        self._guaranteed = wanted.guaranteed
        some: slice | fw.Rows = slice(None) if len(rows) == len(zones.kinds) else rows
        self._exists = zones.exists[:, some]
        self._left: dict[str, Grid] = {name: grid[:, some] for name, grid in zones.available.items()}
        self._allocatable = {name: column[some] for name, column in allocatable.items()}

    def would_take(self, amounts: Amounts) -> Marks:
        """Return by row whether there is a zone for it."""
        return self._good(amounts)[1]

    def take(self, amounts: Amounts) -> Marks:
        """The same, and take it from the first such zone."""
        suitable, good = self._good(amounts)
        if suitable.shape[0]:
            chosen = np.flatnonzero(good & suitable.any(axis=0))
            first = suitable[:, chosen].argmax(axis=0)
            for name, amount in amounts:
                grid = self._left.get(name)
                if grid is not None:
                    before = grid[first, chosen]
                    grid[first, chosen] = np.where(before == MISSING, MISSING, np.maximum(before - amount, 0))
        return good

    def _good(self, amounts: Amounts) -> tuple[Marks, Marks]:
        suitable = self._exists.copy()
        good = np.ones(len(self.rows), np.bool_)
        for name, amount in amounts:
            if name not in ALWAYS_LISTED:
                good &= self._allocatable[name] > 0
            grid = self._left.get(name)
            if grid is None:
                good &= may_be_of_the_host(name)
                continue
            reported = grid != MISSING
            enough = reported if is_numa_affine(name) and not self._guaranteed else reported & (grid >= amount)
            if may_be_of_the_host(name):
                enough |= ~reported.any(axis=0)
            else:
                good &= enough.any(axis=0)
            suitable &= enough
            good &= suitable.any(axis=0) | (may_be_of_the_host(name) & ~reported.any(axis=0))
        return suitable, good
