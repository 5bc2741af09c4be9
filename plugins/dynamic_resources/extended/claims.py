"""The claims for the extended resources of pods: one at most for each pod, made by the scheduler.

    IN MEMORY ──allocated, for one node──► in flight ──created in PreBind──► an object of the API server
        ▲                                                                        │ the pod is not bound after all
        └──the next attempt of the pod◄──deleted──────────────────────────────────┘

An attempt that finds such an object is refused on all nodes: its devices were chosen for an earlier one. Rule:
dynamicresources/extendeddynamicresources.go at v1.36.3.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

import msgspec

from plugins.dynamic_resources.extended.requests import RequestMapping
from plugins.dynamic_resources.extended.resources import is_dra_extended_resource
from plugins.node_resources.fit_requests import asked_amounts
from scheduler import framework as fw
from scheduler.api.devices import (
    EXTENDED_CLAIM_ANNOTATION,
    ClaimMeta,
    ClaimSpec,
    DeviceClaim,
    DeviceRequest,
    ResourceClaim,
)
from scheduler.api.objects import OwnerReference

IN_MEMORY: Final = "<extended-resources>"
"""The name of a claim that is no object yet. No object can have it."""

_NAME_BASE: Final = 58
"""Characters of a generated name before the random ones, as the API server generates it."""

_RANDOM: Final = 5


class ExtendedClaims:
    """The pods that have such a claim as an object of the API server."""

    def __init__(self, objects: fw.ObjectLister) -> None:
        self._woken_by: dict[str, fw.PodActivator] = {}
        """UID of a pod that waits until its claim is gone → who wakes it: no event would."""
        self._by_owner: dict[tuple[str, str], dict[str, str]] = {}
        """Namespace and UID of a pod → UID → name of its claims."""
        objects.listen(fw.RESOURCE_CLAIM, self._claim_changed, self._by_owner.clear)

    def name_for(self, pod: fw.Pod) -> str | None:
        """Return the name of a claim that was made for the pod."""
        return next(iter(self._by_owner.get((pod.namespace, pod.uid), {}).values()), None)

    def wake_when_gone(self, pod: fw.Pod, activator: fw.PodActivator) -> None:
        """Wake the pod, without regard to its backoff, as soon as its claim is gone."""
        self._woken_by[pod.uid] = activator

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None:
            for owner in _owners(old):
                claims = self._by_owner.get(owner, {})
                claims.pop(old.uid, None)
                if not claims:
                    self._by_owner.pop(owner, None)
        if new is not None:
            for owner in _owners(new):
                self._by_owner.setdefault(owner, {})[new.uid] = new.metadata.name
        if old is not None and (new is None or new.uid != old.uid):
            for _, uid in _owners(old):
                activator = self._woken_by.pop(uid, None)
                if activator is not None:
                    activator.activate((uid,))


def _owners(claim: ResourceClaim) -> Iterator[tuple[str, str]]:
    if claim.is_for_extended_resources:
        for owner in claim.metadata.owner_references or ():
            if owner.controller:
                yield claim.metadata.namespace, owner.uid


def in_memory(pod: fw.Pod) -> ResourceClaim:
    """Return a claim for the pod's extended resources, which asks for nothing yet."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    meta = ClaimMeta(namespace=pod.namespace, name=IN_MEMORY, uid=str(uuid4()), owner_references=(owner,))
    return ResourceClaim(metadata=meta)


def is_in_memory(claim: ResourceClaim) -> bool:
    return claim.metadata.name == IN_MEMORY


def requesting(claim: ResourceClaim, requests: tuple[DeviceRequest, ...]) -> ResourceClaim:
    """Return the claim with these requests."""
    return msgspec.structs.replace(claim, spec=ClaimSpec(devices=DeviceClaim(requests=requests)))


def content_of(pod: fw.Pod, claim: ResourceClaim) -> dict[str, Any]:
    """Return a claim in memory as an object to create, under a new name.

    The name is made here, as the API server would: a creation whose answer is lost is recognised by it. Requests are
    spelled out, for what the API server fills in would make the stored ones look like another's.
    """
    generated = f"{pod.name}-extended-resources-"
    name = generated[:_NAME_BASE] + uuid4().hex[:_RANDOM]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "namespace": claim.metadata.namespace,
            "name": name,
            "generateName": generated,
            "annotations": {EXTENDED_CLAIM_ANNOTATION: "true"},
            "ownerReferences": [msgspec.to_builtins(owner) for owner in claim.metadata.owner_references or ()],
        },
        "spec": {"devices": {"requests": [_written(request) for request in claim.requests]}},
    }


def _written(request: DeviceRequest) -> dict[str, Any]:
    asked = request.exactly
    assert asked is not None, "made by `claimed_devices`"
    exactly = {
        "deviceClassName": asked.device_class_name,
        "allocationMode": asked.allocation_mode,
        "count": asked.count,
    }
    return {"name": request.name, "exactly": exactly}


def status_of(claim: ResourceClaim, mappings: Iterable[RequestMapping]) -> dict[str, Any]:
    """Return what the pod's status says of its claim."""
    return {
        "extendedResourceClaimStatus": {
            "resourceClaimName": claim.metadata.name,
            "requestMappings": [mapping.written() for mapping in mappings],
        }
    }


def extended_amounts(pod: fw.Pod) -> Mapping[str, int]:
    """Return what the pod asks for of resources for which a class may stand, without those of which it asks for 0.

    An amount beyond an int64 is what Go makes of it.
    """
    return {name: amount for name, amount in asked_amounts(pod).items() if amount and is_dra_extended_resource(name)}
