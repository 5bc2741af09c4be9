"""The NUMA nodes of all nodes, by columns: a column for each place, as numpy is quick along the rows of the nodes.

A node's NUMA nodes have its places in the order of their ids.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from plugins.contrib.node_resource_topology.topology import POD_SCOPE, NodeTopology, Zone

Grid: TypeAlias = npt.NDArray[np.int64]
Marks: TypeAlias = npt.NDArray[np.bool_]

MAX_COLUMNS: Final = 64
"""Resources with columns: 8 bytes for each zone of each node."""

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
    """Resource → place, row: how much a zone has left, or MISSING. Only of requested resources that any zone has."""


class ZoneTable:
    """The available amounts in the zones, as columns that grow with nodes and zones.

    A resource has columns if a zone reports it and a pod has asked for it. So neither costs anything alone, however
    many resources a pod asks for or an object reports.
    """

    def __init__(self) -> None:
        self._rows = self._places = 0
        self._zones: list[Sequence[Zone]] = []
        """Of each row, less what was taken off."""
        self._reports: dict[str, int] = {}
        """Resource → how many zones report it."""
        self._kinds: npt.NDArray[np.int8] = np.full(0, UNKNOWN, np.int8)
        self._exists: Marks = np.zeros((0, 0), np.bool_)
        self._available: dict[str, Grid] = {}
        """By resource, the one that was asked for last at the end."""

    def set(self, row: int, topology: NodeTopology | None, *, valid: bool = True) -> None:
        """Put in what a node's object says, less what was taken off."""
        zones = topology.zones if topology is not None else ()
        self.grow(row + 1, len(zones))
        self._count(self._zones[row], -1)
        self._count(zones, 1)
        self._zones[row] = zones
        self._kinds[row] = INVALID if not valid else kind_of(topology)
        self._exists[:, row] = False
        self._exists[: len(zones), row] = True
        for name, grid in self._available.items():
            grid[:, row] = MISSING
            self._fill(grid, name, row)

    def of(self, rows: npt.NDArray[np.intp], size: int, names: Iterable[str]) -> ZoneRows:
        """Return copies, with the columns of these resources. `size`: of the node table."""
        self.grow(size)
        available = {name: self._grid(name)[:, rows] for name in names if name in self._reports}
        return ZoneRows(self._kinds[rows], self._exists[:, rows], available)

    def grow(self, rows: int, places: int = 0) -> None:
        """Grow the columns to so many rows, and zones of each."""
        if rows <= self._rows and places <= self._places:
            return
        rows, places = max(rows, self._rows), max(places, self._places)
        shape = ((0, places - self._places), (0, rows - self._rows))
        self._zones += [()] * (rows - self._rows)
        self._kinds = np.pad(self._kinds, shape[1], constant_values=UNKNOWN)
        self._exists = np.pad(self._exists, shape, constant_values=False)
        self._available = {name: np.pad(grid, shape, constant_values=MISSING) for name, grid in self._available.items()}
        self._rows, self._places = rows, places

    def _grid(self, name: str) -> Grid:
        """The columns of a resource. New ones replace those that were not used for longest."""
        grid = self._available.pop(name, None)
        if grid is None:
            if len(self._available) >= MAX_COLUMNS:
                del self._available[next(iter(self._available))]
            grid = np.full((self._places, self._rows), MISSING, np.int64)
            for row in range(self._rows):
                self._fill(grid, name, row)
        self._available[name] = grid
        return grid

    def _count(self, zones: Iterable[Zone], sign: int) -> None:
        for zone in zones:
            for name in zone.available:
                count = self._reports.pop(name, 0) + sign
                if count:
                    self._reports[name] = count

    def _fill(self, grid: Grid, name: str, row: int) -> None:
        for place, zone in enumerate(self._zones[row]):
            amount = zone.available.get(name)
            if amount is not None:
                grid[place, row] = amount


def kind_of(topology: NodeTopology | None) -> int:
    if topology is None:
        return UNKNOWN
    if not topology.is_single_numa:
        return INDIFFERENT
    return BY_POD if topology.scope == POD_SCOPE else BY_CONTAINER
