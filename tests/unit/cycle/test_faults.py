"""A fault at any step of any handler costs nothing: after the next comparison, all is as though it had not been.

Each change is reported to an engine again and again, each time with a fault one call later, until none is left to fail.
What is believed after the comparison must equal what an engine believes that was not disturbed, what one pod's fault
has done to others included; and the same pods must be placed at the next occasion.

All steps take minutes: `LOADMASTER_FAULTS=1 pytest tests/unit/cycle/test_faults.py`. Otherwise some of them are tried.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.unit.cycle.faults import Raw, World

Change = Callable[[World], None]

STRIDE: Final = int(os.environ.get("LOADMASTER_FAULTS", "60"))
SECOND_STRIDE: Final = 4 * STRIDE

PROFILE: Final = "default-scheduler"
HOSTNAME: Final = "kubernetes.io/hostname"


@pytest.fixture(autouse=True)
def no_tracebacks() -> Iterator[None]:
    """Thousands of faults are logged: formatting them takes longer than all the rest."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def a_pod(name: str, cpu: str = "1", labels: Any = None, **spec: Any) -> Raw:
    metadata = {"name": name, "namespace": "default", "labels": labels or {"app": "web"}}
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}, "ports": spec.pop("ports", [])}
    return {
        "metadata": metadata,
        "spec": {"schedulerName": PROFILE, "containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def a_node(name: str, cpu: str = "4", uid: str = "", taints: Any = (), images: Any = ()) -> Raw:
    metadata = {"name": name, "labels": {HOSTNAME: name, "zone": "a"}, **({"uid": uid} if uid else {})}
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "110"}
    return {
        "metadata": metadata,
        "spec": {"taints": list(taints)},
        "status": {"allocatable": allocatable, "images": list(images)},
    }


def a_claim(name: str, device: str = "") -> Raw:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    status: Raw = {}
    if device:
        result = {"request": "gpu", "driver": "d", "pool": "n1", "device": device}
        status = {"allocation": {"devices": {"results": [result]}}}
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"devices": {"requests": [request]}}, "status": status}


def a_slice(name: str, node: str, *devices: str) -> Raw:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": [{"name": device} for device in devices]}
    return {"metadata": {"name": name}, "spec": spec}


def a_volume(name: str, claim: str = "") -> Raw:
    spec: Raw = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "slow"}
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim, "uid": f"uid-{claim}"}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Bound" if claim else "Available"}}


def a_volume_claim(name: str, volume: str = "") -> Raw:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"], "resources": resources, "volumeName": volume}
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return {"metadata": {"name": name, "namespace": "default", "annotations": annotations}, "spec": spec}


def a_capacity(name: str, capacity: str = "10Gi") -> Raw:
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "storageClassName": "slow", "nodeTopology": {}, "capacity": capacity}


def prepare(world: World) -> None:
    """Two nodes, one full; pods that run, are assumed, wait for room, for a gate, for a device and for a volume."""
    world.put("nodes", a_node("n1", "4", images=[{"names": ["web:1"], "sizeBytes": 1000}]))
    world.put("nodes", a_node("n2", "1", taints=[{"key": "old", "effect": "PreferNoSchedule"}]))
    storage_class = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "kubernetes.io/no-provisioner"}
    world.put("storageclasses", {"metadata": {"name": "slow"}, **storage_class})
    world.put("persistentvolumes", a_volume("used", "data"))
    world.put("persistentvolumeclaims", a_volume_claim("data", "used"))
    world.put("persistentvolumeclaims", a_volume_claim("more"))
    world.put("csistoragecapacities", a_capacity("room"))
    world.put("deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
    world.put("resourceslices", a_slice("s1", "n1", "d1"))
    world.put("resourceclaims", a_claim("taken", "d1"))
    world.put("resourceclaims", a_claim("wanted"))
    away = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}
    world.put(
        "pods",
        a_pod(
            "runs",
            "2",
            nodeName="n1",
            ports=[{"hostPort": 80, "containerPort": 80}],
            volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
            affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}},
        ),
    )
    world.put("pods", a_pod("assumed", "1"))
    world.schedule()
    world.put("pods", a_pod("gated", "1", schedulingGates=[{"name": "g"}]))
    world.put("pods", a_pod("big", "4"))
    world.put("pods", a_pod("nominated", "3", priority=5))
    world.put("pods", a_pod("needs device", "0", resourceClaims=[{"name": "c", "resourceClaimName": "wanted"}]))
    world.put(
        "pods", a_pod("needs volume", "0", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "more"}}])
    )
    world.put("pods", a_pod("db", "0", labels={"app": "db"}, nodeSelector={HOSTNAME: "n1"}))
    world.put("pods", a_pod("foreign", "1", schedulerName="other") | {"status": {"nominatedNodeName": "n2"}})
    world.schedule()
    world.change("pods", "nominated", status={"nominatedNodeName": "n1"})
    world.engine.clock.advance(11)
    world.check()


CHANGES: Final[dict[str, Change]] = {
    "a pod comes": lambda world: world.put("pods", a_pod("new", "1")),
    "a pod comes with a node": lambda world: world.put("pods", a_pod("elsewhere", "1", nodeName="n1")),
    "a pod comes before its node": lambda world: world.put("pods", a_pod("early", "1", nodeName="n9")),
    "a pod that runs gets other labels": lambda world: world.change("pods", "runs", metadata={"labels": {"app": "x"}}),
    "a pod that runs is deleted": lambda world: world.remove("pods", "runs"),
    "a pod that runs ends": lambda world: world.change("pods", "runs", status={"phase": "Succeeded"}),
    "a pod that runs asks for less": lambda world: world.change(
        "pods", "runs", spec={"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    ),
    "a pod that waits is bound by somebody": lambda world: world.change("pods", "big", spec={"nodeName": "n2"}),
    "a pod that waits is deleted": lambda world: world.remove("pods", "big"),
    "a pod that waits gets another priority": lambda world: world.change("pods", "big", spec={"priority": 7}),
    "a nominated pod is deleted": lambda world: world.remove("pods", "nominated"),
    "a nomination ends": lambda world: world.change("pods", "nominated", status={"nominatedNodeName": ""}),
    "a foreign nomination ends": lambda world: world.change("pods", "foreign", status={"nominatedNodeName": ""}),
    "a gate opens": lambda world: world.change("pods", "gated", spec={"schedulingGates": []}),
    "an assumed pod is confirmed": lambda world: world.change(
        "pods",
        "assumed",
        spec={"nodeName": world.engine.cache.get("uid-assumed").node_name},  # type: ignore[union-attr]
    ),
    "an assumed pod is bound elsewhere": lambda world: world.change("pods", "assumed", spec={"nodeName": "n9"}),
    "an assumed pod is deleted": lambda world: world.remove("pods", "assumed"),
    "an assumed pod gets other labels": lambda world: world.change(
        "pods", "assumed", metadata={"labels": {"app": "x"}}
    ),
    "a node comes": lambda world: world.put("nodes", a_node("n3", "8", images=[{"names": ["web:1"], "sizeBytes": 5}])),
    "a node grows": lambda world: world.put("nodes", a_node("n1", "16")),
    "a node loses its taint": lambda world: world.change("nodes", "n2", spec={"taints": []}),
    "a node gets other labels": lambda world: world.change("nodes", "n2", metadata={"labels": {"zone": "b"}}),
    "a node with pods is deleted": lambda world: world.remove("nodes", "n1"),
    "a node without pods is deleted": lambda world: world.remove("nodes", "n2"),
    "a node is made again": lambda world: world.put("nodes", a_node("n2", "8", uid="another")),
    "a device comes": lambda world: world.put("resourceslices", a_slice("s2", "n2", "d1")),
    "a slice gets more devices": lambda world: world.put("resourceslices", a_slice("s1", "n1", "d1", "d2")),
    "a slice is deleted": lambda world: world.remove("resourceslices", "s1"),
    "a claim is allocated": lambda world: world.put("resourceclaims", a_claim("wanted", "d1")),
    "a device is freed": lambda world: world.put("resourceclaims", a_claim("taken")),
    "a claim is deleted": lambda world: world.remove("resourceclaims", "taken"),
    "an allocated claim comes": lambda world: world.put("resourceclaims", a_claim("other", "d1")),
    "a volume comes": lambda world: world.put("persistentvolumes", a_volume("free")),
    "a volume is released": lambda world: world.put("persistentvolumes", a_volume("used")),
    "a volume is deleted": lambda world: world.remove("persistentvolumes", "used"),
    "a claim gets its volume": lambda world: world.put("persistentvolumeclaims", a_volume_claim("more", "used")),
    "a volume claim is deleted": lambda world: world.remove("persistentvolumeclaims", "more"),
    "there is less storage": lambda world: world.put("csistoragecapacities", a_capacity("room", "1Ki")),
    "storage is gone": lambda world: world.remove("csistoragecapacities", "room"),
    "a CSI node comes": lambda world: world.put("csinodes", {"metadata": {"name": "n1"}, "spec": {"drivers": []}}),
}


class Outcome:
    """What an engine believes after a change and a comparison, and whom it places then."""

    def __init__(self, events: asyncio.AbstractEventLoop, change: Change, fails_at: int = 0, then: int = 0) -> None:
        world = World(events)
        try:
            prepare(world)
            world.injector.calls, world.injector.fails_at, world.injector.then = 0, fails_at, then
            change(world)
            self.calls = world.injector.calls
            world.injector.fails_at = 0
            world.engine.cache.mend()  # as the next decision does
            self.handler_failed = bool(world.failed)
            """Else the fault stayed at a plugin boundary, where kube-scheduler says what it means."""
            for _ in range(3):
                world.compare()
            self.tables = world.tables()
            world.engine.wait(11)
            world.schedule()
            self.placed = world.tables()["assumed"]
            if self.handler_failed:
                world.check()
        finally:
            world.close()


@pytest.fixture(scope="module")
def events() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # generators that are closed
@pytest.mark.parametrize("number", range(len(CHANGES)), ids=CHANGES.keys())
def test_a_fault_at_any_step_is_made_up_for(events: asyncio.AbstractEventLoop, number: int) -> None:
    change = list(CHANGES.values())[number]
    undisturbed = Outcome(events, change)
    assert undisturbed.calls > 15
    for fails_at in range(1 + number % STRIDE, undisturbed.calls + 1, STRIDE):
        assert_equal(Outcome(events, change, fails_at), undisturbed, fails_at)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", range(len(CHANGES)), ids=CHANGES.keys())
def test_a_second_fault_while_the_first_is_put_right_is_made_up_for_too(
    events: asyncio.AbstractEventLoop, number: int
) -> None:
    change = list(CHANGES.values())[number]
    undisturbed = Outcome(events, change)
    for then in (1, 4, 30):
        for fails_at in range(1 + (number + then) % SECOND_STRIDE, undisturbed.calls + 1, SECOND_STRIDE):
            assert_equal(Outcome(events, change, fails_at, then), undisturbed, fails_at)


def assert_equal(disturbed: Outcome, undisturbed: Outcome, fails_at: int) -> None:
    assert disturbed.tables == undisturbed.tables, fails_at
    if disturbed.handler_failed:
        assert disturbed.placed == undisturbed.placed, fails_at
