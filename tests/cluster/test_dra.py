"""ResourceClaims on a real API server, with slices made by hand in place of a driver."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import install_rbac, node_of, start
from tests.controlplane import Client, Cluster, Component, a_pod, condition, wait_until
from tests.controlplane.client import Object

DRIVER = "gpu.example.com"
CLAIM, SLICE, CLASS = (f"resource.k8s.io/v1/{kind}" for kind in ("ResourceClaim", "ResourceSlice", "DeviceClass"))
BIG = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'


@pytest.fixture(scope="module", autouse=True)
def rbac(cluster: Cluster) -> None:
    install_rbac(cluster)


@pytest.fixture
def loadmaster(cluster: Cluster) -> Iterator[Component]:
    with start(cluster) as process:
        yield process


@pytest.fixture(scope="module", autouse=True)
def device_class(api: Client) -> Iterator[None]:
    spec = {
        "selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}],
        "config": [
            {"opaque": {"driver": DRIVER, "parameters": {"apiVersion": "v1", "kind": "Config", "mode": "fast"}}}
        ],
    }
    api.create({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec})
    yield
    api.delete(CLASS, "gpu")


@pytest.fixture
def gpu_node(api: Client, make_nodes: MakeNodes) -> Iterator[str]:
    """A node with a small and a big device, beside one without any."""
    node, _ = make_nodes(2)
    devices = [{"name": f"gpu-{size}", "capacity": {"memory": {"value": f"{size}Gi"}}} for size in (20, 80)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    api.create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec})
    yield node
    api.delete(SLICE, node)


def claim_spec(expression: str) -> Object:
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def a_claim(name: str, expression: str = BIG) -> Object:
    metadata = {"name": name}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": claim_spec(expression),
    }


def with_claim(name: str, claim: str) -> Object:
    pod: Object = a_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def wait_bound(api: Client, namespace: str, name: str) -> str:
    return wait_until(lambda: node_of(api.get("Pod", name, namespace)), 15, f"{name} is bound")


def test_a_claim_is_allocated_and_reserved(api: Client, loadmaster: Component, namespace: str, gpu_node: str) -> None:
    api.create(a_claim("mine"), namespace)
    api.create(with_claim("first", "mine"), namespace)

    assert wait_bound(api, namespace, "first") == gpu_node
    claim = api.get(CLAIM, "mine", namespace)
    allocation = claim["status"]["allocation"]
    assert allocation["devices"]["results"] == [
        {"request": "gpu", "driver": DRIVER, "pool": gpu_node, "device": "gpu-80"}
    ]
    assert [(each["source"], each["requests"]) for each in allocation["devices"]["config"]] == [("FromClass", ["gpu"])]
    here = {"key": "metadata.name", "operator": "In", "values": [gpu_node]}
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [here]}]}
    assert allocation["allocationTimestamp"]
    assert "resource.kubernetes.io/delete-protection" in claim["metadata"]["finalizers"]
    uid = api.get("Pod", "first", namespace)["metadata"]["uid"]
    assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "first", "uid": uid}]


def test_pods_share_a_claim_and_wait_for_devices_that_others_have(
    api: Client, loadmaster: Component, namespace: str, gpu_node: str
) -> None:
    for name in ("shared", "another"):
        api.create(a_claim(name), namespace)
    for name in ("one", "two"):
        api.create(with_claim(name, "shared"), namespace)
    for name in ("one", "two"):
        assert wait_bound(api, namespace, name) == gpu_node
    api.create(with_claim("waiting", "another"), namespace)

    def refusal() -> str:
        found = condition(api.get("Pod", "waiting", namespace), "PodScheduled")
        return "" if found is None else str(found["message"])

    assert "cannot allocate all claims" in wait_until(refusal, 15, "the pod is refused")
    for name in ("one", "two"):
        api.delete("Pod", name, namespace)
    # Kubernetes' own controller takes the devices back from a claim that nobody uses.
    assert wait_bound(api, namespace, "waiting") == gpu_node


def test_a_claim_is_made_from_a_template_and_a_missing_one_is_waited_for(
    api: Client, loadmaster: Component, namespace: str, gpu_node: str
) -> None:
    pod: Object = a_pod("templated", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "template"}])
    api.create(pod, namespace)
    api.create(with_claim("early", "later"), namespace)
    api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "template"},
            "spec": {"spec": claim_spec("true")},
        },
        namespace,
    )
    assert wait_bound(api, namespace, "templated") == gpu_node
    api.create(a_claim("later"), namespace)

    assert wait_bound(api, namespace, "early") == gpu_node
    made = api.get("Pod", "templated", namespace)["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    results = [
        api.get(CLAIM, name, namespace)["status"]["allocation"]["devices"]["results"] for name in (made, "later")
    ]
    assert [[each["device"] for each in one] for one in results] == [["gpu-20"], ["gpu-80"]]


def test_what_kubernetes_adds_to_cel_selects_devices(
    api: Client, loadmaster: Component, namespace: str, gpu_node: str
) -> None:
    parts = (
        'cidr("10.0.0.0/8").containsIP("10.1.2.3")',
        'url("https://example.com:80/").getPort() == "80"',
        'device.driver.find("[a-z]+") == "gpu"',
        "[1, 2].sum() == lists.range(3).max() + 1",
        '{"a": 1}.all(key, value, value == 1)',
        "sets.contains([1, 2], [1])",
        BIG,
    )
    api.create(a_claim("particular", " && ".join(parts)), namespace)
    api.create(with_claim("choosy", "particular"), namespace)

    assert wait_bound(api, namespace, "choosy") == gpu_node
    results = api.get(CLAIM, "particular", namespace)["status"]["allocation"]["devices"]["results"]
    assert [each["device"] for each in results] == ["gpu-80"]
