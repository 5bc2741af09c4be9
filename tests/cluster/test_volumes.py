"""Claims that wait for their pod, bound by the cluster's own controller of volumes, with the shipped RBAC."""

import secrets
import time
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import install_rbac, message, node_of, start
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.controlplane.client import Object

NO_PROVISIONER = "kubernetes.io/no-provisioner"
CLASS = "storage.k8s.io/v1/StorageClass"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
HOST = "kubernetes.io/hostname"

SOON = 5.0
"""Seconds from what a pod waits for to its binding. The controller of volumes takes its part of it."""

MakeClass = Callable[[str], str]
MakeVolume = Callable[..., str]


@pytest.fixture(scope="module")
def loadmaster(cluster: Cluster) -> Iterator[Component]:
    install_rbac(cluster)
    with start(cluster) as process:
        yield process


@pytest.fixture
def make_class(api: Client) -> Iterator[MakeClass]:
    """Create a class that waits for the first pod, `make_class(provisioner)`, and return its name."""
    made: list[str] = []

    def make(provisioner: str) -> str:
        name = f"class-{secrets.token_hex(3)}"
        api.create(a_class(name, provisioner))
        made.append(name)
        return name

    yield make
    for name in made:
        api.delete(CLASS, name)


@pytest.fixture
def make_volume(api: Client) -> Iterator[MakeVolume]:
    """Create a volume of a class that one node reaches, `make_volume(class, node, claim)`, and return its name."""
    made: list[str] = []

    def make(class_name: str, node: str, claim: Object | None = None) -> str:
        name = f"volume-{secrets.token_hex(3)}"
        api.create(a_volume(name, class_name, node, claim))
        made.append(name)
        return name

    yield make
    for name in made:
        api.delete("PersistentVolume", name)


def a_class(name: str, provisioner: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Retain",
    }


def a_volume(name: str, class_name: str, node: str, claim: Object | None) -> Object:
    expression = {"key": HOST, "operator": "In", "values": [node]}
    spec: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": class_name,
        "csi": {"driver": "disks.example.com", "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    if claim is not None:
        reference = {key: claim["metadata"][key] for key in ("namespace", "name", "uid")}
        spec["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def a_claim(name: str, class_name: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {**spec, "storageClassName": class_name},
    }


def a_pod_with(claim: str, name: str = "web") -> Object:
    return a_pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


def bound_to(api: Client, namespace: str, pod: str = "web") -> str:
    """Wait until the pod is bound, and return its node."""
    wait_until(lambda: node_of(api.get("Pod", pod, namespace)), 30, f"{pod} is bound", interval=0.01)
    return node_of(api.get("Pod", pod, namespace))


def volume_of(api: Client, namespace: str, claim: str = "data") -> str:
    """The volume of a claim that is bound."""
    found = api.get("PersistentVolumeClaim", claim, namespace)
    assert found["status"]["phase"] == "Bound"
    name: str = found["spec"]["volumeName"]
    return name


def selected_node(api: Client, namespace: str, claim: str = "data") -> str:
    """Wait until a claim has been told its node."""

    def selected() -> str:
        annotations = api.get("PersistentVolumeClaim", claim, namespace)["metadata"].get("annotations", {})
        name: str = annotations.get(SELECTED_NODE, "")
        return name

    wait_until(selected, 10, "the claim has a node", interval=0.01)
    return selected()


def wait_for_available(api: Client, volume: str) -> None:
    """Until the controller has seen a new volume, nobody may use it."""
    wait_until(
        lambda: api.get("PersistentVolume", volume)["status"].get("phase") == "Available", 20, "the volume is free"
    )


def test_a_claim_gets_the_volume_of_the_node_that_its_pod_goes_to(
    loadmaster: Component,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
    make_class: MakeClass,
    make_volume: MakeVolume,
) -> None:
    nodes = make_nodes(3)
    class_name = make_class(NO_PROVISIONER)
    volume = make_volume(class_name, nodes[1])
    wait_for_available(api, volume)
    api.create(a_claim("data", class_name), namespace)

    began = time.monotonic()
    api.create(a_pod_with("data"), namespace)

    assert bound_to(api, namespace) == nodes[1]
    print(f"pod created → claim and pod bound: {(time.monotonic() - began) * 1000:.0f} ms")
    assert time.monotonic() - began < SOON
    assert volume_of(api, namespace) == volume
    reference = api.get("PersistentVolume", volume)["spec"]["claimRef"]
    assert (reference["namespace"], reference["name"]) == (namespace, "data")

    api.create(a_claim("more", class_name), namespace)
    api.create(a_pod_with("more", "second"), namespace)
    expected = "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind."
    wait_until(
        lambda: message(api, "second", namespace).startswith(expected), 10, "the second pod is told why it waits"
    )


def test_a_volume_is_made_on_the_node_that_was_selected(
    loadmaster: Component,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
    make_class: MakeClass,
    make_volume: MakeVolume,
) -> None:
    make_nodes(3)
    class_name = make_class("disks.example.com")
    claim = api.create(a_claim("data", class_name), namespace)
    api.create(a_pod_with("data"), namespace)

    node = selected_node(api, namespace)
    assert not node_of(api.get("Pod", "web", namespace)), "the pod waits for its volume"
    made = time.monotonic()
    volume = make_volume(class_name, node, claim)

    assert bound_to(api, namespace) == node
    print(f"volume made → claim and pod bound: {(time.monotonic() - made) * 1000:.0f} ms")
    assert time.monotonic() - made < SOON
    assert volume_of(api, namespace) == volume
