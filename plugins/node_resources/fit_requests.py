"""The requests that NodeResourcesFit compares, for a pod that does not run yet."""

from scheduler import framework as fw
from scheduler.api.requests import pod_requests, to_amounts


def fit_requests(pod: fw.Pod) -> dict[str, int]:
    """Return the pod's amounts: cpu in thousandths of a core, all others in units or bytes.

    A pod that does not run yet has no resize in progress. Rule: fit.go (computePodResourceRequest).
    """
    return to_amounts(pod_requests(pod.spec, None)) if reports_resources(pod) else pod.requests


def reports_resources(pod: fw.Pod) -> bool:
    """Whether a kubelet has reported what the pod has: only then its status can change what it asks for."""
    status = pod.status
    return bool(status.container_statuses or status.init_container_statuses or status.resources)
