"""ResourceClaims on a real API server, with slices made by hand in place of a driver."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.devices import CLAIM, DRIVER, a_claim, device_class, devices_on, wait_bound, wait_refused
from tests.cluster.fresh import loadmaster as loadmaster
from tests.cluster.fresh import rbac as rbac
from tests.controlplane import Client, Component, a_pod
from tests.controlplane.client import Object

BIG = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'


@pytest.fixture(scope="module", autouse=True)
def gpu_class(api: Client) -> Iterator[None]:
    parameters = {"apiVersion": "v1", "kind": "Config", "mode": "fast"}
    with device_class(api, "gpu", config=[{"opaque": {"driver": DRIVER, "parameters": parameters}}]):
        yield


@pytest.fixture
def gpu_node(api: Client, make_nodes: MakeNodes) -> Iterator[str]:
    """A node with a small and a big device, beside one without any."""
    node, _ = make_nodes(2)
    devices = [{"name": f"gpu-{size}", "capacity": {"memory": {"value": f"{size}Gi"}}} for size in (20, 80)]
    with devices_on(api, node, devices):
        yield node


def claim_spec(expression: str = BIG) -> Object:
    exactly = {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def with_claim(name: str, claim: str) -> Object:
    pod: Object = a_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def test_a_claim_is_allocated_and_reserved(api: Client, loadmaster: Component, namespace: str, gpu_node: str) -> None:
    api.create(a_claim("mine", claim_spec()), namespace)
    api.create(with_claim("first", "mine"), namespace)

    assert wait_bound(api, namespace, "first") == gpu_node
    claim = api.get(CLAIM, "mine", namespace)
    allocation = claim["status"]["allocation"]
    assert allocation["devices"]["results"] == [
        {"request": "gpu", "driver": DRIVER, "pool": gpu_node, "device": "gpu-80"}
    ]
    assert [(each["source"], each.get("requests")) for each in allocation["devices"]["config"]] == [("FromClass", None)]
    here = {"key": "metadata.name", "operator": "In", "values": [gpu_node]}
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [here]}]}
    assert "resource.kubernetes.io/delete-protection" in claim["metadata"]["finalizers"]
    uid = api.get("Pod", "first", namespace)["metadata"]["uid"]
    assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "first", "uid": uid}]


@pytest.mark.kubernetes(
    since="1.36", reason="the time of an allocation: the feature gate DRADeviceBindingConditions is off before 1.36"
)
def test_an_allocation_has_its_time(api: Client, loadmaster: Component, namespace: str, gpu_node: str) -> None:
    api.create(a_claim("timed", claim_spec()), namespace)
    api.create(with_claim("first", "timed"), namespace)

    assert wait_bound(api, namespace, "first") == gpu_node
    assert api.get(CLAIM, "timed", namespace)["status"]["allocation"]["allocationTimestamp"]


def test_pods_share_a_claim_and_wait_for_devices_that_others_have(
    api: Client, loadmaster: Component, namespace: str, gpu_node: str
) -> None:
    for name in ("shared", "another"):
        api.create(a_claim(name, claim_spec()), namespace)
    for name in ("one", "two"):
        api.create(with_claim(name, "shared"), namespace)
    for name in ("one", "two"):
        assert wait_bound(api, namespace, name) == gpu_node
    api.create(with_claim("waiting", "another"), namespace)
    wait_refused(api, namespace, "waiting", "cannot allocate all claims")
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
    api.create(a_claim("later", claim_spec()), namespace)

    assert wait_bound(api, namespace, "early") == gpu_node
    made = api.get("Pod", "templated", namespace)["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    results = [
        api.get(CLAIM, name, namespace)["status"]["allocation"]["devices"]["results"] for name in (made, "later")
    ]
    assert [[each["device"] for each in one] for one in results] == [["gpu-20"], ["gpu-80"]]
