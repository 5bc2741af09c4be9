"""The NUMA nodes of all nodes, by columns: a column for each place, as numpy is quick along the rows of the nodes.

A node's NUMA nodes have its places in the order of their ids.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from plugins.contrib.node_resource_topology.topology import POD_SCOPE, NodeTopology

Grid: TypeAlias = npt.NDArray[np.int64]
Marks: TypeAlias = npt.NDArray[np.bool_]

MAX_RESOURCES: Final = 64
"""Resources with columns, over all nodes: 8 bytes for each zone of each node. Others count as not reported."""

MISSING: Final = -1
"""In the place of an amount: the zone does not report the resource, or there is no such zone."""

INVALID: Final = 0
UNKNOWN: Final = 1
INDIFFERENT: Final = 2
BY_CONTAINER: Final = 3
BY_POD: Final = 4


class ZoneRows(NamedTuple):
    """The rows that were asked for."""

    kinds: npt.NDArray[np.int8]
    """INVALID where what is known may be wrong, UNKNOWN without an object, else by policy and scope."""

    exists: Marks
    """Place, row: whether there is a zone."""

    available: Mapping[str, Grid]
    """Resource → place, row: how much a zone has left, or MISSING."""


class ZoneTable:
    """What is available in the zones, as columns that grow with nodes, zones and resources."""

    def __init__(self) -> None:
        self._rows = self._places = 0
        self._kinds: npt.NDArray[np.int8] = np.full(0, UNKNOWN, np.int8)
        self._exists: Marks = np.zeros((0, 0), np.bool_)
        self._available: dict[str, Grid] = {}

    def set(self, row: int, topology: NodeTopology | None, *, valid: bool = True) -> None:
        """Put in what a node's object says, less what was taken off."""
        zones = topology.zones if topology is not None else ()
        self.grow(row + 1, len(zones))
        self._kinds[row] = INVALID if not valid else kind_of(topology)
        self._exists[:, row] = False
        self._exists[: len(zones), row] = True
        for grid in self._available.values():
            grid[:, row] = MISSING
        for place, zone in enumerate(zones):
            for name, amount in zone.available.items():
                if name not in self._available:
                    if len(self._available) >= MAX_RESOURCES:
                        continue
                    self._available[name] = np.full((self._places, self._rows), MISSING, np.int64)
                self._available[name][place, row] = max(amount, 0)

    def of(self, rows: npt.NDArray[np.intp], size: int) -> ZoneRows:
        """Return copies. `size`: of the node table."""
        self.grow(size)
        return ZoneRows(
            self._kinds[rows],
            self._exists[:, rows],
            {name: grid[:, rows] for name, grid in self._available.items()},
        )

    def grow(self, rows: int, places: int = 0) -> None:
        """Have room for so many rows, and zones of each."""
        if rows <= self._rows and places <= self._places:
            return
        rows, places = max(rows, self._rows), max(places, self._places)
        shape = ((0, places - self._places), (0, rows - self._rows))
        self._kinds = np.pad(self._kinds, shape[1], constant_values=UNKNOWN)
        self._exists = np.pad(self._exists, shape, constant_values=False)
        self._available = {name: np.pad(grid, shape, constant_values=MISSING) for name, grid in self._available.items()}
        self._rows, self._places = rows, places


def kind_of(topology: NodeTopology | None) -> int:
    if topology is None:
        return UNKNOWN
    if not topology.is_single_numa:
        return INDIFFERENT
    return BY_POD if topology.scope == POD_SCOPE else BY_CONTAINER
