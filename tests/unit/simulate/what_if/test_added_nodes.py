"""Nodes like one that is there: what they have, and what comes with them."""

from typing import Any

from scheduler.simulate.what_if.added_nodes import with_nodes
from tests.unit.simulate.what_if.test_drain import DEVICES, a_slice
from tests.unit.simulate.what_if.world import Json, a_node, a_pod, a_spec, a_workload, asked, cluster_with, on, placed


def added(*objects: Json, number: int = 1, like: str = "n1") -> Any:
    cluster, names = with_nodes(cluster_with(*objects), number, like)
    return [node for node in cluster.nodes if node.name in names]


def test_they_have_new_names_and_the_labels_of_the_model() -> None:
    labels = {"pool": "a", "topology.example.com/node": "n1"}

    first, second = added(a_node("n1", zone="z", labels=labels), a_node("n1-added-1"), number=2)

    assert (first.name, second.name) == ("n1-added-2", "n1-added-3")
    assert first.labels == {
        "kubernetes.io/hostname": "n1-added-2",
        "topology.kubernetes.io/zone": "z",
        "pool": "a",
        "topology.example.com/node": "n1-added-2",
    }
    assert first.metadata.uid != second.metadata.uid


def test_they_are_neither_cordoned_nor_in_trouble() -> None:
    taints = [
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    ]

    (node,) = added(a_node("n1", unschedulable=True, taints=taints))

    assert (node.spec.unschedulable, [taint.key for taint in node.taints]) == (False, ["dedicated"])


def test_only_pods_that_each_node_has_come_with_them_and_take_their_room() -> None:
    document = asked(
        a_node("n1"),
        on("n1", "agent", "DaemonSet", "agent", cpu=1),
        on("n1", "static", "Node", "n1", cpu=1),
        on("n1", "web", "ReplicaSet", "web", cpu=2),
        a_pod("p"),
        add=1,
        like="n1",
        fill=True,
    )

    assert document["whatIf"]["copies"]["nodes"] == {"n1-added-1": 2}
    assert document["whatIf"]["added"] == {"like": "n1", "nodes": ["n1-added-1"]}


def test_the_pods_of_a_new_daemon_set_wait_for_them_too() -> None:
    daemons = a_workload("DaemonSet", "d", a_spec())

    pods = asked(a_node("n1"), daemons, add=2, like="n1")["pods"]

    assert sorted(pod["node"] for pod in pods) == ["n1", "n1-added-1", "n1-added-2"]


def test_they_take_as_many_volumes_as_the_model() -> None:
    driver = "d.example.com"
    nodes: Json = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": [{"name": driver, "nodeID": "n1", "allocatable": {"count": 1}}]},
    }
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "s"},
        "provisioner": driver,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}

    document = asked(a_node("n1"), nodes, storage, a_pod("p", volumes=[volume]), add=2, like="n1", fill=True)

    told = document["whatIf"]["copies"]
    assert told["nodes"] == {"n1": 1, "n1-added-1": 1, "n1-added-2": 1}
    assert "node(s) exceed max volume count" in told["next"]["message"]


def test_they_have_the_devices_of_the_model() -> None:
    template: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}},
    }
    pod = a_pod("p", resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}])

    document = asked(a_node("n1"), a_slice("n1"), DEVICES, template, pod, add=1, like="n1", fill=True)

    assert document["whatIf"]["copies"]["nodes"] == {"n1": 1, "n1-added-1": 1}


def test_a_node_may_be_replaced_by_others_like_it() -> None:
    web = on("n1", "web", "ReplicaSet", "web")

    assert placed(asked(a_node("n1"), web, add=1, like="n1", remove=("n1",))) == {"default/web": "n1-added-1"}
