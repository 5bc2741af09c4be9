"""The volumes of a pod that outlive it, with keys by which pods that use the same one are found."""

from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from scheduler.api.objects import ObjectMeta, PodSpec, Volume

VolumeKey: TypeAlias = tuple[str, ...]
"""A key that is equal for two pods that use the same claim, or the same disk in the same mode."""

READ_ONLY: Final = "ro"
READ_WRITE: Final = "rw"


class PodStorage(msgspec.Struct, frozen=True, gc=False):
    """The claims, disks and network volumes of a pod."""

    volumes: tuple[Volume, ...] = ()
    """In the order of the pod, without those made on the node itself: config maps, tokens, empty directories."""

    keys: tuple[VolumeKey, ...] = ()
    """Claims and disks, each once."""

    regular: bool = True
    """Whether all volumes are claims that the pod names, so that none can be unreadable."""


NO_STORAGE: Final = PodStorage()


def storage_of(metadata: ObjectMeta, spec: PodSpec) -> PodStorage:
    """Return the claims, disks and network volumes of a pod."""
    volumes = tuple(volume for volume in spec.volumes or () if _outlives_pods(volume))
    if not volumes:
        return NO_STORAGE
    keys = dict.fromkeys(key for volume in volumes for key in _keys_of(metadata, volume))
    return PodStorage(volumes, tuple(keys), all(map(_names_claim, volumes)))


def claim_key(namespace: str, name: str) -> VolumeKey:
    """The key of a pod's claim, other than one that is made for the pod."""
    return ("claim", namespace, name)


def ephemeral_claim_key(namespace: str, name: str) -> VolumeKey:
    """The key of a claim that is made for a pod."""
    return ("ephemeral", namespace, name)


def conflicting_keys(volume: Volume) -> Iterator[VolumeKey]:
    """Yield the keys of disks that no other pod may use on the node of a pod with this volume.

    Two pods may share a disk if both only read it, except Amazon's. Disks of Ceph are the same if any monitor is.
    Rule: volumerestrictions/volume_restrictions.go (isVolumeConflict) at v1.36.3.
    """
    for *disk, mode in _disks_of(volume):
        yield (*disk, READ_WRITE)
        if mode == READ_WRITE:
            yield (*disk, READ_ONLY)


def _keys_of(metadata: ObjectMeta, volume: Volume) -> Iterator[VolumeKey]:
    if volume.persistent_volume_claim is not None:
        yield claim_key(metadata.namespace, volume.persistent_volume_claim.claim_name)
    elif volume.ephemeral is not None:
        yield ephemeral_claim_key(metadata.namespace, f"{metadata.name}-{volume.name}")
    yield from _disks_of(volume)


def _disks_of(volume: Volume) -> Iterator[VolumeKey]:
    """Yield the keys of the disks over which pods may conflict; the mode comes last."""
    if volume.gce_persistent_disk is not None:
        yield ("gce", volume.gce_persistent_disk.pd_name, _mode(volume.gce_persistent_disk.read_only))
    if volume.aws_elastic_block_store is not None:
        yield ("aws", volume.aws_elastic_block_store.volume_id, READ_WRITE)
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn, _mode(volume.iscsi.read_only))
    if volume.rbd is not None:
        for monitor in volume.rbd.monitors or ():
            yield ("rbd", monitor, volume.rbd.pool, volume.rbd.image, _mode(volume.rbd.read_only))


def _names_claim(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None and bool(volume.persistent_volume_claim.claim_name)


def _mode(read_only: bool) -> str:
    return READ_ONLY if read_only else READ_WRITE


def _outlives_pods(volume: Volume) -> bool:
    return (
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.azure_disk is not None
        or volume.azure_file is not None
        or volume.cinder is not None
        or volume.iscsi is not None
        or volume.portworx_volume is not None
        or volume.rbd is not None
        or volume.vsphere_volume is not None
    )
