"""Extended resources that a DeviceClass stands for, on a real API server, beside kube-scheduler."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from plugins.dynamic_resources.extended.claims import content_of, in_memory, requesting
from plugins.dynamic_resources.extended.requests import claimed_devices
from scheduler.api.pods.pod import pod_from_dict
from scheduler.api.wording.text import to_json
from scheduler.kube.writes.api_writer import has_all
from tests.cluster.conftest import MakeNodes
from tests.cluster.devices import CLAIM, a_claim, device_class, devices_on, wait_bound
from tests.cluster.fresh import loadmaster as loadmaster
from tests.cluster.fresh import rbac as rbac
from tests.cluster.loadmaster import metric, start
from tests.controlplane import Client, Cluster, Component, ControlPlane, a_pod
from tests.controlplane.client import Object

GPU = "example.com/gpu"

pytestmark = pytest.mark.kubernetes(
    since="1.36", reason="devices for extended resources: the feature gate DRAExtendedResource is off before 1.36"
)


@pytest.fixture(scope="module", autouse=True)
def gpu_class(api: Client) -> Iterator[None]:
    with device_class(api, "gpu", extendedResourceName=GPU):
        yield


@pytest.fixture
def gpu_node(api: Client, make_nodes: MakeNodes) -> Iterator[str]:
    """A node with four devices."""
    [node] = make_nodes(1)
    with devices_on(api, node, [{"name": f"gpu-{i}"} for i in range(4)]):
        yield node


def asking(name: str, gpus: int, resource: str = GPU, init: int = 0, scheduler: str = "loadmaster") -> Object:
    """A pod of which the container asks for so many, and an init container before it."""
    pod: Object = a_pod(name, resources={resource: str(gpus)}, scheduler=scheduler)
    if init:
        [main] = pod["spec"]["containers"]
        pod["spec"]["initContainers"] = [{**main, "name": "init", "resources": {"limits": {resource: str(init)}}}]
    return pod


def its_claim(api: Client, namespace: str, pod: str) -> Object:
    status = api.get("Pod", pod, namespace)["status"]["extendedResourceClaimStatus"]
    return api.get(CLAIM, status["resourceClaimName"], namespace)


def comparable(api: Client, namespace: str, pod: str) -> Any:
    """What a scheduler made for a pod, without names, times and UIDs that differ from pod to pod."""
    claim, status = its_claim(api, namespace, pod), api.get("Pod", pod, namespace)["status"]
    metadata = claim["metadata"]
    claim["status"]["allocation"].pop("allocationTimestamp")
    for result in claim["status"]["allocation"]["devices"]["results"]:
        result.pop("device")
    return {
        "name": re.sub(r"-[0-9a-z]{5}$", "", metadata["name"]).replace(pod, "POD"),
        "annotations": metadata["annotations"],
        "finalizers": metadata["finalizers"],
        "owners": [{**owner, "name": "POD", "uid": ""} for owner in metadata["ownerReferences"]],
        "spec": claim["spec"],
        "allocation": claim["status"]["allocation"],
        "reserved for": [{**each, "name": "POD", "uid": ""} for each in claim["status"]["reservedFor"]],
        "mappings": status["extendedResourceClaimStatus"]["requestMappings"],
    }


@pytest.mark.parametrize("resource", [GPU, "deviceclass.resource.kubernetes.io/gpu"])
def test_the_claim_is_the_one_that_kube_scheduler_makes(
    api: Client, controlplane: ControlPlane, loadmaster: Component, namespace: str, gpu_node: str, resource: str
) -> None:
    with controlplane.start_kube_scheduler():
        for name, scheduler in (("ours", "loadmaster"), ("theirs", "default-scheduler")):
            api.create(asking(name, 1, resource, 2, scheduler), namespace)
            assert wait_bound(api, namespace, name) == gpu_node

    assert comparable(api, namespace, "ours") == comparable(api, namespace, "theirs")
    devices = [
        each["device"]
        for name in ("ours", "theirs")
        for each in its_claim(api, namespace, name)["status"]["allocation"]["devices"]["results"]
    ]
    assert sorted(devices) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    creations = "dynamic_resource_allocation_resourceclaim_creates_total"
    assert metric(loadmaster.port, creations, status="success", owner_api_kind="Pod") == 1


def test_a_claim_that_was_left_behind_is_replaced(api: Client, cluster: Cluster, namespace: str, gpu_node: str) -> None:
    pod = api.create(asking("again", 4), namespace)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "again", "uid": pod["metadata"]["uid"], "controller": True}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 4}
    claim = a_claim(
        "left-behind",
        {"devices": {"requests": [{"name": "container-0-request-0", "exactly": exactly}]}},
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        ownerReferences=[owner],
        finalizers=["resource.kubernetes.io/delete-protection"],
    )
    api.create(claim, namespace)

    with start(cluster):
        assert wait_bound(api, namespace, "again") == gpu_node
        assert its_claim(api, namespace, "again")["metadata"]["name"] != "left-behind"
        names = [each["metadata"]["name"] for each in api.list(CLAIM, namespace)]
    assert "left-behind" not in names


def test_a_claim_is_recognised_as_ours_when_the_answer_to_its_creation_was_lost(
    api: Client, namespace: str, gpu_node: str
) -> None:
    pod = pod_from_dict(api.create(asking("doubtful", 2, init=3), namespace))
    claim = requesting(in_memory(pod), claimed_devices(pod, {GPU: "gpu"}).requests)
    content = content_of(pod, claim)

    api.create(content, namespace)

    # Whatever the API server adds or fills in: otherwise a second claim would be created.
    stored = api.get(CLAIM, content["metadata"]["name"], namespace)
    assert has_all(stored, json.loads(to_json(content)))
    assert not has_all(stored, json.loads(to_json({**content, "spec": {}, "metadata": {"name": "another"}})))
