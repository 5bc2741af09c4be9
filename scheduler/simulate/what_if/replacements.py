"""The pod that a controller makes to replace one of its pods: the same, without a node, and with claims of its own.

Objects that were made for the old pod alone go with it: the claims of generic ephemeral volumes and of
ResourceClaimTemplates. A claim for devices that was only reserved for it is free again. Rules:
pkg/controller/resourceclaim/controller.go and pkg/controller/volume/ephemeral at v1.36.3.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from scheduler.api.decoding import reread
from scheduler.api.generated_uids import uid_of
from scheduler.api.objects import OwnerReference, PodResourceClaimStatus
from scheduler.api.pods.pod import Pod
from scheduler.framework.events import PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM
from scheduler.simulate.controllers.claims import claim_for
from scheduler.simulate.controllers.generated_names import claim_name, random_names
from scheduler.simulate.other_objects import OtherObject

_OF_BINDING: Final = ("pv.kubernetes.io/", "volume.kubernetes.io/")


class Replacements:
    """Makes the pods that come for others. They have new names, except those of StatefulSets."""

    def __init__(self, taken: Iterable[str]) -> None:
        """`taken`: namespace/name of all pods."""
        self._taken = set(taken)
        self._names: dict[str, Iterator[str]] = {}

    def of(self, pod: Pod, owner: OwnerReference) -> Pod:
        """Return the pod that its controller makes for this one."""
        if owner.kind == "StatefulSet":
            return renamed(pod, pod.name)
        names = self._names.setdefault(
            f"{owner.kind}/{pod.namespace}/{owner.name}", random_names(f"{owner.name}-", owner.kind)
        )
        new = renamed(pod, next(name for name in names if f"{pod.namespace}/{name}" not in self._taken))
        self._taken.add(str(new))
        return new


def renamed(pod: Pod, name: str) -> Pod:
    """Return the same pod as a new one of this name, which waits for a node."""
    uid = uid_of("Pod", pod.namespace, f"{name}, for {pod.uid}")
    metadata = replace(
        pod.metadata, name=name, uid=uid, resource_version="", creation_timestamp=None, deletion_timestamp=None
    )
    by_template = {each.name for each in pod.spec.resource_claims or () if each.resource_claim_template_name}
    statuses = tuple(
        PodResourceClaimStatus(name=each.name, resource_claim_name=claim_name(name, each.name))
        for each in pod.status.resource_claim_statuses or ()
        if each.name in by_template and each.resource_claim_name
    )
    status = type(pod.status)(phase="Pending", resource_claim_statuses=statuses or None)
    return type(pod)(metadata=metadata, spec=replace(pod.spec, node_name=""), status=status)


def own_claims(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the event resource and the name of each claim that was made for this pod alone."""
    for volume in pod.spec.volumes or ():
        if volume.ephemeral is not None:
            yield PERSISTENT_VOLUME_CLAIM, f"{pod.name}-{volume.name}"
    by_template = {each.name for each in pod.spec.resource_claims or () if each.resource_claim_template_name}
    for status in pod.status.resource_claim_statuses or ():
        if status.name in by_template and status.resource_claim_name:
            yield RESOURCE_CLAIM, status.resource_claim_name
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        yield RESOURCE_CLAIM, extended.resource_claim_name


def shared_claims(pod: Pod) -> Iterator[str]:
    """Yield the ResourceClaims that it has by their own names, and that others may have too."""
    return (each.resource_claim_name for each in pod.spec.resource_claims or () if each.resource_claim_name)


def claims_like(old: Pod, new: Pod, objects: Mapping[tuple[str, str], Any]) -> list[OtherObject]:
    """Return the claims of the new pod: like those of the old one, but bound to nothing and allocated to nothing.

    `objects`: event resource and name → claim, of those of the old pod that are there.
    """
    made = []
    for volume in old.spec.volumes or ():
        claim = objects.get((PERSISTENT_VOLUME_CLAIM, f"{old.name}-{volume.name}"))
        if volume.ephemeral is not None and claim is not None:
            made.append(_unbound("PersistentVolumeClaim", "v1", claim, new, f"{new.name}-{volume.name}"))
    names = {each.name: each.resource_claim_name for each in new.status.resource_claim_statuses or ()}
    for status in old.status.resource_claim_statuses or ():
        claim = objects.get((RESOURCE_CLAIM, status.resource_claim_name or ""))
        if status.name in names and claim is not None:
            made.append(_unbound("ResourceClaim", "resource.k8s.io/v1", claim, new, f"{names[status.name]}"))
    return made


def _unbound(kind: str, version: str, claim: Any, pod: Pod, name: str) -> OtherObject:
    content: Any = reread(claim, object)
    metadata, spec = content.get("metadata") or {}, content.get("spec") or {}
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if not key.startswith(_OF_BINDING)
    }
    template = {
        "metadata": {"labels": metadata.get("labels") or {}, "annotations": annotations},
        "spec": {key: value for key, value in spec.items() if key != "volumeName"},
    }
    return claim_for(kind, version, name, template, pod, str(pod))


def without_user(claim: Any, uid: str) -> dict[str, Any]:
    """Return a ResourceClaim as it is once this pod is gone: unless others have it, what it has is free."""
    content: Any = reread(claim, object)
    status = dict(content.get("status") or {})
    users = [each for each in status.get("reservedFor") or [] if each.get("uid") != uid]
    status["reservedFor"] = users
    if not users:
        status.pop("allocation", None)
    return {**content, "status": status}
