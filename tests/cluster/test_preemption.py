"""Preemption on a real API server: who goes, what is told, and how soon the pod runs."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.fresh import loadmaster as loadmaster
from tests.cluster.fresh import rbac as rbac
from tests.cluster.loadmaster import metric, node_of, prioritised
from tests.controlplane import Client, Cluster, Component, a_pod, condition, wait_until
from tests.controlplane.client import Object

LOW, HIGH = "preemption-low", "preemption-high"


@pytest.fixture(scope="module", autouse=True)
def priorities(cluster: Cluster) -> Iterator[None]:
    with prioritised(cluster, {LOW: 10, HIGH: 1000}):
        yield


def a_running_pod(api: Client, namespace: str, name: str, cpu: str, **labels: str) -> str:
    """Create a pod of low priority and return its node once it is bound."""
    pod = a_pod(name, cpu=cpu, priorityClassName=LOW, terminationGracePeriodSeconds=0)
    pod["metadata"]["labels"] = labels
    api.create(pod, namespace)
    return wait_until(lambda: node_of(api.get("Pod", name, namespace)), 10, f"{name} is bound")


def a_high_pod(cpu: str) -> Object:
    return a_pod("high", cpu=cpu, priorityClassName=HIGH)


def notes(api: Client, namespace: str, reason: str) -> dict[str, str]:
    """Pod → note of its event."""
    every = api.list("events.k8s.io/v1/Event", namespace)
    return {event["regarding"]["name"]: event["note"] for event in every if event["reason"] == reason}


def test_a_pod_takes_the_place_of_a_lower_one(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1, cpu="4")
    a_running_pod(api, namespace, "low", "3")
    # Without a grace period the victim would be gone before anybody could look at it.
    api.patch("Pod", "low", {"metadata": {"finalizers": ["example.com/look-at-me"]}}, namespace)

    began = time.monotonic()
    uid = api.create(a_high_pod("2"), namespace)["metadata"]["uid"]
    going = wait_until(lambda: deleting(api, "low", namespace), 10, "the victim goes")
    assert going is not None
    nominated = api.get("Pod", "high", namespace)

    target = condition(going, "DisruptionTarget")
    assert target is not None
    assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
    assert target["message"] == "loadmaster: preempting to accommodate a higher priority pod"
    wait_until(lambda: notes(api, namespace, "Preempted"), 10, "the event")
    assert notes(api, namespace, "Preempted") == {"low": f"Preempted by pod {uid} on node {node}"}
    wait_until(lambda: api.get("Pod", "high", namespace)["status"].get("nominatedNodeName"), 10, "the nomination")
    assert nominated["status"].get("nominatedNodeName", node) == node
    found = f"preemption: found a potential placement for pod on node {node}, preempting 1 victims"
    told = notes(api, namespace, "FailedScheduling")["high"]
    assert told == f"0/1 nodes are available: 1 Insufficient cpu. {found}"
    assert not node_of(api.get("Pod", "high", namespace)), "the victim is still there"

    api.patch("Pod", "low", {"metadata": {"finalizers": None}}, namespace)
    freed = time.monotonic()
    wait_until(lambda: node_of(api.get("Pod", "high", namespace)) == node, 15, "the pod runs", interval=0.01)
    print(f"bound {time.monotonic() - freed:.2f} s after its victim was gone, {time.monotonic() - began:.2f} s in all")
    assert metric(loadmaster.port, "scheduler_preemption_attempts_total") >= 1
    assert metric(loadmaster.port, "scheduler_preemption_victims_sum") == 1
    evictions = partial(metric, loadmaster.port, "scheduler_preemption_goroutines_execution_total", result="success")
    wait_until(lambda: evictions() == 1, 10, "the eviction is counted")


def deleting(api: Client, name: str, namespace: str) -> Object | None:
    pod = api.get("Pod", name, namespace)
    return pod if "deletionTimestamp" in pod["metadata"] else None
