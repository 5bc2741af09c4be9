"""The storage objects of the cluster, as plugins look them up, and the API's words for those that are missing."""

from scheduler import framework as fw
from scheduler.api.storage.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass


class NotFound(LookupError):
    """An object that a pod needs is not there (yet); the message is the API's."""


def claim_of(handle: fw.Handle, namespace: str, name: str) -> PersistentVolumeClaim:
    """Return a claim. Raises NotFound."""
    claim: PersistentVolumeClaim | None = handle.objects.get(fw.PERSISTENT_VOLUME_CLAIM, name, namespace)
    if claim is None:
        raise NotFound(f'persistentvolumeclaim "{name}" not found')
    return claim


def volume_of(handle: fw.Handle, name: str) -> PersistentVolume:
    """Return a persistent volume. Raises NotFound."""
    volume: PersistentVolume | None = handle.objects.get(fw.PERSISTENT_VOLUME, name)
    if volume is None:
        raise NotFound(f'persistentvolume "{name}" not found')
    return volume


def class_of(handle: fw.Handle, name: str) -> StorageClass:
    """Return a storage class. Raises NotFound."""
    found: StorageClass | None = handle.objects.get(fw.STORAGE_CLASS, name)
    if found is None:
        raise NotFound(f'storageclass.storage.k8s.io "{name}" not found')
    return found


def claims_named_by(pod: fw.Pod) -> tuple[str, ...]:
    """The names of the pod's claims in the order of its volumes, without ephemeral ones."""
    return tuple(
        volume.persistent_volume_claim.claim_name
        for volume in pod.storage.volumes
        if volume.persistent_volume_claim is not None
    )
