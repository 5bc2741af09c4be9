"""Extended resources that a DeviceClass stands for: from the pod's request to a claim of its own, and back."""

import asyncio
import dataclasses
from typing import Any

import numpy as np
import pytest

from plugins.dynamic_resources.allocation.catalog import catalog_of
from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.claim_writer import WriteFailed
from plugins.dynamic_resources.extended.resources import extended_resources_of
from plugins.dynamic_resources.plugin import (
    CANNOT_FIT,
    DELETED,
    NOT_ALLOCATABLE,
    NOTHING_TO_DEALLOCATE,
    STALE_CLAIM,
    DynamicResources,
)
from plugins.node_resources.fit import NodeResourcesFit, ScoringStrategy
from plugins.node_resources.scoring import ResourceSpec
from scheduler import framework as fw
from scheduler.api.decoding import reread
from scheduler.api.devices import CLAIM_FINALIZER, EXTENDED_CLAIM_ANNOTATION, DeviceClass, ResourceClaim
from scheduler.framework.errors import ApiError
from scheduler.process.metrics import Metrics
from scheduler.runtime.handle import PluginColumns
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.objects import ObjectStore
from scheduler.testing import a_container, a_node, a_pod, started
from tests.fakes import sample, settle
from tests.unit.plugins import devices
from tests.unit.plugins.cluster import a_cluster, refusals
from tests.unit.plugins.devices import DRIVER, Api, a_claim, a_class, a_device, a_slice, a_world, allocated, put

GPU, IMPLICIT = "example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"
GPU_CLASS = a_class("gpu", f'device.driver == "{DRIVER}"', extendedResourceName=GPU)
NODES = a_cluster(a_node("n1"), a_node("n2"), a_node("own", allocatable={GPU: "4", "pods": "10"}))
GPUS = (a_slice("n1", a_device("d0"), a_device("d1")), a_slice("n2", a_device("d0")))


def asking(name: str = "p", gpus: str = "1", resource: str = GPU, **more: str) -> fw.Pod:
    return a_pod(name, uid=name, containers=[a_container("main", requests={resource: gpus, **more})])


class Attempt(devices.Attempt):
    """One pod's way through the plugin, on nodes of which one offers the resource itself."""

    def __init__(self, plugin: DynamicResources, pod: fw.Pod, nodes: NodeTable = NODES) -> None:
        super().__init__(plugin, pod, nodes)

    def take(self, name: str) -> None:
        self.refusals()
        assert self.reserve(name) is None


class Activator:
    def __init__(self) -> None:
        self.activated: list[str] = []

    def activate(self, uids: Any) -> None:
        self.activated += uids


def a_plugin(*objects: Any) -> tuple[DynamicResources, ObjectStore, Api]:
    handle, store, api = a_world(*objects)
    plugin = started(DynamicResources(), dataclasses.replace(handle, activator=Activator()))
    plugin._writer._sleep = plugin._extended_writer._sleep = lambda seconds: asyncio.sleep(0)
    return plugin, store, api


def activated(plugin: DynamicResources) -> list[str]:
    assert isinstance(plugin.handle.activator, Activator)
    return plugin.handle.activator.activated


def creates(plugin: DynamicResources, status: str) -> float:
    """How many creations of claims were counted."""
    assert isinstance(plugin.handle.metrics, Metrics)
    labels = {"status": status, "admin_access": "false", "owner_api_group": "", "owner_api_kind": "Pod"}
    return sample(plugin.handle.metrics, "dynamic_resource_allocation_resourceclaim_creates_total", **labels)


def claims_of(store: ObjectStore) -> list[ResourceClaim]:
    return list(store.list(fw.RESOURCE_CLAIM))


def earlier(name: str = "earlier", owner: str = "p", **status: Any) -> ResourceClaim:
    """A claim that an earlier attempt of a pod has made."""
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"claim-{name}",
        "resourceVersion": "1",
        "annotations": {EXTENDED_CLAIM_ANNOTATION: "true", "other": "x"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}],
        "finalizers": [CLAIM_FINALIZER],
    }
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "container-0-request-0", "exactly": exactly}]}}
    return reread({"metadata": metadata, "spec": spec, "status": status}, ResourceClaim)


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
def test_devices_are_looked_for_where_a_node_does_not_offer_the_resource(resource: str) -> None:
    plugin, _, _ = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking(gpus="2", resource=resource))

    refused = attempt.refusals()

    assert attempt.pre_filter is None
    # A node that offers it is NodeResourcesFit's.
    assert refused == {"n2": NOT_ALLOCATABLE} | ({"own": NOT_ALLOCATABLE} if resource == IMPLICIT else {})


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(asking(gpus="0"), id="asks for none"),
        pytest.param(asking(resource="example.com/other"), id="asks for another"),
        pytest.param(asking(resource="cpu"), id="asks for none that is extended"),
    ],
)
def test_other_pods_are_nothing_to_it(pod: fw.Pod) -> None:
    plugin, _, _ = a_plugin(*GPUS, GPU_CLASS)

    assert Attempt(plugin, pod).pre_filter == fw.SKIP
    assert plugin.sign(pod) == ()


def test_a_resource_that_nobody_has_fits_nowhere() -> None:
    plugin, _, _ = a_plugin(*GPUS, GPU_CLASS)
    known = a_node("known", allocatable={"example.com/other": "0", "pods": "9"})
    nodes = a_cluster(a_node("n1"), known)
    attempt = Attempt(plugin, asking(**{"example.com/other": "1"}), nodes)

    assert attempt.refusals() == {"n1": CANNOT_FIT, "known": NOT_ALLOCATABLE}


def test_nothing_is_taken_on_a_node_that_offers_the_resource() -> None:
    plugin, _, _ = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking())

    attempt.take("own")

    assert not catalog_of(plugin.handle).allocations.allocated().whole


async def test_a_claim_is_created_allocated_and_told_to_the_pod() -> None:
    plugin, store, api = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking())
    attempt.take("n1")

    await attempt.pre_bind("n1")

    [claim] = claims_of(store)
    [created] = api.created
    assert created["metadata"] == {
        "namespace": "default",
        "name": claim.metadata.name,
        "generateName": "p-extended-resources-",
        "annotations": {EXTENDED_CLAIM_ANNOTATION: "true"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}],
    }
    assert claim.metadata.name.startswith("p-extended-resources-")
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    assert created["spec"] == {"devices": {"requests": [{"name": "container-0-request-0", "exactly": exactly}]}}
    allocation = claim.status.allocation
    assert allocation is not None
    assert [(each.request, each.pool, each.device) for each in allocation.devices.results or ()] == [
        ("container-0-request-0", "n1", "d0")
    ]
    assert [each.uid for each in claim.status.reserved_for or ()] == ["p"]
    assert claim.metadata.finalizers == (CLAIM_FINALIZER,)
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-0"}
    told = {"resourceClaimName": claim.metadata.name, "requestMappings": [mapping]}
    assert api.pod_patches == [{"metadata": {"uid": "p"}, "status": {"extendedResourceClaimStatus": told}}]
    assert creates(plugin, "success") == 1


async def test_a_pod_is_not_bound_whose_claim_an_older_api_server_does_not_let_it_have() -> None:
    plugin, store, api = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking())
    attempt.take("n1")
    api.drops_pod_status = True

    with pytest.raises(WriteFailed, match="the API server dropped it: its feature gate DRAExtendedResource is off"):
        await attempt.pre_bind("n1")
    attempt.unreserve("n1")
    await settle()

    assert len(api.pod_patches) == len(api.created) == 1
    assert claims_of(store) == []
    assert not catalog_of(plugin.handle).allocations.allocated().whole


async def test_devices_are_taken_from_the_decision_on_whatever_the_watch_shows() -> None:
    plugin, _, api = a_plugin(*GPUS, GPU_CLASS)
    api.late = True
    attempt = Attempt(plugin, asking())
    taken = catalog_of(plugin.handle).allocations.allocated().whole

    attempt.take("n2")
    reserved = dict(taken)
    await attempt.pre_bind("n2")
    written = dict(taken)
    api.show()

    assert reserved == written == taken == {(DRIVER, "n2", "d0"): 1}
    assert "n2" in Attempt(plugin, asking("other")).refusals()


async def test_devices_of_a_claim_that_never_shows_are_free_after_two_minutes() -> None:
    plugin, _, api = a_plugin(*GPUS, GPU_CLASS)
    allocations = catalog_of(plugin.handle).allocations
    allocations._now = lambda: 1000.0
    api.late = True
    attempt = Attempt(plugin, asking())
    attempt.take("n1")
    await attempt.pre_bind("n1")

    allocations._now = lambda: 1119.0
    before = dict(catalog_of(plugin.handle).allocations.allocated().whole)
    allocations._now = lambda: 1121.0

    assert list(before) == [(DRIVER, "n1", "d0")]
    assert catalog_of(plugin.handle).allocations.allocated().whole == {}


async def test_a_claim_that_cannot_be_created_leaves_nothing_behind() -> None:
    plugin, store, api = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking())
    attempt.take("n1")
    api.errors = [ApiError(403, "exceeded quota")]

    with pytest.raises(WriteFailed, match=r"create claim for extended resources .*: exceeded quota"):
        await attempt.pre_bind("n1")
    attempt.unreserve("n1")
    await settle()

    assert claims_of(store) == []
    assert api.deleted == []
    assert not catalog_of(plugin.handle).allocations.allocated().whole
    assert creates(plugin, "failure") == 1


async def test_a_pod_that_asks_for_no_number_of_devices_is_not_bound() -> None:
    plugin, _, api = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking(gpus="9223372036854775807"))  # beyond what Go reads as an int64 at once
    attempt.take("n1")

    with pytest.raises(WriteFailed, match="nil or empty request mappings"):
        await attempt.pre_bind("n1")

    assert api.created == []
    assert catalog_of(plugin.handle).allocations._in_flight == {}


@pytest.mark.parametrize(
    ("amounts", "refused"),
    [
        pytest.param(("9223372036854775807", "5"), {"n1", "n2"}, id="to a negative number"),
        pytest.param(("9223372036854775807", "9223372036854775807", "2"), set(), id="to none"),
    ],
)
def test_a_pod_whose_amounts_overflow_asks_for_devices_all_the_same(
    amounts: tuple[str, ...], refused: set[str]
) -> None:
    plugin, _, _ = a_plugin(*GPUS, GPU_CLASS)
    containers = [a_container(f"c{i}", requests={GPU: amount}) for i, amount in enumerate(amounts)]
    pod = a_pod("p", uid="p", containers=containers)
    attempt = Attempt(plugin, pod)

    assert (attempt.pre_filter, plugin.sign(pod)) == (None, None)
    assert attempt.refusals() == dict.fromkeys(refused, NOT_ALLOCATABLE)


def test_requests_of_which_the_sum_overflows_are_refused() -> None:
    plugin, _, _ = a_plugin(*GPUS, GPU_CLASS)
    containers = [a_container(f"c{i}", requests={GPU: "5000000000000000k"}) for i in range(2)]
    attempt = Attempt(plugin, a_pod("p", uid="p", containers=containers))

    with pytest.raises(DevicesError, match="adding 5000000000000000000 devices exceeds the claim limit of 32"):
        attempt.refusals()


async def test_a_name_that_is_taken_is_replaced_by_another() -> None:
    plugin, store, api = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking())
    attempt.take("n1")
    api.errors = [ApiError(409, "already exists")]

    await attempt.pre_bind("n1")

    first, second = (each["metadata"]["name"] for each in api.created)
    assert first != second == claims_of(store)[0].metadata.name


@pytest.mark.parametrize(
    "fails", [pytest.param(1, id="finalizer"), pytest.param(2, id="status"), pytest.param(3, id="pod")]
)
async def test_what_fails_half_way_is_deleted_again(fails: int) -> None:
    plugin, store, api = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking())
    attempt.take("n1")
    patch, calls = api.patch, 0

    async def failing(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == fails:
            raise ApiError(500, "the API server is out of order")
        return await patch(*args, **more)

    api.patch = failing  # type: ignore[method-assign]

    with pytest.raises(WriteFailed, match="out of order"):
        await attempt.pre_bind("n1")
    attempt.unreserve("n1")
    await settle()

    assert claims_of(store) == []
    assert len(api.deleted) == 1
    assert not catalog_of(plugin.handle).allocations.allocated().whole
    assert activated(plugin) == []  # its backoff holds


async def test_a_pod_that_is_not_bound_after_all_loses_its_claim() -> None:
    plugin, store, api = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(plugin, asking())
    attempt.take("n1")
    await attempt.pre_bind("n1")

    attempt.unreserve("n1")
    await settle()

    assert claims_of(store) == []
    assert api.patches[-1][1]["metadata"]["finalizers"] is None
    assert not catalog_of(plugin.handle).allocations.allocated().whole


async def test_the_claim_of_an_earlier_attempt_is_deleted_and_the_pod_tried_again() -> None:
    plugin, store, api = a_plugin(*GPUS, GPU_CLASS, earlier(**allocated("n1/d0", reserved_for=("p",))))
    attempt = Attempt(plugin, asking())

    refused = attempt.refusals()
    found = plugin.post_filter(attempt.state, attempt.pod, {})
    await settle()

    assert refused == dict.fromkeys(("n1", "n2", "own"), STALE_CLAIM)
    assert found == (None, DELETED)
    assert claims_of(store) == []
    assert api.deleted == ["earlier"]
    assert activated(plugin) == ["p"]
    assert Attempt(plugin, asking()).refusals() == {}


class Killed(BaseException):
    """The process has ended."""


@pytest.mark.parametrize("writes", range(1, 5), ids=["created", "finalizer", "allocated", "told to the pod"])
async def test_what_a_scheduler_leaves_that_ends_before_the_binding_is_replaced_by_the_next_one(writes: int) -> None:
    first, store, api = a_plugin(*GPUS, GPU_CLASS)
    attempt = Attempt(first, asking())
    attempt.take("n1")
    done = 0

    def dying(write: Any) -> Any:
        async def written(*args: Any, **more: Any) -> Any:
            nonlocal done
            answer, done = await write(*args, **more), done + 1
            if done == writes:
                raise Killed
            return answer

        return written

    api.create, api.patch = dying(api.create), dying(api.patch)  # type: ignore[method-assign]
    with pytest.raises(Killed):
        await attempt.pre_bind("n1")
    [orphan] = claims_of(store)

    next_one, store, api = a_plugin(*GPUS, GPU_CLASS, orphan)
    attempt = Attempt(next_one, asking())
    refused = attempt.refusals()
    next_one.post_filter(attempt.state, attempt.pod, {})
    await settle()
    again = Attempt(next_one, asking())
    again.take("n1")
    await again.pre_bind("n1")

    assert refused == dict.fromkeys(("n1", "n2", "own"), STALE_CLAIM)
    assert activated(next_one) == ["p"]
    [claim] = claims_of(store)
    assert claim.uid != orphan.uid
    assert catalog_of(next_one.handle).allocations.allocated().whole == {(DRIVER, "n1", "d0"): 1}


async def test_a_deletion_that_fails_brings_the_pod_back_all_the_same() -> None:
    plugin, _, api = a_plugin(*GPUS, GPU_CLASS, earlier())
    attempt = Attempt(plugin, asking())
    attempt.refusals()
    api.errors = [ApiError(500, "the API server is out of order")]

    plugin.post_filter(attempt.state, attempt.pod, {})
    await settle()

    assert activated(plugin) == ["p"]


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(earlier(owner="another"), id="another pod's"),
        pytest.param(a_claim("plain"), id="no claim of a scheduler"),
    ],
)
def test_claims_of_others_are_left_alone(claim: ResourceClaim) -> None:
    plugin, _, _ = a_plugin(*GPUS, GPU_CLASS, claim)
    attempt = Attempt(plugin, asking(gpus="3"))

    assert attempt.refusals() == dict.fromkeys(("n1", "n2"), NOT_ALLOCATABLE)
    assert plugin.post_filter(attempt.state, attempt.pod, {}) == (None, NOTHING_TO_DEALLOCATE)


def classes(*found: tuple[str, str | None, str]) -> list[DeviceClass]:
    """Classes as (name, extended resource, date of creation)."""
    return [
        reread(
            {
                "metadata": {"name": name, "uid": name, "creationTimestamp": date},
                "spec": {"extendedResourceName": named},
            },
            DeviceClass,
        )
        for name, named, date in found
    ]


def test_the_newest_class_stands_for_a_resource_that_several_name() -> None:
    handle, store, _ = a_world(*classes(("old", GPU, "2024"), ("new", GPU, "2026"), ("twin", GPU, "2026")))
    extended = extended_resources_of(handle)

    def stands() -> tuple[str, ...]:
        found = (extended.class_of(GPU), extended.class_of("deviceclass.resource.kubernetes.io/old"))
        return tuple("" if each is None else each.name for each in found)

    before = stands()
    store.remove(fw.DEVICE_CLASS, "new")
    put(store, classes(("twin", None, "2026"))[0])
    after = stands()
    store.remove(fw.DEVICE_CLASS, "old")

    assert [before, after, stands()] == [("new", "old"), ("old", "old"), ("", "")]


def test_stored_answers_are_forgotten_when_a_class_begins_to_stand_for_a_resource() -> None:
    handle, store, _ = a_world()
    columns = handle.columns
    assert isinstance(columns, PluginColumns)
    plugin, pod = started(DynamicResources(), handle), asking()
    era = columns.store.era

    put(store, a_class("other", "true"))  # only its implicit name
    again = columns.store.era
    put(store, a_class("other", "false"))
    unchanged = columns.store.era
    signed = plugin.sign(pod)
    put(store, GPU_CLASS)

    assert era is not again is unchanged is not columns.store.era
    assert (signed, plugin.sign(pod)) == ((), None)


def test_resources_fit_leaves_to_devices_what_a_node_does_not_offer() -> None:
    handle, _, _ = a_world(GPU_CLASS)
    nodes = a_cluster(
        a_node("none"),
        a_node("zero", allocatable={GPU: "0", "pods": "9"}),
        a_node("few", allocatable={GPU: "1", "pods": "9"}),
    )

    def refused(plugin: NodeResourcesFit) -> dict[str, tuple[str, ...]]:
        return {name: status.reasons for name, status in refusals(plugin, asking(gpus="2"), nodes).items()}

    assert refused(started(NodeResourcesFit(), handle)) == {"few": (f"Insufficient {GPU}",)}
    assert refused(NodeResourcesFit()) == dict.fromkeys(("none", "zero", "few"), (f"Insufficient {GPU}",))


def test_devices_count_in_the_score_where_a_node_does_not_offer_the_resource() -> None:
    taken = a_claim("c", status=allocated("n1/d0"))
    handle, store, _ = a_world(*GPUS, GPU_CLASS, taken)
    strategy = ScoringStrategy("LeastAllocated", (ResourceSpec(GPU),))
    plugin = started(NodeResourcesFit(scoring_strategy=strategy), handle)
    pod = asking()

    def scores() -> dict[str, int]:
        found = plugin.score_nodes(fw.CycleState(), pod, NODES, np.arange(NODES.size))
        assert found is not None
        return {name: int(found[row]) for row, name in enumerate(NODES.names()) if name}

    before = scores()
    store.remove(fw.RESOURCE_CLAIM, taken.uid)

    assert plugin.sign(pod) is None
    assert before == {"n1": 0, "n2": 0, "own": 75}
    assert scores() == {"n1": 50, "n2": 0, "own": 75}
