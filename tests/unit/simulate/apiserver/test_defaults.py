from typing import Any

import msgspec
import pytest

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.simulate.apiserver.defaults import (
    ServerPod,
    WrittenNode,
    completed_node,
    completed_pod,
    with_storage_defaults,
)


def pod_of(spec: dict[str, Any], **metadata: str) -> Pod:
    return completed_pod(msgspec.convert({"metadata": {"name": "p", **metadata}, "spec": spec}, ServerPod))


def node_of(status: dict[str, Any]) -> Node:
    return completed_node(msgspec.convert({"metadata": {"name": "n"}, "status": status}, WrittenNode))


def test_a_pod_is_in_the_default_namespace_and_has_the_default_scheduler() -> None:
    pod = pod_of({})

    assert str(pod) == "default/p"
    assert pod.spec.scheduler_name == "default-scheduler"
    assert pod.priority == 0


def test_what_is_written_stays() -> None:
    pod = pod_of({"schedulerName": "a", "priority": 7}, namespace="x", uid="1")

    assert (str(pod), pod.uid, pod.spec.scheduler_name, pod.priority) == ("x/p", "1", "a", 7)


def test_a_uid_depends_on_namespace_and_name_alone() -> None:
    assert pod_of({}).uid == pod_of({"priority": 1}, namespace="default").uid
    assert len({pod_of({}).uid, pod_of({}, namespace="x").uid, node_of({}).metadata.uid}) == 3


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        pytest.param({"limits": {"cpu": "1"}}, {"cpu": 1000}, id="a limit alone is the request"),
        pytest.param({"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}, {"cpu": 100}, id="a request stays"),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Ki"}, "requests": {"cpu": "100m"}},
            {"cpu": 100, "memory": 1024},
            id="each resource for itself",
        ),
        pytest.param({}, {}, id="nothing asked"),
    ],
)
@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_requests_default_to_limits(key: str, resources: dict[str, Any], requests: dict[str, int]) -> None:
    assert pod_of({key: [{"name": "c", "resources": resources}]}).requests == requests


@pytest.mark.parametrize(
    ("pod_level", "container", "requests"),
    [
        pytest.param({"limits": {"cpu": "2"}}, {}, {"cpu": 2000}, id="the limit"),
        pytest.param({"limits": {"cpu": "2"}}, {"cpu": "500m"}, {"cpu": 500}, id="what the containers ask for"),
        pytest.param(
            {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, {"cpu": "500m"}, {"cpu": 1000}, id="the request"
        ),
    ],
)
def test_a_pod_as_a_whole_asks_for(pod_level: Any, container: Any, requests: dict[str, int]) -> None:
    spec = {"resources": pod_level, "containers": [{"name": "c", "resources": {"requests": container}}]}

    assert pod_of(spec).requests == requests


def test_on_the_hosts_network_container_ports_are_host_ports() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081, "protocol": "UDP"}]

    pod = pod_of({"hostNetwork": True, "containers": [{"name": "c", "ports": ports}]})

    assert [(port.protocol, port.port) for port in pod.host_ports] == [("TCP", 80), ("UDP", 8081)]


@pytest.mark.parametrize(
    ("status", "allocatable"),
    [
        pytest.param({"capacity": {"cpu": "4"}}, {"cpu": "4"}, id="its capacity"),
        pytest.param({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}, {"cpu": "3"}, id="what it says"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_a_node_can_allocate(status: dict[str, Any], allocatable: dict[str, str] | None) -> None:
    assert node_of(status).status.allocatable == allocatable


@pytest.mark.parametrize(
    ("written", "completed"),
    [
        ({"kind": "StorageClass"}, {"volumeBindingMode": "Immediate"}),
        ({"kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"}, {}),
        ({"kind": "PersistentVolume", "spec": {}}, {"status": {"phase": "Available"}}),
        ({"kind": "PersistentVolume", "spec": None, "status": None}, {"status": {"phase": "Available"}}),
        ({"kind": "PersistentVolume", "spec": {"claimRef": {"name": "data"}}}, {"status": {"phase": "Bound"}}),
        ({"kind": "PersistentVolume", "status": {"phase": "Released"}}, {}),
        ({"kind": "Service"}, {}),
    ],
)
def test_what_volumes_and_classes_leave_out_is_filled_in(written: dict[str, Any], completed: dict[str, Any]) -> None:
    assert with_storage_defaults(written) == written | completed
