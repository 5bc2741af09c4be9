"""Nodes like one that is there: what they have, and what comes with them."""

from typing import Any

import pytest

from scheduler.framework.errors import ConfigError
from scheduler.simulate.what_if.added_nodes import with_nodes
from scheduler.simulate.what_if.screen import lines_of
from tests.unit.simulate.what_if.world import (
    A_DEVICE,
    DEVICES,
    Json,
    a_claim_spec,
    a_class,
    a_node,
    a_pod,
    a_slice,
    a_spec,
    a_volume,
    a_workload,
    an_object,
    asked,
    cluster_with,
    on,
    placed,
)


def added(*objects: Json, number: int = 1, like: str = "n1") -> Any:
    cluster, names = with_nodes(cluster_with(*objects), number, like)
    return [node for node in cluster.nodes if node.name in names]


def test_they_have_new_names_and_the_labels_of_the_model_and_in_these_its_name_unless_others_have_it_too() -> None:
    labels = {"pool": "n1", "disk": "a", "topology.example.com/node": "n1"}

    first, second = added(a_node("n1", zone="z", labels=labels), a_node("n1-added-1", labels={"pool": "n1"}), number=2)

    assert (first.name, second.name) == ("n1-added-2", "n1-added-3")
    assert first.labels == {
        "kubernetes.io/hostname": "n1-added-2",
        "topology.kubernetes.io/zone": "z",
        "pool": "n1",
        "disk": "a",
        "topology.example.com/node": "n1-added-2",
    }
    assert first.metadata.uid != second.metadata.uid


@pytest.mark.parametrize(
    "passing",
    [
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/unreachable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "ToBeDeletedByClusterAutoscaler",
        "startup-taint.cluster-autoscaler.kubernetes.io/cni",
    ],
)
def test_they_are_neither_cordoned_nor_in_trouble(passing: str) -> None:
    taints = [
        {"key": passing, "effect": "NoSchedule"},
        {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/our-own", "effect": "NoSchedule"},
    ]
    model = a_node("n1", unschedulable=True, taints=taints)
    model["status"]["conditions"] = [
        {"type": "Ready", "status": "Unknown"},
        {"type": "MemoryPressure", "status": "True"},
    ]

    (node,) = added(model)

    kept = [taint.key for taint in node.taints]
    assert (node.spec.unschedulable, kept) == (False, ["dedicated", "node.kubernetes.io/our-own"])
    assert [(each.type, each.status) for each in node.status.conditions] == [("Ready", "True")]


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
    assert document["whatIf"]["added"] == {"like": "n1", "nodes": ["n1-added-1"], "without": {}}


@pytest.mark.parametrize(("remove", "nodes"), [((), ["n1", "n1-added-1", "n1-added-2"]), (("n1",), ["n1-added-1"])])
def test_the_pods_of_a_new_daemon_set_wait_for_them_too_also_where_the_model_goes(
    remove: tuple[str, ...], nodes: list[str]
) -> None:
    daemons = a_workload("DaemonSet", "d", a_spec())

    pods = asked(a_node("n1"), daemons, add=1 if remove else 2, like="n1", remove=remove)["pods"]

    assert sorted(pod["node"] for pod in pods) == nodes


def test_they_take_as_many_volumes_as_the_model() -> None:
    drivers = [{"name": "p", "nodeID": "n1", "allocatable": {"count": 1}}]
    nodes = an_object("CSINode", "storage.k8s.io/v1", "n1", spec={"drivers": drivers})
    storage = a_class(mode="WaitForFirstConsumer")
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": a_claim_spec()}}}

    document = asked(a_node("n1"), nodes, storage, a_pod("p", volumes=[volume]), add=2, like="n1", fill=True)

    told = document["whatIf"]["copies"]
    assert told["nodes"] == {"n1": 1, "n1-added-1": 1, "n1-added-2": 1}
    assert "node(s) exceed max volume count" in told["next"]["message"]


def test_they_have_the_devices_of_the_model() -> None:
    template = an_object("ResourceClaimTemplate", "resource.k8s.io/v1", "t", spec={"spec": A_DEVICE})
    pod = a_pod("p", resourceClaims=[{"name": "g", "resourceClaimTemplateName": "t"}])

    document = asked(a_node("n1"), a_slice("n1"), DEVICES, template, pod, add=1, like="n1", fill=True)

    assert document["whatIf"]["copies"]["nodes"] == {"n1": 1, "n1-added-1": 1}


def test_there_is_an_end_to_the_pods_that_come_with_them() -> None:
    daemons = (on("n1", f"agent-{number}", "DaemonSet", f"agent-{number}", cpu=0) for number in range(11))

    with pytest.raises(ConfigError) as caught:
        asked(a_node("n1"), *daemons, add=100_000, like="n1")

    assert caught.value.problems == (
        "--add-nodes 100000: 11 pods come with each, and a simulation takes 1,000,000 of them",
    )


def test_a_node_may_be_replaced_by_others_like_it() -> None:
    web = on("n1", "web", "ReplicaSet", "web")

    assert placed(asked(a_node("n1"), web, add=1, like="n1", remove=("n1",))) == {"default/web": "n1-added-1"}


def others(*objects: Json) -> list[Json]:
    """What is there for n1-added-1."""
    cluster, _ = with_nodes(cluster_with(a_node("n1"), *objects), 1, "n1")
    return [dict(obj.content) for obj in cluster.others if obj.content["metadata"]["name"] == "n1-added-1"]


def test_they_are_as_busy_as_what_nothing_runs_on() -> None:
    usage = {"cpu": "3900m", "memory": "6Gi"}
    metrics = an_object("NodeMetrics", "metrics.k8s.io/v1beta1", "n1", timestamp="2026-01-01T00:00:00Z", usage=usage)

    (copy,) = others(metrics)

    assert copy == {**metrics, "metadata": {"name": "n1-added-1"}, "usage": {"cpu": "0", "memory": "0"}}


@pytest.mark.parametrize(("written", "free"), [({"allocatable": "4"}, "4"), ({}, "1")])
def test_all_of_their_numa_nodes_is_free_as_far_as_their_size_is_known(written: Json, free: str) -> None:
    zone = {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "available": "1", **written}]}
    topology = an_object("NodeResourceTopology", "topology.node.k8s.io/v1alpha2", "n1", zones=[zone])

    (copy,) = others(topology)

    assert copy["zones"][0]["resources"][0]["available"] == free


def test_storage_that_is_on_the_model_alone_is_named_and_not_there_again() -> None:
    of_n1 = {"matchLabels": {"topology.example.com/node": "n1"}}
    capacity = an_object("CSIStorageCapacity", "storage.k8s.io/v1", "c", nodeTopology=of_n1, storageClassName="s")
    anywhere = an_object("PersistentVolume", "v1", "anywhere", spec={})
    volumes = a_volume("local", "n1"), a_volume("both", "n1", "n2"), a_volume("other", "n2"), anywhere

    told = asked(a_node("n1"), a_node("n2"), *volumes, capacity, add=1, like="n1")["whatIf"]

    assert told["added"]["without"] == {"PersistentVolume": 1, "CSIStorageCapacity": 1}
    assert "  without what is on n1 alone: 1 CSIStorageCapacity, 1 PersistentVolume" in list(lines_of(told))
