"""Drivers on each node, and the in-tree plugins that they have replaced, as CSINodes list them."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from plugins.shared.column_math import grown, pick
from scheduler import framework as fw
from scheduler.api.storage.volumes import MIGRATED_PLUGINS, CSINode


def migrated_plugins(annotations: Mapping[str, str]) -> str:
    """Return which in-tree kinds of volume the CSI drivers of a node serve, according to its CSINode: `a,b`."""
    return annotations.get(MIGRATED_PLUGINS, "")


def is_migrated(plugin: str, node_name: str, objects: fw.ObjectLister) -> bool:
    """Return whether a driver on the node serves the volumes of an in-tree plugin."""
    csi_node: CSINode | None = objects.get(fw.CSI_NODE, node_name)
    return csi_node is not None and migrates(csi_node, plugin)


def migrates(csi_node: CSINode, plugin: str) -> bool:
    """Return whether a driver on a node serves the volumes of an in-tree plugin."""
    return plugin in migrated_plugins(csi_node.annotations).split(",")


def has_driver(csi_node: CSINode, driver: str) -> bool:
    """Return whether a driver is installed on a node."""
    return any(each.name == driver for each in csi_node.drivers)


class CsiNodeColumns:
    """A column for each driver or plugin that was asked for. A look-up costs as much as there were changes."""

    def __init__(self, handle: fw.Handle, says: Callable[[CSINode, str], bool] = migrates) -> None:
        """`says`: whether a CSINode says so of a driver or plugin."""
        self._says = says
        self._nodes = handle.nodes
        self._objects = handle.objects
        self._columns: dict[str, fw.BoolColumn] = {}
        self._changes = handle.columns.changes((fw.Aspect.VOLUMES,))
        self._stale: set[int] = set()
        self._objects.listen(fw.CSI_NODE, self._changed, self._columns.clear)  # each is computed again on demand

    def of(self, name: str, rows: fw.Rows) -> fw.BoolColumn:
        """Return on which of `rows` it is so of the driver or plugin of that name."""
        self._refresh()
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = np.zeros(self._nodes.size, np.bool_)
            self._write(name, column, range(self._nodes.size))
        return pick(column, rows)

    def _refresh(self) -> None:
        changed = self._changes.stale_rows()
        self._stale.update(range(self._nodes.size) if changed is None else changed)
        stale, self._stale = self._stale, set()
        for name, column in self._columns.items():
            self._columns[name] = column = grown(column, self._nodes.size)
            self._write(name, column, stale)

    def _write(self, name: str, column: fw.BoolColumn, rows: Iterable[int]) -> None:
        names, in_use = self._nodes.names(), self._nodes.in_use
        for row in rows:
            csi_node: CSINode | None = self._objects.get(fw.CSI_NODE, names[row]) if in_use[row] else None
            column[row] = csi_node is not None and self._says(csi_node, name)

    def _changed(self, old: CSINode | None, new: CSINode | None) -> None:
        csi_node = new or old
        # A node that is added later is in the change log then.
        row = None if csi_node is None else self._nodes.row_of(csi_node.name)
        if row is not None:
            self._stale.add(row)
