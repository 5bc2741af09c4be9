"""The ResourceClaims of a pod, and which of their events make a pod worth another attempt.

Rule: k8s.io/dynamic-resource-allocation resourceclaim/resourceclaim.go at v0.37.2 and dynamicresources.go at v1.37.2.
"""

from collections.abc import Hashable
from typing import Final

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.gates import OF_GROUPS, DeviceGates
from plugins.node_resources.fit_requests import fit_requests
from scheduler import framework as fw
from scheduler.api.devices import ClaimProblem, ConsumerReference, DeviceClass, ResourceClaim, claim_name_of

_API: Final = "scheduling.k8s.io"
_PODGROUPS: Final = "podgroups"


def resource_claims_of(pod: fw.Pod, catalog: DeviceCatalog) -> list[ResourceClaim]:
    """Return the claims in the order of `spec.resourceClaims`. Raises ClaimProblem. Rule: foreachPodResourceClaim."""
    found = []
    for written in pod.spec.resource_claims or ():
        name, must_own = claim_name_of(pod, written)
        if name is None:
            continue  # no claim was made for it, on purpose
        claim = catalog.allocations.claim(pod.namespace, name)
        if claim is None:
            raise ClaimProblem(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimProblem(f'resourceclaim "{name}" is being deleted')
        if must_own and not _is_owner(pod, claim, catalog.gates):
            group = _group_of(pod, catalog.gates)
            who = f"neither Pod nor PodGroup {group} is the owner" if group else "Pod is not owner"
            raise ClaimProblem(f"ResourceClaim {claim} was not created for Pod {pod} ({who})")
        found.append(claim)
    return found


def _is_owner(pod: fw.Pod, claim: ResourceClaim, gates: DeviceGates) -> bool:
    """Return whether a claim was made for the pod, or for its group. Rule: IsForPod."""
    group = _group_of(pod, gates)
    return any(
        owner.uid == pod.uid
        or (group and owner.name == group and owner.kind == "PodGroup" and owner.api_version.startswith(f"{_API}/"))
        for owner in claim.metadata.owner_references or ()
        if owner.controller
    )


def _group_of(pod: fw.Pod, gates: DeviceGates) -> str:
    """Return the name of the group that may have claims for the pod; empty without."""
    group = pod.spec.scheduling_group
    return group.pod_group_name if group is not None and OF_GROUPS in gates.names else ""


def is_reserved_for(pod: fw.Pod, claim: ResourceClaim) -> bool:
    """Return whether a claim is reserved for the pod itself."""
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for or ())


def is_reserved(pod: fw.Pod, claim: ResourceClaim, gates: DeviceGates) -> bool:
    """Return whether a claim is reserved for the pod, or for its group. Rule: IsReservedForPod."""
    group = _group_of(pod, gates)
    return is_reserved_for(pod, claim) or (
        bool(group)
        and any(
            (each.api_group, each.resource, each.name) == (_API, _PODGROUPS, group)
            for each in claim.status.reserved_for or ()
        )
    )


def consumer(pod: fw.Pod, claim: ResourceClaim, group: fw.PodGroup | None) -> ConsumerReference:
    """Return the entry in `status.reservedFor`: of the group, if it has the claim, too. Rule: BindTo.

    `group`: the pod's, if it may have claims.
    """
    if group is not None:
        for written in pod.spec.resource_claims or ():
            if claim_name_of(pod, written)[0] == claim.metadata.name and written in group.claims:
                return ConsumerReference(api_group=_API, resource=_PODGROUPS, name=group.name, uid=group.uid)
    return ConsumerReference(resource="pods", name=pod.name, uid=pod.uid)


def _names(pod: fw.Pod, claim: ResourceClaim) -> bool:
    """Return whether the claim can be one of the pod's."""
    meta = claim.metadata
    return pod.namespace == meta.namespace and (
        any(each.resource_claim_name == meta.name for each in pod.spec.resource_claims or ())
        or any(each.resource_claim_name == meta.name for each in pod.status.resource_claim_statuses or ())
    )


def claims_key(pod: fw.Pod) -> Hashable:
    """The key for the hints.

    Pods without claims are alike, and those that wait for a claim to be made: no claim helps them before their own
    status names it. So are those that share their claims. All others have claims of their own.
    """
    written = pod.spec.resource_claims
    if not written:
        return ""
    made = {status.name for status in pod.status.resource_claim_statuses or ()}
    names = []
    for each in written:
        if each.resource_claim_name is not None:
            names.append(each.resource_claim_name)
        elif each.name in made:
            return pod.uid
        else:
            return False
    return pod.namespace, tuple(names)


class ClaimHints:
    """The queueing hints. They look up the current claims of the pod."""

    __slots__ = ("_catalog",)

    def __init__(self, catalog: DeviceCatalog) -> None:
        self._catalog = catalog

    def after_claim(self, pod: fw.Pod, old: ResourceClaim | None, new: ResourceClaim | None) -> fw.QueueingHint:
        """The pod's own claims help, and devices that became free. Rule: isSchedulableAfterClaimChange."""
        if new is None:
            had_devices = old is not None and old.status.allocation is not None
            return fw.QueueingHint.QUEUE if had_devices else fw.QueueingHint.SKIP
        freed = old is not None and old.status.allocation is not None and new.status.allocation is None
        if not freed and not _names(pod, new):
            return fw.QueueingHint.SKIP  # checked first: there may be thousands of claims
        try:
            claims = resource_claims_of(pod, self._catalog)
        except ClaimProblem:
            return fw.QueueingHint.SKIP
        if freed:
            return fw.QueueingHint.QUEUE
        if all(claim.uid != new.uid for claim in claims):
            return fw.QueueingHint.SKIP
        if old is not None and old.status == new.status:
            return fw.QueueingHint.SKIP
        return fw.QueueingHint.QUEUE

    def after_pod(self, pod: fw.Pod, old: fw.Pod | None, new: fw.Pod) -> fw.QueueingHint:
        """The pod is helped if its claims were generated. Rule: isSchedulableAfterPodChange."""
        if pod.uid != new.uid:
            return fw.QueueingHint.SKIP
        try:
            resource_claims_of(new, self._catalog)
        except ClaimProblem:
            return fw.QueueingHint.SKIP
        return fw.QueueingHint.QUEUE

    def after_space_freed(self, pod: fw.Pod, old: fw.Pod, new: fw.Pod | None) -> fw.QueueingHint:
        """Space may help on a node whose devices stand for resources of it, or cost some."""
        return fw.QueueingHint.QUEUE if self._catalog.slices.have_amounts(old.node_name) else fw.QueueingHint.SKIP


def after_class_deleted(pod: fw.Pod, old: DeviceClass, new: None) -> fw.QueueingHint:
    """A DeviceClass helps that stood for an extended resource which the pod requests."""
    named = old.spec.extended_resource_name
    return fw.QueueingHint.QUEUE if named and named in fit_requests(pod) else fw.QueueingHint.SKIP
