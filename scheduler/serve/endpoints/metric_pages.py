"""The pages with metrics, by their paths as kube-scheduler has them."""

from collections.abc import Callable, Mapping

from scheduler.api.pods.pod import Pod
from scheduler.process.metrics import Metrics
from scheduler.process.process_metrics import BuildInfo, ProcessMetrics, StartTime
from scheduler.serve.endpoints.exposition import Exposition
from scheduler.serve.endpoints.pod_resources import PodResourceMetrics
from scheduler.serve.port.answers import EMPTY, Answer
from scheduler.serve.port.http import Page


def metric_pages(metrics: Metrics, pods: Mapping[str, Pod], leads: Callable[[], bool]) -> dict[str, Page]:
    """`pods`: all that are known, by UID. Only the replica that `leads` shows what pods ask for, or a sum over the
    replicas would count each pod several times.

    The metrics of the program are added to `metrics`; call it once.
    """
    metrics.registry.register(ProcessMetrics())
    metrics.registry.register(BuildInfo())
    metrics.slis.register(StartTime())
    resources = Exposition(PodResourceMetrics(pods))

    async def of_leader(accept: str) -> Answer:
        return await resources.streamed(accept) if leads() else EMPTY

    return {
        "/metrics": Exposition(metrics.registry).whole,
        "/metrics/slis": Exposition(metrics.slis).whole,
        "/metrics/resources": of_leader,
    }
