"""Pods of a Deployment behind a Service are spread over nodes by default: where real controllers' replicas end up."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.cluster.loadmaster import node_of
from tests.cluster.requeue_stage import Stage, pause
from tests.controlplane import a_pod, wait_until

REPLICAS = 12
WEB = {"app": "web"}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": WEB, "ports": [{"port": 80}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": REPLICAS,
        "selector": {"matchLabels": WEB},
        "template": {"metadata": {"labels": WEB}, "spec": a_pod("web")["spec"]},
    },
}


@pytest.fixture(autouse=True)
def _no_controller_is_left(stage: Stage) -> Iterator[None]:
    """Nothing makes pods any more when the stage is cleared."""
    yield
    for kind in ("apps/v1/Deployment", "apps/v1/ReplicaSet"):
        stage.api.delete_all(kind, stage.namespace)
        wait_until(lambda kind=kind: not stage.api.list(kind, stage.namespace), 15, f"no {kind} is left")  # type: ignore[misc]


def test_replicas_behind_a_service_are_spread_over_nodes_by_default(stage: Stage) -> None:
    nodes = [stage.node(cpu=cpu) for cpu in ("64", "4", "4")]  # the resource plugins alone would take the large one
    stage.api.create(SERVICE, stage.namespace)
    pause()  # it comes by another watch than the pods

    stage.api.create(DEPLOYMENT, stage.namespace)
    wait_until(lambda: len(stage.watch.bound) == REPLICAS, 20, "all replicas are bound")

    found = Counter(node_of(pod) for pod in stage.api.list("Pod", stage.namespace))
    assert found == dict.fromkeys(nodes, REPLICAS // len(nodes))
