"""Preemption on real nodes: a victim ends as it likes within its grace period, and only then its place is taken."""

import json
import time
from collections.abc import Iterator

import pytest

from tests.controlplane import Client, Cluster, wait_until
from tests.controlplane.client import Object, Objects
from tests.kind.cluster import NODES
from tests.kind.workloads import SOON, a_deployment, a_pod, apply, is_running, pods_of, wait_running

WORKERS = NODES[1:]
ON_WORKERS = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}]}
            ]
        }
    }
}
"""What runs on the control plane's node leaves less than half of it."""
SHUTDOWN_SECONDS = 5
MORE_THAN_HALF = 0.51
"""Of a node's cpu: a second pod that asks for so much needs the place of the first."""


@pytest.fixture
def important(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A priority class."""
    cluster.kubectl("create", "priorityclass", namespace, "--value=1000")
    yield namespace
    cluster.kubectl("delete", "priorityclass", namespace)


def milli_cpu(api: Client, node: str) -> int:
    """The cpu that a node offers, in thousandths."""
    cpu: str = api.get("Node", node)["status"]["allocatable"]["cpu"]
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000


def leaving(api: Client, namespace: str) -> Objects:
    return [pod for pod in api.list("Pod", namespace) if "deletionTimestamp" in pod["metadata"]]


def test_a_victim_ends_gracefully_before_its_place_is_taken(
    cluster: Cluster, api: Client, namespace: str, important: str
) -> None:
    cpu = f"{int(milli_cpu(api, WORKERS[0]) * MORE_THAN_HALF)}m"
    slow = a_deployment(
        "low",
        len(WORKERS),
        *("netexec", f"--delay-shutdown={SHUTDOWN_SECONDS}"),
        cpu=cpu,
        affinity=ON_WORKERS,
        terminationGracePeriodSeconds=30,
    )
    apply(cluster, namespace, slow)
    wait_running(api, namespace, "low", len(WORKERS))

    apply(cluster, namespace, a_pod("high", cpu=cpu, affinity=ON_WORKERS, priorityClassName=important))
    victims = wait_until(lambda: leaving(api, namespace), SOON, "a victim")
    asked = time.monotonic()
    nominated = wait_until(lambda: status(api, namespace, "high").get("nominatedNodeName"), SOON, "the nomination")
    bound_early = "nodeName" in api.get("Pod", "high", namespace)["spec"]
    wait_running(api, namespace, "high", 1)

    assert time.monotonic() - asked >= SHUTDOWN_SECONDS - 1
    assert not bound_early
    assert [pod["spec"]["nodeName"] for pod in victims] == [nominated]
    assert api.get("Pod", "high", namespace)["spec"]["nodeName"] == nominated
    events = json.loads(cluster.kubectl("events", f"--namespace={namespace}", "--output=json"))
    preempted = [each for each in events["items"] if each["reason"] == "Preempted"]
    assert [each["involvedObject"]["name"] for each in preempted] == [victims[0]["metadata"]["name"]]
    assert sum(is_running(pod) for pod in pods_of(api, namespace, "low")) == len(WORKERS) - 1


def status(api: Client, namespace: str, pod: str) -> Object:
    found: Object = api.get("Pod", pod, namespace)["status"]
    return found
