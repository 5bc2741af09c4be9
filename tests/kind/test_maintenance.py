"""What is done to nodes: one is drained, and one stops and comes back, with the replica that leads on it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.controlplane import Client, wait_until
from tests.kind.cluster import NODES, KindCluster
from tests.kind.release import HELM_SECONDS
from tests.kind.scheduler import Scheduler
from tests.kind.workloads import (
    HOST,
    a_deployment,
    a_pod,
    apply,
    is_running,
    nodes_of,
    pods_of,
    rollout,
    spread_over,
    wait_running,
)

CONTROL_PLANE, WORKER = NODES[:2]
AWAY_SECONDS = 5
"""For so long pods stay bound to a node that does not answer, once that is known."""
NOTICED_SECONDS = 180.0
"""The controller manager waits 50 s for a heartbeat; then its pods are marked and replaced."""
TAKEN_OVER_SECONDS = 60.0
"""A Lease lasts 15 s, and may have been renewed a moment ago; the standby looks every 2 s."""


@contextmanager
def fewest_running(api: Client, namespace: str, app: str) -> Iterator[list[int]]:
    """Count meanwhile how many pods of an app run; the list has the lowest number at the end."""
    counts: list[int] = []
    ended = threading.Event()

    def count() -> None:
        while not ended.wait(0.2):
            counts.append(sum(is_running(pod) for pod in pods_of(api, namespace, app)))

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    fewest: list[int] = []
    try:
        yield fewest
    finally:
        ended.set()
        thread.join()
        fewest.append(min(counts))


def budget(app: str, available: int) -> dict[str, object]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": app}}},
    }


def test_the_node_of_the_leader_is_drained_and_the_budget_is_kept(
    cluster: KindCluster, loadmaster: Scheduler, api: Client, namespace: str
) -> None:
    constraints = [spread_over(HOST, "web", "ScheduleAnyway")]
    apply(cluster, namespace, a_deployment("web", 4, topologySpreadConstraints=constraints), budget("web", 3))
    rollout(cluster, namespace, "deployment/web")
    drained, leader = node_of_leader(loadmaster), loadmaster.holder
    there_before = nodes_of(pods_of(api, namespace, "web")).count(drained)

    with fewest_running(api, namespace, "web") as fewest:
        drain = ("drain", drained, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=170s")
        cluster.kubectl(*drain, timeout=180)
        wait_running(api, namespace, "web", 4)
    nodes = nodes_of(pods_of(api, namespace, "web"))
    loadmaster.wait_ready(HELM_SECONDS)
    cluster.kubectl("uncordon", drained)
    apply(cluster, namespace, a_pod("back", nodeSelector={HOST: drained}))
    wait_running(api, namespace, "back", 1)

    assert there_before > 0
    assert fewest[0] >= 3
    assert drained not in nodes
    assert loadmaster.holder != leader


@pytest.fixture
def leaders_node(cluster: KindCluster, loadmaster: Scheduler) -> Iterator[str]:
    """The node of the replica that leads, which is not the control plane's; it runs again afterwards."""
    loadmaster.wait_ready(HELM_SECONDS)
    if node_of_leader(loadmaster) == CONTROL_PLANE:
        move_leader_away(cluster, loadmaster)
    node = node_of_leader(loadmaster)
    yield node
    cluster.start_node(node)


def node_of_leader(loadmaster: Scheduler) -> str:
    name: str = loadmaster.pod["spec"]["nodeName"]
    return name


def move_leader_away(cluster: KindCluster, loadmaster: Scheduler) -> None:
    """Have the leader replaced by a pod on another node; the standby leads from then on."""
    node = node_of_leader(loadmaster)
    cluster.kubectl("cordon", node)
    loadmaster.kubectl("delete", "pod", loadmaster.pod_name, "--wait", "--timeout=55s")
    loadmaster.wait_ready(HELM_SECONDS)
    cluster.kubectl("uncordon", node)


def test_a_node_that_stops_with_the_leader_on_it_is_left_and_used_again(
    cluster: KindCluster, loadmaster: Scheduler, api: Client, namespace: str, leaders_node: str
) -> None:
    away = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
        | {"tolerationSeconds": AWAY_SECONDS}
        for key in ("not-ready", "unreachable")
    ]
    constraints = [spread_over(HOST, "web", "ScheduleAnyway")]
    apply(
        cluster,
        namespace,
        a_deployment("web", 4, tolerations=away, topologySpreadConstraints=constraints),
    )
    rollout(cluster, namespace, "deployment/web")
    assert leaders_node in nodes_of(pods_of(api, namespace, "web"))
    leader = loadmaster.holder

    stopped = time.monotonic()
    cluster.stop_node(leaders_node)
    apply(cluster, namespace, a_pod("at-once"))
    wait_until(lambda: nodes_of(pods_of(api, namespace, "at-once")), TAKEN_OVER_SECONDS, "the standby binds")
    taken_over = time.monotonic() - stopped
    cluster.wait_node(leaders_node, ready=False, timeout=NOTICED_SECONDS)
    wait_until(lambda: replaced_elsewhere(api, namespace, leaders_node), NOTICED_SECONDS, "4 pods run elsewhere")
    replaced = time.monotonic() - stopped
    cluster.start_node(leaders_node)
    apply(cluster, namespace, a_pod("back", nodeSelector={HOST: leaders_node}))
    wait_running(api, namespace, "back", 1, 60)

    print(f"taken over after {taken_over:.0f} s, pods replaced after {replaced:.0f} s")
    assert loadmaster.holder != leader
    loadmaster.wait_ready(HELM_SECONDS)


def replaced_elsewhere(api: Client, namespace: str, node: str) -> bool:
    """Whether 4 pods run, none of which is on that node: what was on it runs for the API server until it is evicted."""
    nodes = nodes_of([pod for pod in pods_of(api, namespace, "web") if is_running(pod)])
    return len(nodes) == 4 and node not in nodes
