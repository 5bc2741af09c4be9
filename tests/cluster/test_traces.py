"""Traces of the scheduler as it is shipped, on the real control plane, at a collector."""

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import install_rbac, metric, node_of, start
from tests.controlplane import Client, Cluster, a_pod, wait_until
from tests.fakes.collector import Collector, Received

CYCLE = ["PreFilter", "Filter", "Reserve", "Permit"]
BINDING = ["PreBindPreFlight", "Bind", "PostBind"]


def roots(collector: Collector, pod: str, result: str) -> list[Received]:
    """The first spans of the attempts of a pod that ended so."""
    of_pod = (span for span in collector.spans if not span.parent and span.values["k8s.pod.name"] == pod)
    return [span for span in of_pod if span.values["loadmaster.result"] == result]


def test_the_way_of_each_pod_is_a_trace(cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes) -> None:
    install_rbac(cluster)
    (node,) = make_nodes()
    with Collector() as collector:
        environ = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            "OTEL_SERVICE_NAME": "loadmaster-under-test",
        }
        with start(cluster, name="traced", env=environ) as process:
            api.create(a_pod("web"), namespace)
            api.create(a_pod("huge", cpu="9999"), namespace)
            wait_until(lambda: roots(collector, "web", "scheduled"), 20, "the trace of the pod that is placed")
            wait_until(lambda: roots(collector, "huge", "unschedulable"), 20, "the trace of the other one")
            api.create(a_pod("last"), namespace)
            wait_until(lambda: node_of(api.get("Pod", "last", namespace)), 20, "the last pod is bound")
            sent = metric(process.port, "loadmaster_spans_total", result="sent")
            process.stop()

    (root,) = roots(collector, "web", "scheduled")
    spans = collector.of_trace(root.trace)
    stages = {span.name: span for span in spans if span.parent == root.id}
    assert root.resource["service.name"] == "loadmaster-under-test"
    assert root.values["k8s.namespace.name"] == namespace
    assert root.values["k8s.node.name"] == node
    assert list(stages) == ["queue", "scheduling cycle", "binding cycle"]
    assert [span.name for span in spans if span.parent == stages["scheduling cycle"].id] == CYCLE
    assert [span.name for span in spans if span.parent == stages["binding cycle"].id] == BINDING
    assert all(root.start <= span.start <= span.end <= root.end for span in spans)
    assert "Insufficient cpu" in roots(collector, "huge", "unschedulable")[0].values["loadmaster.message"]
    assert sent > 0
    assert roots(collector, "last", "scheduled"), "what was not sent when it was told to stop"
