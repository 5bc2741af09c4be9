"""The number of further volumes that each node can attach, by CSI driver.

Finding out what is behind a pod's volumes takes many look-ups, and most nodes are far from their limits. So a node is
first assumed to have as many volumes of each driver as its pods and VolumeAttachments have in all: an upper bound.
Where that leaves too few, they are counted one by one.

    ROUGH ──too few for some pod──► COUNTED ──pods come or go, objects that were looked up change──► ROUGH

A decision costs as much as there were changes, whatever the number of nodes.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np

from plugins.shared.column_math import grown, pick
from plugins.volumes.limits.csi import Attached, CsiVolumes, Reference
from plugins.volumes.limits.on_node import NO_VOLUMES, Excess, NodeCounter, NodeVolumes, limits_of
from scheduler import framework as fw
from scheduler.api.storage.volumes import CSINode, VolumeAttachment

_NO_LIMIT: Final = np.iinfo(np.int64).max
_NONE: Final[Mapping[str, VolumeAttachment]] = {}


class _NodeEntry(msgspec.Struct):
    """A node with a CSINode."""

    csi_node: CSINode
    limits: Mapping[str, int]
    counted: NodeVolumes = NO_VOLUMES
    """The last count, though pods may have come and gone since then."""


class AttachedVolumes:
    """The volumes attached to all nodes, kept up to date."""

    def __init__(self, handle: fw.Handle, volumes: CsiVolumes) -> None:
        self._nodes = handle.nodes
        self._objects = handle.objects
        self._counter = NodeCounter(handle.objects, volumes)
        self._by_row: dict[int, _NodeEntry] = {}
        self._known = np.zeros(0, np.bool_)
        self._is_counted = np.zeros(0, np.bool_)
        """Whether a row's last count is that of its pods now."""
        self._free: dict[str, fw.Int64Column] = {}
        """Driver → how many more volumes; a lower bound where the row is not counted."""
        self._uncountable: set[int] = set()
        self._users: RowsByKey[str] = RowsByKey()
        """Unique name of a volume → the rows whose last count has it."""
        self._dependents: RowsByKey[Reference] = RowsByKey()
        """An object → the rows whose last count looked it up."""
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}
        """Node → name → attachment."""
        self._changes = handle.columns.changes((fw.Aspect.VOLUMES,))
        self._stale = set(range(self._nodes.size))
        self._listen()

    # What is asked.

    def refresh(self) -> None:
        """Refresh the nodes that changed. Not within a what-if."""
        changed = self._changes.stale_rows()
        self._stale.update(range(self._nodes.size) if changed is None else changed)
        if len(self._known) < self._nodes.size:
            self._grow()
        if self._stale:
            # Not popped one by one: finding the next member of a set that was large is slow.
            stale, self._stale = self._stale, set()
            for row in stale:
                self._look_again(row)

    def known(self, rows: fw.Rows) -> fw.BoolColumn:
        """Which of `rows` have a CSINode."""
        return pick(self._known[: self._nodes.size], rows)

    def first_problem(self, rows: fw.Rows) -> str:
        """Return why the volumes cannot be counted on the first of `rows` where that is so; empty if there is none."""
        if not self._uncountable:
            return ""
        row = next((row for row in rows.tolist() if row in self._uncountable), None)
        return "" if row is None else self._by_row[row].counted.problem

    def exceeded(self, new: Attached, rows: fw.Rows) -> fw.BoolColumn | None:
        """Return which of `rows` cannot attach the volumes of a pending pod (None: all of them can).

        The volumes of all rows must be countable: see `first_problem`.
        """
        over = self._over(new, rows)
        if over is None:
            return None
        rough = over & ~pick(self._is_counted[: self._nodes.size], rows)
        if rough.any():
            for row in rows[rough].tolist():
                self._count(row)
            over = self._over(new, rows)
            if over is None:
                return None
        # A volume that a pod there uses already does not count twice.
        for row in {row for name in new for row in self._users.of(name)}:
            place = int(np.searchsorted(rows, row))
            if place < len(rows) and rows[place] == row and over[place]:
                entry = self._by_row[row]
                over[place] = entry.counted.exceeds(new, entry.limits)
        return over

    def has_capacity(self, new: Attached, more: fw.Int64Column, rows: fw.Rows) -> fw.BoolColumn:
        """Return which of `rows` can certainly attach the volumes of a pending pod and `more` volumes."""
        fits = np.ones(len(rows), np.bool_)
        for driver, count in Counter(new.values()).items():
            column = self._free.get(driver)
            if column is not None:
                fits &= pick(column[: self._nodes.size], rows) >= count + more
        return fits

    def exceeds(self, node: fw.NodeInfo, csi_node: CSINode, new: Attached) -> bool:
        """Return whether one node cannot attach the volumes, by its current pods, also within a what-if.

        Raises VolumeError if a volume there cannot be counted.
        """
        limits = limits_of(csi_node)
        if not new or not limits:
            return False
        users, attachments = self._nodes.volumes, self._attachments.get(node.name, _NONE)
        if not users.has_odd_pods(node.row):
            least = min((limits[driver] for driver in new.values() if driver in limits), default=_NO_LIMIT)
            if users.most(node.row) + len(attachments) + len(new) <= least:
                return False
        return self._counted(node).exceeds(new, limits)

    def excesses(self, node: fw.NodeInfo, csi_node: CSINode, new: Attached) -> Sequence[Excess]:
        """Return the drivers whose limit would be exceeded on one node, by its current pods."""
        return tuple(self._counted(node).excesses(new, limits_of(csi_node)))

    # How.

    def _counted(self, node: fw.NodeInfo) -> NodeVolumes:
        entry = self._by_row.get(node.row)
        before = NO_VOLUMES if entry is None else entry.counted
        return self._counter.count(node, self._attachments.get(node.name, _NONE).values(), before)

    def _over(self, new: Attached, rows: fw.Rows) -> fw.BoolColumn | None:
        over: fw.BoolColumn | None = None
        for driver, count in Counter(new.values()).items():
            fits = self._free.get(driver)
            if fits is not None:
                too_little = pick(fits[: self._nodes.size], rows) < count
                over = too_little if over is None else over | too_little
        return over if over is not None and over.any() else None

    def _look_again(self, row: int) -> None:
        csi_node: CSINode | None = None
        name = self._nodes.names()[row]
        if self._nodes.in_use[row]:
            csi_node = self._objects.get(fw.CSI_NODE, name)
        entry = self._by_row.get(row)
        if entry is not None and entry.csi_node is not csi_node:
            self._forget(row, entry)
            entry = None
        if csi_node is None:
            return
        if entry is None:
            entry = self._by_row[row] = _NodeEntry(csi_node, limits_of(csi_node))
            self._known[row] = True
        self._is_counted[row] = False
        self._uncountable.discard(row)
        if not entry.limits:
            return
        used = self._nodes.volumes.most(row) + len(self._attachments.get(name, ()))
        for driver, limit in entry.limits.items():
            self._column(driver)[row] = limit - used
        if self._nodes.volumes.has_odd_pods(row):
            self._count(row)  # its volumes may be uncountable

    def _count(self, row: int) -> None:
        entry, node = self._by_row[row], self._nodes.info(row)
        attachments = self._attachments.get(node.name, _NONE).values()
        counted = self._counter.count(node, attachments, entry.counted)
        self._replace(row, entry, counted)
        for driver, limit in entry.limits.items():
            self._free[driver][row] = limit - counted.counts.get(driver, 0)
        self._is_counted[row] = True
        if counted.problem:
            self._uncountable.add(row)

    def _replace(self, row: int, entry: _NodeEntry, counted: NodeVolumes) -> None:
        old = entry.counted
        entry.counted = counted
        self._users.remove(old.attached.keys() - counted.attached.keys(), row)
        self._users.add(counted.attached.keys() - old.attached.keys(), row)
        self._dependents.remove(old.depends_on - counted.depends_on, row)
        self._dependents.add(counted.depends_on - old.depends_on, row)

    def _forget(self, row: int, entry: _NodeEntry) -> None:
        self._replace(row, entry, NO_VOLUMES)
        del self._by_row[row]
        self._known[row] = self._is_counted[row] = False
        self._uncountable.discard(row)
        for driver in entry.limits:
            self._free[driver][row] = _NO_LIMIT

    def _column(self, driver: str) -> fw.Int64Column:
        column = self._free.get(driver)
        if column is None:
            column = self._free[driver] = np.full(len(self._known), _NO_LIMIT, np.int64)
        return column

    def _grow(self) -> None:
        size = max(self._nodes.size, 2 * len(self._known))
        self._known, self._is_counted = grown(self._known, size), grown(self._is_counted, size)
        for driver, column in self._free.items():
            self._free[driver] = grown(column, size, _NO_LIMIT)

    # What objects make stale.

    def _listen(self) -> None:
        listen = self._objects.listen
        for resource in (fw.PERSISTENT_VOLUME_CLAIM, fw.PERSISTENT_VOLUME, fw.STORAGE_CLASS):
            listen(resource, partial(self._object_changed, resource))
        listen(fw.CSI_NODE, self._csi_node_changed)
        listen(fw.VOLUME_ATTACHMENT, self._attachment_changed)

    def _object_changed(self, resource: str, old: Any | None, new: Any | None) -> None:
        changed = old if new is None else new
        if changed is not None:
            metadata = changed.metadata
            for row in self._dependents.of((resource, metadata.name, metadata.namespace)):
                self._replace(row, self._by_row[row], NO_VOLUMES)
                self._stale.add(row)

    def _csi_node_changed(self, old: CSINode | None, new: CSINode | None) -> None:
        csi_node = new or old
        if csi_node is not None:
            self._node_changed(csi_node.name)

    def _attachment_changed(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        if old is not None:
            on_node = self._attachments.get(old.spec.node_name, {})
            on_node.pop(old.name, None)
            if not on_node:
                self._attachments.pop(old.spec.node_name, None)
            self._node_changed(old.spec.node_name)
        if new is not None:
            self._attachments.setdefault(new.spec.node_name, {})[new.name] = new
            self._node_changed(new.spec.node_name)

    def _node_changed(self, name: str) -> None:
        # A node that is added later is in the change log then.
        row = self._nodes.row_of(name)
        if row is not None:
            self._stale.add(row)


Key = TypeVar("Key", bound=Hashable)


class RowsByKey(Generic[Key]):
    """Key → rows, compact where nearly every key has one row: a hundred thousand keys cost little."""

    def __init__(self) -> None:
        # A set takes 200 bytes, so a single row has none.
        self._rows: dict[Key, int | set[int]] = {}

    def of(self, key: Key) -> Collection[int]:
        """Return the rows that have `key`, as of now."""
        rows_of_key = self._rows.get(key)
        if rows_of_key is None:
            return ()
        return (rows_of_key,) if isinstance(rows_of_key, int) else tuple(rows_of_key)

    def add(self, keys: Iterable[Key], row: int) -> None:
        """Add these keys, none of which it has, to `row`."""
        rows = self._rows
        for key in keys:
            rows_of_key = rows.get(key)
            if rows_of_key is None:
                rows[key] = row
            elif isinstance(rows_of_key, int):
                rows[key] = {rows_of_key, row}
            else:
                rows_of_key.add(row)

    def remove(self, keys: Iterable[Key], row: int) -> None:
        """Remove these keys, all of which it has, from `row`."""
        for key in keys:
            rows_of_key = self._rows[key]
            if isinstance(rows_of_key, int):
                del self._rows[key]
                continue
            rows_of_key.remove(row)
            if not rows_of_key:
                del self._rows[key]
