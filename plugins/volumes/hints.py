"""The changes in the cluster that may help a pod that VolumeBinding refused.

Rule: volumebinding/volume_binding.go (EventsToRegister, isSchedulableAfter…) at v1.36.3. Beyond it, a driver that stops
tracking its storage helps pods whose claims it serves, not only those with inline volumes; and so does one whose
CSIDriver is deleted.
"""

from collections.abc import Callable, Hashable

from plugins.shared.queueing import any_pod
from plugins.volumes.capacity import volume_limit
from plugins.volumes.csi_nodes import migrated_plugins
from plugins.volumes.objects import NotFound, claim_of, class_of
from scheduler import framework as fw
from scheduler.api.storage.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    claim_name_of,
)

QUEUE, SKIP = fw.QueueingHint.QUEUE, fw.QueueingHint.SKIP


def volume_binding_events(handle: fw.Handle) -> tuple[fw.ClusterEventWithHint, ...]:
    """All events that matter to claims and volumes, and the labels of nodes."""
    add_or_update = fw.Action.ADD | fw.Action.UPDATE
    after_csi_driver = _after_csi_driver(handle)
    return (
        fw.on(fw.STORAGE_CLASS, add_or_update, after_storage_class, any_pod),
        fw.on(fw.PERSISTENT_VOLUME_CLAIM, add_or_update, after_claim, claims_key),
        fw.on(fw.PERSISTENT_VOLUME, add_or_update),
        fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_LABEL),
        fw.on(fw.CSI_NODE, add_or_update, after_csi_node, any_pod),
        fw.on(fw.CSI_DRIVER, fw.Action.UPDATE, after_csi_driver, _drivers),
        fw.on(fw.CSI_STORAGE_CAPACITY, add_or_update, after_capacity, any_pod),
        fw.on(fw.CSI_DRIVER, fw.Action.DELETE, after_csi_driver, _drivers),
        fw.on(fw.CSI_NODE, fw.Action.DELETE, after_csi_node_deleted, any_pod),
    )


def after_storage_class(pod: fw.Pod, old: StorageClass | None, new: StorageClass) -> fw.QueueingHint:
    """A class helps that is new or allows other nodes; its binding mode never changes."""
    changed = old is None or (old.allowed_topologies or ()) != (new.allowed_topologies or ())
    return QUEUE if changed else SKIP


def after_claim(pod: fw.Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim) -> fw.QueueingHint:
    """Only the pod's own claims help, ephemeral ones among them. NodeVolumeLimits has the same."""
    return QUEUE if pod.namespace == new.namespace and new.name in _claim_names(pod) else SKIP


def after_csi_node(pod: fw.Pod, old: CSINode | None, new: CSINode) -> fw.QueueingHint:
    """A node helps whose drivers serve other kinds of volumes than before."""
    if old is None or migrated_plugins(old.annotations) != migrated_plugins(new.annotations):
        return QUEUE
    return SKIP


def after_csi_node_deleted(pod: fw.Pod, old: CSINode, new: None) -> fw.QueueingHint:
    """A node helps whose drivers served volumes of other kinds: they are used as they are now."""
    return QUEUE if migrated_plugins(old.annotations) else SKIP


def _after_csi_driver(handle: fw.Handle) -> Callable[[fw.Pod, CSIDriver, CSIDriver | None], fw.QueueingHint]:
    def after_csi_driver(pod: fw.Pod, old: CSIDriver, new: CSIDriver | None) -> fw.QueueingHint:
        """A driver of the pod's volumes helps that stops tracking its storage capacity, or is deleted."""
        if not old.spec.storage_capacity or (new is not None and new.spec.storage_capacity):
            return SKIP
        driver = (new or old).name
        serves = driver in _inline_drivers(pod) or any(
            driver == _provisioner(handle, pod.namespace, name) for name in _claim_names(pod) if name
        )
        return QUEUE if serves else SKIP

    return after_csi_driver


def _provisioner(handle: fw.Handle, namespace: str, claim_name: str) -> str:
    """Return the provisioner of a claim; empty if it is not known."""
    try:
        class_name = claim_of(handle, namespace, claim_name).class_name
        return class_of(handle, class_name).provisioner if class_name else ""
    except NotFound:
        return ""


def after_capacity(pod: fw.Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> fw.QueueingHint:
    """Storage capacity helps that is new or allows larger volumes."""
    if old is None:
        return QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return QUEUE if now is not None and (before is None or now > before) else SKIP


def _claim_names(pod: fw.Pod) -> list[str | None]:
    return [claim_name_of(pod, volume) for volume in pod.spec.volumes or ()]


def _inline_drivers(pod: fw.Pod) -> list[str]:
    return [volume.csi.driver for volume in pod.spec.volumes or () if volume.csi is not None]


def claims_key(pod: fw.Pod) -> Hashable:
    """The key for hints that look for the pod's claims, ephemeral ones among them."""
    return pod.namespace, frozenset(_claim_names(pod))


def _drivers(pod: fw.Pod) -> Hashable:
    return claims_key(pod), frozenset(_inline_drivers(pod))
