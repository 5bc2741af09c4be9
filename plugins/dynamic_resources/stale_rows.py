"""The rows for which a column about devices has to be computed again."""

from collections.abc import Collection
from typing import Final

import numpy as np

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.gates import OPTIONAL_OPERATIONS
from plugins.shared.column_math import grown
from scheduler import framework as fw

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
