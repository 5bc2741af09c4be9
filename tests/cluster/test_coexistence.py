"""Loadmaster beside other schedulers, and before kubelets that know better, on a real API server."""

from functools import partial

from tests.cluster.conftest import MakeNodes
from tests.cluster.fresh import loadmaster as loadmaster
from tests.cluster.fresh import rbac as rbac
from tests.cluster.loadmaster import metric, node_of, notes
from tests.controlplane import Client, Component, a_pod, condition, wait_until


def is_refused(api: Client, namespace: str, pod: str) -> bool:
    answer = condition(api.get("Pod", pod, namespace), "PodScheduled")
    return answer is not None and answer["status"] == "False"


def test_room_that_another_scheduler_makes_for_its_pod_is_left_to_it(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1, cpu="1")
    api.create(a_pod("theirs", cpu="800m", scheduler="another"), namespace)
    api.patch("Pod", "theirs", {"status": {"nominatedNodeName": node}}, namespace, subresource="status")
    api.create(a_pod("ours", cpu="800m"), namespace)
    wait_until(lambda: is_refused(api, namespace, "ours"), 10, "the pod is refused")

    api.delete("Pod", "theirs", namespace)

    wait_until(lambda: node_of(api.get("Pod", "ours", namespace)) == node, 20, "the pod is bound")


def test_a_pod_that_the_kubelet_rejects_is_told_and_its_node_left_alone_for_a_moment(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1, cpu="1", annotations={})
    api.create(a_pod("first", cpu="800m"), namespace)
    wait_until(lambda: node_of(api.get("Pod", "first", namespace)) == node, 10, "the pod is bound")

    # As kubelet's rejectPod writes it.
    rejection = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource: cpu"}
    api.patch("Pod", "first", {"status": rejection}, namespace, subresource="status")

    (note,) = wait_until(lambda: notes(api, namespace, "RejectedByKubelet", about="first"), 10, "the event")
    assert note.startswith(f"Node {node} rejected the pod and is left alone for 10s: OutOfcpu")
    rejections = partial(metric, loadmaster.port, "loadmaster_kubelet_rejections_total", reason="OutOfcpu")
    wait_until(lambda: rejections() == 1, 10, "the rejection is counted")
    api.create(a_pod("second", cpu="800m"), namespace)
    wait_until(lambda: is_refused(api, namespace, "second"), 5, "the node is at rest")
    wait_until(lambda: node_of(api.get("Pod", "second", namespace)) == node, 20, "the node is used again")
