"""Taints and devices behind feature gates, on a real API server that has these on: beside kube-scheduler."""

import os
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.cluster.devices import CLAIM, DRIVER, a_claim, device_class, wait_bound, wait_refused
from tests.cluster.loadmaster import install_rbac, start
from tests.controlplane import Client, ControlPlane, Settings, a_node, a_pod
from tests.controlplane.client import Object
from tests.controlplane.versions import OWN, chosen

GATES: Final = ",".join(
    f"{gate}=true"
    for gate in (
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "TaintTolerationComparisonOperators",
    )
)
SCHEDULERS: Final = ("default-scheduler", "loadmaster")
CORES: Final = "cores.example.com"
TAGS, COLOUR, NEAR = (f"{DRIVER}/{name}" for name in ("tags", "colour", "near"))
SLA: Final = {"key": "sla", "value": "999", "effect": "NoSchedule"}

pytestmark = pytest.mark.skipif(chosen(os.environ) != OWN, reason="feature gates that only our version has")


@pytest.fixture(scope="module")
def admin() -> Iterator[Client]:
    """A node with devices for each scheduler, which both run."""
    settings = Settings(controller_manager=True, kwok=True).with_feature_gates(GATES, "api/all")
    flag = f"--feature-gates={GATES}"
    with ControlPlane(settings) as plane, plane.client() as client:
        install_rbac(plane)
        plane.create_namespace("gated")
        for scheduler in SCHEDULERS:
            node = a_node(scheduler, taints=[SLA])
            node["status"]["declaredFeatures"] = ["DRANodeAllocatableResources", "DRAOptionalNodeOperations"]
            client.create(node)
            client.create_many([*slices(scheduler), cores(scheduler)])
        with (
            device_class(client, "parts"),
            device_class(client, "cores", selectors=[{"cel": {"expression": f'device.driver == "{CORES}"'}}]),
            plane.start_kube_scheduler(further=[flag]),
            start(plane, flag),
        ):
            yield client


def slices(node: str) -> list[Object]:
    """Three devices on one counter set: the first has a tag in common with each other one, a group with the last."""
    spec: Object = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 2},
    }
    counters = [{"name": "chip", "counters": {"slots": {"value": "4"}}}]
    devices = [part("0", ["fast", "new"], "a"), part("1", ["fast"], "b"), part("2", ["new"], "a")]
    parts: Object = {"devices": devices, "skipNodeOperations": ["*"]}
    specs: Object = {"counters": {"sharedCounters": counters}, "parts": parts}
    return [
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": f"{node}-{name}"}}
        | {"spec": spec | more}
        for name, more in specs.items()
    ]


def part(name: str, tags: list[str], group: str) -> Object:
    drawn = {"counterSet": "chip", "counters": {"slots": {"value": "1"}}, "compatibilityGroups": [group]}
    attributes = {TAGS: {"strings": tags}, COLOUR: {"string": "red"}}
    return {"name": f"part-{name}", "attributes": attributes, "consumesCounters": [drawn]}


def cores(node: str) -> Object:
    """Two devices, each of which stands for 8 of a node's 32 cores, and costs memory."""
    pool = {"name": f"cores-{node}", "generation": 1, "resourceSliceCount": 1}
    amounts = {"cpu": {"mapping": {"deviceMultiplier": "8"}}, "memory": {"overhead": {"perContainer": "1Gi"}}}
    devices = [{"name": f"core-{i}", "nodeAllocatableResources": amounts} for i in range(2)]
    spec = {"driver": CORES, "nodeName": node, "pool": pool, "devices": devices}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-cores"},
        "spec": spec,
    }


def a_tolerant_pod(name: str, scheduler: str, above: str, **spec: Any) -> Object:
    toleration = {"key": "sla", "operator": "Gt", "value": above, "effect": "NoSchedule"}
    return a_pod(name, scheduler=scheduler, tolerations=[toleration], **spec)


def test_a_pod_tolerates_what_is_above_its_number(admin: Client) -> None:
    for scheduler in SCHEDULERS:
        admin.create(a_tolerant_pod(f"{scheduler}-900", scheduler, "900"), "gated")
        admin.create(a_tolerant_pod(f"{scheduler}-1000", scheduler, "1000"), "gated")

    for scheduler in SCHEDULERS:
        assert wait_bound(admin, "gated", f"{scheduler}-900") in SCHEDULERS
        wait_refused(admin, "gated", f"{scheduler}-1000", "2 node(s) had untolerated taint(s)")


def test_devices_match_by_lists_derived_attributes_and_groups(admin: Client) -> None:
    derived = {"name": NEAR, "expression": f'device.attributes["{DRIVER}"].colour'}
    exactly = {"deviceClassName": "parts", "allocationMode": "ExactCount", "count": 2, "derivedAttributes": [derived]}
    constraints = [{"matchAttribute": TAGS}, {"matchAttribute": NEAR}]
    allocated: dict[str, list[Object]] = {}
    for scheduler in SCHEDULERS:
        spec = {"devices": {"requests": [{"name": "two", "exactly": exactly}], "constraints": constraints}}
        admin.create(a_claim(scheduler, spec), "gated")
        claims = [{"name": "parts", "resourceClaimName": scheduler}]
        there = {"kubernetes.io/hostname": scheduler}
        admin.create(a_tolerant_pod(scheduler, scheduler, "900", resourceClaims=claims, nodeSelector=there), "gated")
        wait_bound(admin, "gated", scheduler)
        results = admin.get(CLAIM, scheduler, "gated")["status"]["allocation"]["devices"]["results"]
        allocated[scheduler] = [{key: value for key, value in each.items() if key != "pool"} for each in results]

    theirs, ours = (allocated[scheduler] for scheduler in SCHEDULERS)
    assert ours == theirs
    assert [each["device"] for each in ours] == ["part-0", "part-2"]
    assert all(each["skipNodeOperations"] == ["*"] for each in ours)


def test_devices_take_of_their_node_what_they_stand_for(admin: Client) -> None:
    exactly = {"deviceClassName": "cores", "allocationMode": "ExactCount", "count": 2}
    statuses: list[Object] = []
    for scheduler in SCHEDULERS:
        there: Object = {"nodeSelector": {"kubernetes.io/hostname": scheduler}}
        name, too_large = f"cores-{scheduler}", f"large-{scheduler}"
        admin.create(a_claim(name, {"devices": {"requests": [{"name": "two", "exactly": exactly}]}}), "gated")
        claims = [{"name": "cores", "resourceClaimName": name}]
        pod = a_tolerant_pod(name, scheduler, "900", resourceClaims=claims, **there)
        pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "cores"}], "requests": {"cpu": "8"}}
        admin.create(pod, "gated")
        wait_bound(admin, "gated", name)
        statuses += admin.get("Pod", name, "gated")["status"]["nodeAllocatableResourceClaimStatuses"]
        large = a_tolerant_pod(too_large, scheduler, "900", **there)
        large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "9"}}
        admin.create(large, "gated")

    for scheduler in SCHEDULERS:
        wait_refused(admin, "gated", f"large-{scheduler}", "Insufficient cpu")
    theirs, ours = ({key: each[key] for key in each if key != "resourceClaimName"} for each in statuses)
    assert ours == theirs
    assert ours["mapping"] == [{"name": "cpu", "quantity": "16"}]
    assert ours["overhead"] == [{"name": "memory", "perContainer": "2Gi"}]
