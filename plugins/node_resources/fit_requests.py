"""The requests that NodeResourcesFit compares, for a pod that does not run yet."""

from collections.abc import Mapping

import msgspec

from scheduler import framework as fw
from scheduler.api.pods.requests import pod_requests, reports_resources, requests_of, to_amounts


def fit_requests(pod: fw.Pod) -> Mapping[str, int]:
    """Return the pod's amounts: cpu in thousandths of a core, all others in units or bytes.

    A pod that does not run yet has no resize in progress. Nothing is less than 0. Rule: fit.go
    (computePodResourceRequest).
    """
    if reports_resources(pod.status):
        return _not_negative(asked_amounts(pod))
    resources = pod.resources
    requests: Mapping[str, int] = requests_of(resources)
    return _not_negative(requests) if resources.overflown else requests


def asked_amounts(pod: fw.Pod) -> Mapping[str, int]:
    """Return the same as Go's int64 has them: negative, or 0, where it overflows. Rule: NewResource."""
    if reports_resources(pod.status):
        return to_amounts(pod_requests(pod.spec, None))
    return pod.resources.requests


def counted_requests(pod: fw.Pod) -> Mapping[str, int]:
    """Return the pod's amounts with a resize in progress. Nothing is less than 0. Rule: SetMaxResource."""
    resources = pod.resources
    requests: Mapping[str, int] = requests_of(resources)
    return _not_negative(requests) if resources.overflown else requests


def without_devices(pod: fw.Pod) -> Mapping[str, int]:
    """Return the pod's amounts without what it took by devices in an earlier attempt.

    Rule: resource_allocation.go (calculatePodResourceRequest).
    """
    status = msgspec.structs.replace(pod.status, node_allocatable_resource_claim_statuses=None)
    return to_amounts(pod_requests(pod.spec, status))


def _not_negative(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: max(0, amount) for name, amount in amounts.items()}
