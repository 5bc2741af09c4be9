"""Binding on a real API server, under the RBAC that is shipped."""

import signal
import threading
from functools import partial

from tests.cluster.conftest import MakeNodes
from tests.cluster.fresh import loadmaster as loadmaster
from tests.cluster.fresh import rbac as rbac
from tests.cluster.loadmaster import bound, metric, node_of, start
from tests.controlplane import Client, Cluster, Component, ControlPlane, a_pod, condition, wait_until
from tests.controlplane.client import Object


def pods(api: Client, namespace: str) -> list[Object]:
    return list(api.list("Pod", namespace))


def events(api: Client, namespace: str, reason: str) -> list[Object]:
    return [event for event in api.list("events.k8s.io/v1/Event", namespace) if event["reason"] == reason]


def test_a_pod_is_bound_and_its_owner_told(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1)

    api.create(a_pod("web"), namespace)

    wait_until(lambda: bound(api, namespace), 10, "the pod is bound")
    assert node_of(api.get("Pod", "web", namespace)) == node
    (event,) = wait_until(lambda: events(api, namespace, "Scheduled"), 10, "the Scheduled event")
    assert event["note"] == f"Successfully assigned {namespace}/web to {node}"
    assert event["reportingController"] == "loadmaster"
    assert (event["type"], event["action"]) == ("Normal", "Binding")


def test_a_pod_that_fits_nowhere_is_told_why_and_bound_when_a_node_comes(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(2, cpu="1")
    make_nodes(1, taints=[{"key": "special", "value": "yes", "effect": "NoSchedule"}])
    expected = (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )

    api.create(a_pod("big", cpu="4"), namespace)

    (event,) = wait_until(lambda: events(api, namespace, "FailedScheduling"), 10, "the FailedScheduling event")
    assert event["note"] == expected
    scheduled = wait_until(lambda: condition(api.get("Pod", "big", namespace), "PodScheduled"), 10, "the condition")
    assert scheduled is not None
    assert (scheduled["status"], scheduled["reason"], scheduled["message"]) == ("False", "Unschedulable", expected)
    oldest = partial(metric, loadmaster.port, "loadmaster_oldest_pending_pod_age_seconds")
    assert oldest(queue="active") == 0 < oldest(queue="unschedulable") < 60
    (large,) = make_nodes(1, cpu="8")
    wait_until(lambda: node_of(api.get("Pod", "big", namespace)) == large, 15, "the pod is on the new node")


def test_pods_of_other_schedulers_are_left_alone_but_counted(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    full, empty = make_nodes(1, cpu="1")[0], make_nodes(1, cpu="1")[0]
    api.create(a_pod("theirs", cpu="900m", scheduler="somebody-else", nodeName=full), namespace)
    api.create(a_pod("waiting", scheduler="somebody-else"), namespace)

    api.create(a_pod("ours", cpu="500m"), namespace)

    wait_until(lambda: node_of(api.get("Pod", "ours", namespace)) == empty, 10, "our pod is on the empty node")
    assert not node_of(api.get("Pod", "waiting", namespace))


def test_a_pod_deleted_between_decision_and_bind_leaves_nothing_behind(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1, cpu="64", memory="1Ti", pods="1000")
    names = [f"short-{i}" for i in range(200)]
    creating = threading.Thread(
        target=lambda: api.create_many([a_pod(name) for name in names], namespace, concurrency=4)
    )

    creating.start()
    while creating.is_alive() or pods(api, namespace):  # right behind the scheduler: some before their binding
        api.delete_all("Pod", namespace)
    creating.join()

    def left() -> float:
        waiting = metric(loadmaster.port, "scheduler_pending_pods")
        return waiting + metric(loadmaster.port, "scheduler_cache_size", type="assumed_pods")

    wait_until(lambda: left() == 0, 15, "no pod waits or stays assumed")
    wait_until(lambda: metric(loadmaster.port, "scheduler_cache_size", type="pods") == 0, 15, "none is counted")
    api.create(a_pod("after", cpu="60"), namespace)
    wait_until(lambda: node_of(api.get("Pod", "after", namespace)), 10, "the room of the deleted pods is free again")


def test_500_bindings_survive_an_api_server_that_is_away_for_ten_seconds(
    loadmaster: Component, controlplane: ControlPlane, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(10)
    api.create_many([a_pod(f"web-{i}") for i in range(500)], namespace)
    wait_until(lambda: len(bound(api, namespace)) > 20, 20, "the bindings are under way", interval=0.01)

    controlplane.apiserver.kill()
    stopped_with = metric(loadmaster.port, "scheduler_schedule_attempts_total", result="scheduled")
    threading.Event().wait(10)  # the outage itself: ten seconds, as long as the promise says
    controlplane.apiserver.start()

    wait_until(lambda: len(bound(api, namespace)) == 500, 60, f"all 500 bound ({stopped_with} before the outage)")
    wait_until(lambda: metric(loadmaster.port, "scheduler_cache_size", type="assumed_pods") == 0, 30, "none assumed")
    assert metric(loadmaster.port, "scheduler_pending_pods") == 0
    names = [event["regarding"]["name"] for event in events(api, namespace, "Scheduled")]
    assert len(names) == len(set(names)), "nothing was bound twice"


def test_sigterm_in_the_middle_of_bindings_ends_well(
    loadmaster: Component, cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(10)
    api.create_many([a_pod(f"web-{i}") for i in range(500)], namespace)
    wait_until(lambda: len(bound(api, namespace)) > 20, 20, "the bindings are under way", interval=0.01)

    loadmaster.send_signal(signal.SIGTERM)
    wait_until(lambda: not loadmaster.running, 35, "the process has ended")

    assert loadmaster.exit_code == 0
    with start(cluster, name="loadmaster-again"):
        wait_until(lambda: len(bound(api, namespace)) == 500, 30, "the next one binds the rest")
