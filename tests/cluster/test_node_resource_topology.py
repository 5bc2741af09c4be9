"""NodeResourceTopologyMatch on the real control plane: the real resource, and its rule besides the shipped RBAC."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.contrib.node_resource_topology.fingerprint import pod_fingerprint
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import defined, granted, message, node_of, start, with_plugin
from tests.controlplane import Client, Cluster, a_pod, wait_until
from tests.controlplane.client import Object
from tests.controlplane.definitions import NODE_RESOURCE_TOPOLOGY

PLUGIN = "NodeResourceTopologyMatch"
TOPOLOGY = "topology.node.k8s.io/v1alpha2/NodeResourceTopology"


@pytest.fixture(scope="module", autouse=True)
def definition(cluster: Cluster) -> Iterator[None]:
    with defined(cluster, NODE_RESOURCE_TOPOLOGY), granted(cluster, PLUGIN, "topology.node.k8s.io"):
        yield


def a_topology(node: str, *cpus: int, scope: str = "container", pods: list[tuple[str, str]] | None = None) -> Object:
    """What a node's agent writes: cores that are left in each NUMA node, and the pods that it knows of."""
    attributes = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": scope}
    if pods is not None:
        attributes["nodeTopologyPodsFingerprint"] = pod_fingerprint(pods)
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [
                {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
                for name, amount in (("cpu", str(cpu)), ("memory", "8Gi"))
            ],
        }
        for number, cpu in enumerate(cpus)
    ]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": node},
        "attributes": [{"name": name, "value": value} for name, value in attributes.items()],
        "zones": zones,
    }


def a_guaranteed_pod(name: str, cpu: int) -> Object:
    pod = a_pod(name)
    amounts = {"cpu": str(cpu), "memory": "1Gi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return pod


@pytest.fixture
def topologies(cluster: Cluster, api: Client) -> Iterator[None]:
    yield
    cluster.kubectl("delete", "noderesourcetopologies", "--all")


def bound(api: Client, pod: str, namespace: str) -> str:
    wait_until(lambda: node_of(api.get("Pod", pod, namespace)), 20, f"{pod} is bound")
    return node_of(api.get("Pod", pod, namespace))


@pytest.mark.parametrize(("scope", "refusal"), [("container", "cannot align container"), ("pod", "cannot align pod")])
def test_a_pod_runs_where_one_numa_node_has_room_for_it(
    cluster: Cluster,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
    tmp_path: Path,
    topologies: None,
    scope: str,
    refusal: str,
) -> None:
    split, whole = make_nodes(2, cpu="16")
    api.create(a_topology(split, 2, 2, scope=scope))
    api.create(a_topology(whole, 4, 4, scope=scope))
    with start(cluster, with_plugin(tmp_path, PLUGIN)):
        api.create(a_guaranteed_pod("fits", 3), namespace)
        where = bound(api, "fits", namespace)
        api.create(a_guaranteed_pod("too-large", 5), namespace)
        wait_until(lambda: f"2 {refusal}" in message(api, "too-large", namespace), 20, "it is told why it waits")

        api.patch(TOPOLOGY, split, {"zones": a_topology(split, 6, 2)["zones"]})
        then = bound(api, "too-large", namespace)

    assert (where, then) == (whole, split)


def test_two_pods_are_not_given_the_same_cores_before_the_agent_knows_of_the_first(
    cluster: Cluster, api: Client, namespace: str, make_nodes: MakeNodes, tmp_path: Path, topologies: None
) -> None:
    (node,) = make_nodes(1, cpu="16")
    api.create(a_topology(node, 4))
    with start(cluster, with_plugin(tmp_path, PLUGIN, {"cacheResyncPeriodSeconds": 1})):
        api.create(a_guaranteed_pod("first", 3), namespace)
        bound(api, "first", namespace)
        wait_until(lambda: api.get("Pod", "first", namespace)["status"].get("phase") == "Running", 20, "it runs")
        api.create(a_guaranteed_pod("second", 3), namespace)
        wait_until(lambda: "cannot align container" in message(api, "second", namespace), 20, "the second one waits")

        known = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in running_on(cluster, node)]
        newest = a_topology(node, 5, pods=known)
        api.patch(TOPOLOGY, node, {"attributes": newest["attributes"], "zones": newest["zones"]})
        bound(api, "second", namespace)


def running_on(cluster: Cluster, node: str) -> list[Object]:
    listed = cluster.kubectl("get", "pods", "-A", f"--field-selector=spec.nodeName={node}", "-o", "json")
    return [each for each in json.loads(listed)["items"] if each["status"].get("phase") == "Running"]
