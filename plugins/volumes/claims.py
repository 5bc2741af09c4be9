"""A pod's claims: which it has, whether they can be used, and which are still unbound.

Rule: volumebinding/volume_binding.go (podHasPVCs) and binder.go (GetPodVolumeClaims) at v1.36.3.
"""

from dataclasses import dataclass, field

from plugins.volumes.assume import AssumeCache
from scheduler import framework as fw
from scheduler.api.storage.volumes import (
    BIND_COMPLETED,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolumeClaim,
    StorageClass,
    claim_name_of,
    made_for_another,
)

CLAIM_LOST = "Lost"


@dataclass(slots=True)
class PodVolumeClaims:
    """The claims of one pod, in the order of its volumes; one that two volumes use is there twice."""

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    unbound_delayed: list[PersistentVolumeClaim] = field(default_factory=list)
    """Unbound, because their class waits for the pod's node."""
    unbound_immediate: list[PersistentVolumeClaim] = field(default_factory=list)
    """Unbound, although that does not depend on the pod."""


class ClaimError(fw.AttemptFailed):
    """A claim of the pod cannot be used for now; the message is kube-scheduler's."""


def has_claims(pod: fw.Pod, objects: fw.ObjectLister) -> bool:
    """Return whether the pod has any. Raises ClaimError if one is missing, lost, being deleted, or another pod's."""
    has_any = False
    for volume in pod.spec.volumes or ():
        name = claim_name_of(pod, volume)
        if name is None:
            continue
        has_any = True
        claim: PersistentVolumeClaim | None = objects.get(fw.PERSISTENT_VOLUME_CLAIM, name, pod.namespace)
        if claim is None:
            if volume.persistent_volume_claim is None:
                waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
                raise ClaimError(f'{waiting} "{name}"')
            raise ClaimError(f'persistentvolumeclaim "{name}" not found')
        if claim.status.phase == CLAIM_LOST:
            missing = claim.spec.volume_name
            raise ClaimError(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{missing}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'persistentvolumeclaim "{name}" is being deleted')
        if volume.persistent_volume_claim is None and (problem := made_for_another(claim, pod)):
            raise ClaimError(problem)
    return has_any


def volume_claims_of(
    pod: fw.Pod, claims: AssumeCache[PersistentVolumeClaim], objects: fw.ObjectLister
) -> PodVolumeClaims:
    """Sort the pod's claims, which `has_claims` has found. Raises AttemptFailed for a class without a binding mode."""
    pod_claims = PodVolumeClaims()
    for volume in pod.spec.volumes or ():
        name = claim_name_of(pod, volume)
        if name is None:
            continue
        claim = claims.get(name, pod.namespace)
        if claim is None:
            raise fw.AttemptFailed(f'error getting PVC "{pod.namespace}/{name}": not found')
        if is_fully_bound(claim):
            pod_claims.bound.append(claim)
        elif _waits_for_consumer(claim, objects) and not claim.spec.volume_name:
            pod_claims.unbound_delayed.append(claim)
        else:
            pod_claims.unbound_immediate.append(claim)
    return pod_claims


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether the PV controller has finished binding the claim. Rule: binder.go (isPVCFullyBound)."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations


def _waits_for_consumer(claim: PersistentVolumeClaim, objects: fw.ObjectLister) -> bool:
    """Rule: component-helpers, storage/volume (IsDelayBindingMode)."""
    name = claim.class_name
    if not name:
        return False
    storage_class: StorageClass | None = objects.get(fw.STORAGE_CLASS, name)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise fw.AttemptFailed(f'VolumeBindingMode not set for StorageClass "{name}"')
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
