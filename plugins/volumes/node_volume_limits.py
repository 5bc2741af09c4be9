"""Keep pods off nodes that cannot attach their volumes: too many of a driver, or without the driver."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from plugins.shared.queueing import any_pod
from plugins.volumes.csi_nodes import CsiNodeColumns, has_driver
from plugins.volumes.hints import after_claim, claims_key
from plugins.volumes.limits.attached import AttachedVolumes
from plugins.volumes.limits.csi import Attached, ClaimNotFound, CsiVolumes, VolumeError
from scheduler import framework as fw
from scheduler.api.objects import Volume
from scheduler.api.storage.csi_translation import inline_handle, plugin_of
from scheduler.api.storage.volumes import CSIDriver, CSINode, VolumeAttachment

TOO_MANY: Final = fw.unschedulable("node(s) exceed max volume count")

_ANY_NUMBER: Final = 1 << 40
_TOO_MANY = 1
_NO_CLAIM = 2
_NO_DRIVER = 3
"""And above: the number of the driver."""


@dataclass
class NodeVolumeLimits(fw.PreFilterPlugin, fw.MonotoneInPods, fw.ExplainPlugin):
    """Filter: the node can attach the pod's volumes in addition to its own, by each driver's limit in its CSINode.

    Drivers whose CSIDriver has `preventPodSchedulingIfMissing` must be installed there.
    Volumes of the old in-tree kinds count as their drivers'. Answers are not stored: they depend on claims and
    volumes as well as on the pod. Rule: nodevolumelimits/csi.go at v1.37.2.
    """

    name: ClassVar[str] = "NodeVolumeLimits"
    reads: ClassVar[Sequence[str]] = (fw.PERSISTENT_VOLUME, fw.STORAGE_CLASS)

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self._volumes = CsiVolumes(handle)
        self._attached = AttachedVolumes(handle, self._volumes)
        self._installed = CsiNodeColumns(handle, has_driver)
        self._drivers: list[str] = []
        """Those that nodes lacked, by their numbers."""

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: csi.go (EventsToRegister): any new CSINode may help.

        Beyond it, a node without a CSINode limits nothing: a new node, and one whose CSINode is deleted. And a driver
        that had to be installed may no longer have to.
        """
        return (
            fw.on(fw.CSI_NODE, fw.Action.ADD),
            fw.on(fw.CSI_NODE, fw.Action.UPDATE, _after_csi_node, any_pod),
            fw.on(fw.ASSIGNED_POD, fw.Action.DELETE, _after_pod_deleted, any_pod),
            fw.on(fw.PERSISTENT_VOLUME_CLAIM, fw.Action.ADD, after_claim, claims_key),
            fw.on(fw.VOLUME_ATTACHMENT, fw.Action.DELETE, _after_attachment_deleted, _volumes_of),
            fw.on(fw.CSI_NODE, fw.Action.DELETE),
            fw.on(fw.NODE, fw.Action.ADD),
            fw.on(fw.CSI_DRIVER, fw.Action.UPDATE | fw.Action.DELETE, _after_csi_driver, any_pod),
        )

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Skip pods without volumes that a driver might attach."""
        volumes = pod.storage.volumes
        return None if volumes and any(map(_is_attachable, volumes)) else fw.SKIP

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(pod.storage.volumes)

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` whether a claim of the pod or a driver is missing, or a limit would be exceeded.

        Raises VolumeError if volumes of the pod, or of a pod on one of the nodes, cannot be evaluated.
        """
        if not pod.storage.volumes:
            return None
        if len(rows) == 1 and nodes.in_use[rows.item()]:
            # In a what-if the pods are not those that were counted.
            return self._one_code(pod, nodes.info(rows.item()))
        attached = self._attached
        attached.refresh()
        known = attached.known(rows)
        if known.all():
            return self._codes(pod, rows, has_csi_node=True)
        codes = np.zeros(len(rows), np.int32)
        for has_csi_node, places in ((True, known), (False, ~known)):
            if places.any():
                found = self._codes(pod, rows[places], has_csi_node=has_csi_node)
                if found is not None:
                    codes[places] = found
        return codes

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        if code == _TOO_MANY:
            return TOO_MANY
        if code >= _NO_DRIVER:
            return fw.unschedulable(f"{self._drivers[code - _NO_DRIVER]} CSI driver is not installed on the node")
        try:
            self._volumes.of_pending(pod, has_csi_node=False)
        except ClaimNotFound as error:
            return fw.unresolvable(str(error))
        raise LookupError("the claim that was missing is there")

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """The drivers that are missing, or else those whose limit would be exceeded."""
        csi_node: CSINode | None = self.handle.objects.get(fw.CSI_NODE, node.name)
        try:
            new = self._volumes.of_pending(pod, has_csi_node=csi_node is not None)
        except ClaimNotFound:
            return ()
        missing = self._missing(new, csi_node)
        if missing or csi_node is None:
            return [fw.Obstacle(f"the node lacks the CSI driver {driver} of the pod's volumes") for driver in missing]
        return [
            fw.Obstacle(
                f"the node takes {each.limit} volumes of driver {each.driver}, and the pod has {each.wanted} more",
                example=f"{each.used} are attached",
            )
            for each in self._attached.excesses(node, csi_node, new)
        ]

    def still_admits(
        self, state: fw.CycleState, pod: fw.Pod, nominated: fw.NominatedPods, rows: fw.Rows
    ) -> fw.BoolColumn:
        """Each volume of a nominated pod takes one place at most; one with odd volumes may take any number."""
        storages = ([pod_storage.storage for pod_storage in nominated.by_row[row]] for row in rows.tolist())
        volumes = [
            sum(len(pod_storage.volumes) for pod_storage in of_row)
            if all(pod_storage.regular for pod_storage in of_row)
            else _ANY_NUMBER
            for of_row in storages
        ]
        self._attached.refresh()
        new = self._volumes.of_pending(pod, has_csi_node=True)
        return self._attached.has_capacity(new, np.array(volumes, np.int64), rows)

    def _one_code(self, pod: fw.Pod, node: fw.NodeInfo) -> fw.Int32Column:
        csi_node: CSINode | None = self.handle.objects.get(fw.CSI_NODE, node.name)
        try:
            new = self._volumes.of_pending(pod, has_csi_node=csi_node is not None)
        except ClaimNotFound:
            return np.array([_NO_CLAIM], np.int32)
        missing = self._missing(new, csi_node)
        if missing:
            return np.array([self._code_without(missing[0])], np.int32)
        exceeds = csi_node is not None and self._attached.exceeds(node, csi_node, new)
        return np.array([_TOO_MANY if exceeds else 0], np.int32)

    def _codes(self, pod: fw.Pod, rows: fw.Rows, *, has_csi_node: bool) -> fw.Int32Column | None:
        """The codes of nodes that all have a CSINode, or all have none; None if all are 0."""
        try:
            new = self._volumes.of_pending(pod, has_csi_node=has_csi_node)
        except ClaimNotFound:
            return np.full(len(rows), _NO_CLAIM, np.int32)
        required = self._required(new)
        if not required:
            return self._exceeded(new, rows) if has_csi_node else None
        codes = np.zeros(len(rows), np.int32)
        for driver in reversed(required):
            lacks = ~self._installed.of(driver, rows) if has_csi_node else np.ones(len(rows), np.bool_)
            codes[lacks] = self._code_without(driver)
        left = codes == 0
        exceeded = self._exceeded(new, rows[left]) if left.any() else None
        if exceeded is not None:
            codes[left] = exceeded
        return codes

    def _exceeded(self, new: Attached, rows: fw.Rows) -> fw.Int32Column | None:
        """The codes of nodes on which no driver is missing; None if all are 0."""
        if not new:
            return None
        problem = self._attached.first_problem(rows)
        if problem:
            raise VolumeError(problem)
        exceeded = self._attached.exceeded(new, rows)
        return None if exceeded is None else exceeded.astype(np.int32)

    def _required(self, new: Attached) -> list[str]:
        """Return the drivers of the volumes that must be installed, by name. Rule: checkCSIDriverOnNode."""
        found = ((name, self.handle.objects.get(fw.CSI_DRIVER, name)) for name in sorted(set(new.values())))
        return [name for name, driver in found if driver is not None and _must_be_there(driver)]

    def _missing(self, new: Attached, csi_node: CSINode | None) -> list[str]:
        """Return those of the required drivers that a node lacks."""
        return [name for name in self._required(new) if csi_node is None or not has_driver(csi_node, name)]

    def _code_without(self, driver: str) -> int:
        if driver not in self._drivers:
            self._drivers.append(driver)
        return _NO_DRIVER + self._drivers.index(driver)


def _must_be_there(driver: CSIDriver) -> bool:
    return bool(driver.spec.prevent_pod_scheduling_if_missing)


def _is_attachable(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or plugin_of(volume) is not None


# Queueing hints.


def _after_pod_deleted(pod: fw.Pod, old: fw.Pod, new: None) -> fw.QueueingHint:
    """A pod with volumes helps that was on a node or nominated to one. Rule: isSchedulableAfterPodDeleted."""
    placed = old.node_name or old.nominated_node_name
    frees = placed and any(map(_is_attachable, old.storage.volumes))
    return fw.QueueingHint.QUEUE if frees else fw.QueueingHint.SKIP


def _volumes_of(pod: fw.Pod) -> Hashable:
    return pod.storage.volumes


def _after_attachment_deleted(pod: fw.Pod, old: VolumeAttachment, new: None) -> fw.QueueingHint:
    """Any attachment may have been of a claim's driver. Rule: isSchedulableAfterVolumeAttachmentDeleted.

    Raises TranslationError for a volume that no driver could serve.
    """
    for volume in pod.storage.volumes:
        if volume.persistent_volume_claim is not None:
            return fw.QueueingHint.QUEUE
        plugin = plugin_of(volume)
        if plugin is not None:
            if plugin.migrated:
                inline_handle(volume)
            if plugin.driver == old.spec.attacher:
                return fw.QueueingHint.QUEUE
    return fw.QueueingHint.SKIP


def _after_csi_node(pod: fw.Pod, old: CSINode, new: CSINode) -> fw.QueueingHint:
    """A higher limit helps, none where there was one, and a driver that was missing.

    Rule: isSchedulableAfterCSINodeUpdated, where a new driver helps only if it has a limit, and one whose limit ends
    does not.
    """
    before = {driver.name: driver.limit for driver in old.drivers}
    now = {driver.name: driver.limit for driver in new.drivers}
    raised = any((limit or 0) > (before.get(name) or 0) for name, limit in now.items())
    ended = any(limit is not None and now.get(name) is None for name, limit in before.items())
    return fw.QueueingHint.QUEUE if raised or ended or now.keys() - before.keys() else fw.QueueingHint.SKIP


def _after_csi_driver(pod: fw.Pod, old: CSIDriver, new: CSIDriver | None) -> fw.QueueingHint:
    """A driver helps that no longer has to be installed."""
    ended = _must_be_there(old) and (new is None or not _must_be_there(new))
    return fw.QueueingHint.QUEUE if ended else fw.QueueingHint.SKIP
