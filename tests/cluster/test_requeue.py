"""A waiting pod is bound a tenth of a second after the event that helps it, and no other event brings it back."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cluster.bind_watch import BindWatch
from tests.cluster.loadmaster import metric
from tests.cluster.requeue_stage import Event, Stage, by_label, wait_out_backoff
from tests.controlplane import Client, Cluster, Component, a_node, wait_until

TAINT = {"key": "special", "value": "yes", "effect": "NoSchedule"}
TOLERATION = {"key": "special", "operator": "Exists"}

NO_CPU = "0/1 nodes are available: 1 Insufficient cpu."
NO_LABEL = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
NO_PORT = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."
TAINTED = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
GATED = "Scheduling is blocked due to non-empty scheduling gates"


@pytest.fixture
def stage(cluster: Cluster, loadmaster: Component, api: Client, namespace: str) -> Iterator[Stage]:
    """A stage of the test's own, empty at both ends."""
    with BindWatch(cluster, api, namespace) as watch:
        stage = Stage(api, namespace, loadmaster.port, watch)
        yield stage
        stage.clear()


@pytest.fixture
def priorities(api: Client, namespace: str) -> Iterator[tuple[str, str]]:
    """The names of two classes, the lower one first; neither preempts."""
    made = {f"{namespace}-low": 10, f"{namespace}-high": 1000}
    for name, value in made.items():
        api.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": "Never",
            }
        )
    low, high = made
    yield low, high
    for name in made:
        api.delete("scheduling.k8s.io/v1/PriorityClass", name)


def with_port(port: int) -> dict[str, Any]:
    """Part of a pod's spec: one container on a port of the host."""
    ports = [{"containerPort": 80, "hostPort": port}]
    return {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10", "ports": ports}]}


def test_when_a_taint_is_removed(stage: Stage) -> None:
    def prepare() -> tuple[str, Event]:
        node = stage.node(taints=[TAINT])
        waiting = stage.waiting("web", TAINTED)
        return waiting, lambda: stage.api.patch("Node", node, {"spec": {"taints": None}})

    stage.repeat(prepare)


def test_when_a_pod_is_deleted_that_held_the_room(stage: Stage) -> None:
    def prepare() -> tuple[str, Event]:
        stage.node(cpu="4")
        stage.running("filler", cpu="3")
        waiting = stage.waiting("web", NO_CPU, cpu="2")
        return waiting, lambda: stage.api.delete("Pod", "filler", stage.namespace, grace=0)

    stage.repeat(prepare)


def test_when_a_node_is_added(stage: Stage) -> None:
    def prepare() -> tuple[str, Event]:
        small = stage.node(cpu="1")
        waiting = stage.waiting("web", NO_CPU, cpu="8")
        return waiting, lambda: stage.create_node(a_node(f"{small}-large", cpu="16"))

    stage.repeat(prepare)


def test_when_a_scheduling_gate_is_removed(stage: Stage) -> None:
    def prepare() -> tuple[str, Event]:
        stage.node()
        gates = [{"name": "example.com/wait"}]
        waiting = stage.waiting("web", GATED, reason="SchedulingGated", schedulingGates=gates)
        wait_until(lambda: metric(stage.port, "scheduler_pending_pods", queue="gated") == 1, 10, "the pod is gated")
        remove = [{"op": "remove", "path": "/spec/schedulingGates"}]
        return waiting, lambda: stage.api.patch("Pod", "web", remove, stage.namespace)

    stage.repeat(prepare)


def test_when_a_running_pod_is_scaled_down(stage: Stage) -> None:
    """The test plays the kubelet, which reports what a container really has: that, not the wish, makes the room."""

    def report(cpu: str) -> object:
        actual = {"requests": {"cpu": cpu, "memory": "500Mi"}}
        patch = [{"op": "add", "path": "/status/containerStatuses/0/resources", "value": actual}]
        return stage.api.patch("Pod", "filler", patch, stage.namespace, subresource="status")

    def is_running() -> bool:
        return bool(stage.api.get("Pod", "filler", stage.namespace)["status"].get("containerStatuses"))

    def prepare() -> tuple[str, Event]:
        stage.node(cpu="4")
        stage.running("filler", cpu="3")
        wait_until(is_running, 10, "kwok reports the filler's container")
        report("3")
        waiting = stage.waiting("web", NO_CPU, cpu="2")
        wish = [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "1"}]
        stage.api.patch("Pod", "filler", wish, stage.namespace, subresource="resize")
        return waiting, lambda: report("1")

    stage.repeat(prepare)


def test_the_pod_of_the_highest_priority_gets_the_room(stage: Stage, priorities: tuple[str, str]) -> None:
    low, high = priorities

    def prepare() -> tuple[str, Event]:
        stage.node(cpu="4")
        stage.running("filler", cpu="3", priorityClassName=high)
        for number in range(3):
            stage.waiting(f"low-{number}", NO_CPU, cpu="2", priorityClassName=low)
        waiting = stage.waiting("high", NO_CPU, cpu="2", priorityClassName=high)
        return waiting, lambda: stage.api.delete("Pod", "filler", stage.namespace, grace=0)

    # If one of the others were first, there would be no room for it: the time would run out.
    stage.repeat(prepare)


def test_what_cannot_help_a_waiting_pod_does_not_bring_it_back(stage: Stage) -> None:
    api, namespace, tolerant = stage.api, stage.namespace, (TOLERATION,)
    node = stage.node(cpu="4", taints=[TAINT])
    stage.running("holder", tolerations=tolerant, **with_port(8080))
    stage.waiting("tainted", TAINTED)
    stage.waiting("large", NO_CPU, tolerations=tolerant, cpu="8")
    stage.waiting("choosy", NO_LABEL, tolerations=tolerant, nodeSelector={"disk": "ssd"})
    stage.waiting("exposed", NO_PORT, tolerations=tolerant, **with_port(8080))
    marker = stage.waiting("marker", NO_LABEL, tolerations=tolerant, nodeSelector={"marker": "yes"})
    wait_out_backoff()
    tries = "scheduler_schedule_attempts_total"
    attempts, incoming = by_label(stage.port, tries, "result"), stage.incoming()

    for pod in ("tainted", "holder"):
        api.patch("Pod", pod, {"metadata": {"annotations": {"note": "x"}}}, namespace)
    api.patch("Pod", "large", {"metadata": {"labels": {"team": "a"}}}, namespace)
    api.patch("Node", node, {"metadata": {"annotations": {"note": "x"}}})
    api.patch("Node", node, {"metadata": {"labels": {"team": "a"}}})
    api.patch("Node", node, {"spec": {"taints": [TAINT | {"value": "no"}]}})
    api.patch("Node", node, {"status": {"allocatable": {"cpu": "5"}}}, subresource="status")
    heartbeat = {"op": "replace", "path": "/status/conditions/0/lastHeartbeatTime", "value": "2030-01-01T00:00:00Z"}
    api.patch("Node", node, [heartbeat], subresource="status")
    for status in ("True", "False"):
        fan = {"op": "add", "path": "/status/conditions/-", "value": {"type": "FanSlow", "status": status}}
        api.patch("Node", node, [fan], subresource="status")
    api.patch("Node", node, {"metadata": {"labels": {"marker": "yes"}}})  # the node's news come in order
    stage.watch.bound_at(marker)
    wait_until(lambda: metric(stage.port, "scheduler_cache_size", type="assumed_pods") == 0, 10, "the watch has told")

    assert rise(by_label(stage.port, tries, "result"), attempts) == {"scheduled": 1}
    assert rise(stage.incoming(), incoming) == {"NodeUpdateNodeLabel": 1}


def rise(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    return {label: value - before.get(label, 0) for label, value in after.items() if value != before.get(label, 0)}
