"""`/metrics/resources`: what each pod asks for and may use, as kube-scheduler shows it.

Rule: pkg/scheduler/metrics/resources/resources.go at v1.36.3. The amounts of one pod at a time are added up, and none
of them is kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.samples import Sample

from scheduler.api.pods.device_amounts import Totals
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY, pod_limits, pod_requests
from scheduler.api.quantities.quantity import to_float

LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")

_TOLD: Final = (
    "by workloads on the cluster, broken down by pod. This shows the resource usage the scheduler and kubelet expect "
    "per pod for resources along with the unit for the resource if any."
)
_UNITS: Final[Mapping[str, str]] = {CPU: "cores", MEMORY: "bytes", "storage": "bytes", EPHEMERAL_STORAGE: "bytes"}


class PodResourceMetrics:
    """Makes the two families, of the pods that there are when they are asked for."""

    def __init__(self, pods: Mapping[str, Pod]) -> None:
        self._pods = pods

    def families(self, size: int) -> Iterator[tuple[Metric, Iterator[Sequence[Sample]]]]:
        """See `exposition.Families`."""
        pods = tuple(self._pods.values())
        for name, text, amounts_of in (
            ("kube_pod_resource_limit", f"Resources limit {_TOLD}", lambda pod: pod_limits(pod.spec)),
            ("kube_pod_resource_request", f"Resources requested {_TOLD}", lambda pod: pod_requests(pod.spec, None)),
        ):
            yield GaugeMetricFamily(name, text, labels=LABELS), _in_parts(name, pods, amounts_of, size)


def _in_parts(
    name: str, pods: Iterable[Pod], amounts_of: Callable[[Pod], Totals], size: int
) -> Iterator[Sequence[Sample]]:
    part: list[Sample] = []
    for pod in pods:
        for sample in _samples(name, pod, amounts_of):
            part.append(sample)
            if len(part) == size:
                yield part
                part = []
    if part:
        yield part


def _samples(name: str, pod: Pod, amounts_of: Callable[[Pod], Totals]) -> Iterator[Sample]:
    try:
        amounts = [(resource, to_float(amount)) for resource, amount in amounts_of(pod).items() if amount]
    except (ValueError, OverflowError):  # the API server accepts no such quantity
        return
    priority = pod.spec.priority
    labels = {
        "namespace": pod.namespace,
        "pod": pod.name,
        "node": pod.node_name,
        "scheduler": pod.spec.scheduler_name,
        "priority": "" if priority is None else str(priority),
    }
    for resource, amount in amounts:
        yield Sample(name, {**labels, "resource": resource, "unit": _unit(resource)}, amount)


def _unit(resource: str) -> str:
    if resource.startswith("hugepages-"):
        return "bytes"
    if resource.startswith("attachable-volumes-"):
        return "integer"
    return _UNITS.get(resource, "")
