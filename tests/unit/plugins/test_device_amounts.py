"""Devices that stand for resources of their node, or cost some. The conformance suite has clusters: `gated.py`."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from plugins import IN_TREE
from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.claim_writer import WriteFailed
from plugins.dynamic_resources.gates import NODE_AMOUNTS
from plugins.dynamic_resources.plugin import NOT_ALLOCATABLE, DynamicResources
from scheduler import framework as fw
from scheduler.api.decoding import reread
from scheduler.api.devices import ResourceClaim
from scheduler.config.feature_gates import read_gates
from scheduler.config.load import config_from_dict
from scheduler.framework.errors import ApiError
from scheduler.simulate.engine import simulate
from scheduler.simulate.other_objects import OtherObject, OtherObjects
from scheduler.testing import a_node, pod_from_dict, started
from tests.controlplane.objects import a_pod
from tests.fakes import settle
from tests.unit.plugins import devices
from tests.unit.plugins.cluster import a_cluster
from tests.unit.plugins.devices import (
    Api,
    OneGroup,
    a_claim,
    a_class,
    a_device,
    a_request,
    a_slice,
    a_world,
    allocated,
    put,
)

Json = dict[str, Any]
CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NODE = a_node("n1", allocatable={"cpu": "8", "memory": "8Gi", "hugepages-2Mi": "8Mi"})
CORES = {"cpu": {"mapping": {"deviceMultiplier": "2"}}}
FIVE = {"cpu": {"mapping": {"deviceMultiplier": "5"}}}
COSTS = {"memory": {"overhead": {"perPod": "1Gi", "perContainer": "256Mi"}}}
SHARED = {
    "capacity": {"cores": {"value": "6"}},
    "allowMultipleAllocations": True,
    "nodeAllocatableResources": {"cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "500m"}}},
}


def with_amounts(name: str, amounts: Json) -> Json:
    return a_device(name, nodeAllocatableResources=amounts)


def asking(name: str, *claims: str, cpu: str = "1", limits: Json | None = None, **spec: Any) -> fw.Pod:
    """A pod whose container names these claims."""
    resources = {"requests": {"cpu": cpu}, "limits": limits or {}, "claims": [{"name": each} for each in claims]}
    written = [{"name": each, "resourceClaimName": each} for each in claims]
    whole = a_pod(name, "default", resourceClaims=written)
    whole["spec"] |= {"containers": [{"name": "c", "resources": resources}], **spec}
    whole["metadata"]["uid"] = name
    return pod_from_dict(whole)


class Attempt(devices.Attempt):
    """One pod's way through the plugin, on the only node, of whose cpu some is `used`."""

    def __init__(self, plugin: DynamicResources, pod: fw.Pod, used: str = "0", *, with_its_group: bool = False):
        nodes = a_cluster(NODE, pods={"n1": [asking("other", cpu=used)]})
        super().__init__(plugin, pod, nodes, with_its_group=with_its_group)


def a_plugin(*objects: Any, gate: str = NODE_AMOUNTS) -> tuple[DynamicResources, Api]:
    handle, _, api = a_world(*objects)
    gated = dataclasses.replace(handle, feature_gates=frozenset({gate}), pod_groups=OneGroup())
    return started(DynamicResources(), gated), api


def cores(*amounts: Json) -> tuple[Any, ...]:
    """A claim for all devices of a slice with these amounts."""
    devices = [with_amounts(f"d{i}", each) for i, each in enumerate(amounts)]
    return a_slice("n1", *devices), a_claim("c", a_request(count=len(devices)))


@pytest.mark.parametrize(
    ("amounts", "used", "refusal"),
    [
        pytest.param([CORES, CORES], "3", None, id="4 cores for devices and 1 for the container fit"),
        pytest.param([CORES, CORES], "4", fw.unschedulable("Insufficient cpu"), id="4 of 8 are in use"),
        pytest.param([CORES] * 4, "0", fw.unresolvable("Insufficient cpu"), id="more than the node has"),
        pytest.param([COSTS] * 6, "0", None, id="6 times 1280 MiB"),
        pytest.param([COSTS] * 7, "0", fw.unresolvable("Insufficient memory"), id="7 times 1280 MiB"),
        pytest.param(
            [CORES | {"hugepages-2Mi": {"overhead": {"perPod": "10Mi"}}}],
            "6",
            fw.unresolvable("Insufficient cpu", "Insufficient hugepages-2Mi"),
            id="several resources",
        ),
    ],
)
def test_devices_need_space_on_their_node(amounts: list[Json], used: str, refusal: fw.Status | None) -> None:
    assert Attempt(a_plugin(*cores(*amounts))[0], asking("p", "c"), used).filter("n1") == refusal


@pytest.mark.parametrize("place", [{}, {"allNodes": True}])
def test_what_a_nodes_devices_take_follows_its_slices(place: Json) -> None:
    handle, store, _ = a_world(a_slice("n1", with_amounts("d0", CORES), **place), a_claim("c"))
    plugin = started(DynamicResources(), dataclasses.replace(handle, feature_gates=frozenset({NODE_AMOUNTS})))
    nodes = a_cluster(NODE, a_node("n2", allocatable={"cpu": "8"}))

    def refused() -> int:
        state, pod = fw.CycleState(), asking("p", "c", cpu="7")
        plugin.pre_filter(state, pod, nodes)
        codes = plugin.filter_nodes(state, pod, nodes, np.array([nodes.row_of("n1"), nodes.row_of("n2")]))
        assert codes is not None
        return int(np.count_nonzero(codes))

    found = [refused(), refused()]
    for amounts in ({}, COSTS, CORES):
        put(store, a_slice("n1", with_amounts("d0", amounts), **place))
        found.append(refused())

    without_devices = 0 if place else 1
    assert found == [2, 2, without_devices, without_devices, 2]


def test_without_the_gate_devices_are_all_that_counts() -> None:
    attempt = Attempt(a_plugin(*cores(CORES, CORES), gate="")[0], asking("p", "c"), "8")

    assert attempt.filter("n1") is None
    assert not attempt.plugin.completes_pods
    assert [each for each in attempt.plugin.events_to_register() if each.event.resource == fw.ASSIGNED_POD] == []


def test_a_pod_counts_on_its_node_with_what_its_devices_take() -> None:
    world = a_slice("n1", a_device("d0", **SHARED), with_amounts("d1", COSTS)), a_claim("c", a_request(count=2))
    attempt = Attempt(a_plugin(*world)[0], asking("p", "c"))
    assert attempt.filter("n1") is None

    assumed = attempt.assumed("n1")

    assert assumed.requests == {"cpu": 4000, "memory": 1280 * 2**20}
    (taken,) = assumed.status.node_allocatable_resource_claim_statuses or ()
    assert (taken.resource_claim_name, taken.containers) == ("c", ("c",))
    assert [(each.name, each.quantity) for each in taken.mapping or ()] == [("cpu", "3")]
    assert [(each.name, each.per_pod, each.per_container) for each in taken.overhead or ()] == [
        ("memory", "1Gi", "256Mi")
    ]


@pytest.mark.parametrize(("gates", "placed"), [([f"{NODE_AMOUNTS}=true"], ["n1", None, None]), ([], ["n1"] * 3)])
def test_the_next_pods_find_what_is_left(gates: list[str], placed: list[str | None]) -> None:
    slices = a_slice("n1", with_amounts("d0", FIVE), with_amounts("d1", FIVE))
    objects = [a_class("any"), slices, a_claim("c"), a_claim("d")]
    others = OtherObjects(
        OtherObject("here", kind, {"apiVersion": "resource.k8s.io/v1", "kind": kind} | reread(each, dict))
        for kind, each in ((type(each).__name__, each) for each in objects)
    )
    pods = [asking("p", "c"), asking("q", "d"), asking("r", cpu="3")]
    config = config_from_dict(CONFIG, IN_TREE, gates=read_gates(gates)[0])

    verdict = simulate([NODE], pods, config, IN_TREE, others)

    assert [each["node"] for each in verdict["pods"]] == placed


def test_what_an_earlier_attempt_left_in_the_status_does_not_count() -> None:
    plugin, _ = a_plugin(*cores(CORES))
    first = Attempt(plugin, asking("p", "c"))
    first.filter("n1")
    plain = Attempt(plugin, asking("q"))
    plain.pod = first.assumed("n1")

    assert plain.assumed("n1").requests == {"cpu": 1000}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param(
            {"resources": {"requests": {"cpu": "2"}}},
            "pod level request for cpu is insufficient to cover the aggregated container and node-allocatable DRA "
            "requests",
            id="requests",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "3"}}, "limits": {"cpu": "2"}},
            "pod level limit for cpu is insufficient to cover the limit and DRA overhead for container c",
            id="limit of a container",
        ),
        pytest.param(
            {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}, "limits": {"hugepages-2Mi": "2Mi"}},
            "pod level limit for hugepages-2Mi is insufficient to cover the aggregated container and node-allocatable "
            "DRA limits",
            id="limit of huge pages",
        ),
        pytest.param({"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}}, "", id="enough"),
    ],
)
def test_a_pod_as_a_whole_has_to_have_what_its_containers_and_devices_take(spec: Json, reason: str) -> None:
    amounts = CORES | {"hugepages-2Mi": {"overhead": {"perPod": "2Mi"}}}
    attempt = Attempt(a_plugin(*cores(amounts))[0], asking("p", "c", **spec))

    assert attempt.filter("n1") == (fw.unresolvable(reason) if reason else None)


def test_a_claim_that_stands_for_resources_is_used_by_one_pod() -> None:
    taken = a_claim("c", status=allocated("n1/d0", reserved_for=("other",)))
    refusal = fw.unresolvable("node allocatable resource claim c has a mapped device and cannot be shared across pods")

    for amounts, answer in ((CORES, refusal), (COSTS, None)):
        plugin, _ = a_plugin(a_slice("n1", with_amounts("d0", amounts)), taken)
        assert Attempt(plugin, asking("p", "c")).filter("n1") == answer
        assert Attempt(plugin, asking("other", "c")).filter("n1") is None


def test_pods_of_a_group_do_not_share_one_either() -> None:
    plugin, _ = a_plugin(*cores(CORES))
    first = Attempt(plugin, asking("p", "c"), with_its_group=True)
    first.filter("n1")
    plugin.reserve(first.state, first.assumed("n1"), "n1")

    refused = Attempt(plugin, asking("q", "c"), with_its_group=True).filter("n1")

    assert refused is not None
    assert "cannot be shared across pods" in refused.message


def test_space_does_not_matter_where_there_are_no_devices() -> None:
    world = a_slice("n1", with_amounts("d0", CORES)), a_claim("c", a_request(count=2))

    assert Attempt(a_plugin(*world)[0], asking("p", "c"), "8").filter("n1") == NOT_ALLOCATABLE


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        pytest.param(
            a_claim("c", status=allocated("n1/d0")),
            "claim default/c, device d0: ConsumedCapacity is nil, but Capacity key 'cores' is set in "
            "NodeAllocatableResources for resource cpu",
            id="no capacity is taken",
        ),
        pytest.param(
            a_claim("c", status=allocated("n1/d0", "n2/d0", consumedCapacity={"cores": "1"})),
            "claim default/c, device d0, driver gpu.example.com: device d0 not found in pool n2 for driver "
            "gpu.example.com",
            id="another node's device",
        ),
        pytest.param(
            a_claim("c", status=allocated("n1/d0", consumedCapacity={"cores": "many"})),
            "resources of a device's node: not a quantity: 'many'",
            id="no quantity",
        ),
    ],
)
def test_an_allocation_that_makes_no_sense_ends_the_attempt(claim: ResourceClaim, problem: str) -> None:
    attempt = Attempt(a_plugin(a_slice("n1", a_device("d0", **SHARED)), claim)[0], asking("p", "c"))

    with pytest.raises(DevicesError, match=f"^{problem}$"):
        attempt.filter("n1")


async def reserved(*amounts: Json) -> tuple[Attempt, Api]:
    """A pod that has its devices in memory."""
    plugin, api = a_plugin(*cores(*amounts))
    attempt = Attempt(plugin, asking("p", "c"))
    attempt.filter("n1")
    attempt.pod = attempt.assumed("n1")
    plugin.reserve(attempt.state, attempt.pod, "n1")
    return attempt, api


async def test_the_status_says_what_devices_take_and_nothing_if_the_pod_is_not_bound() -> None:
    attempt, api = await reserved(CORES)

    await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n1")
    attempt.plugin.unreserve(attempt.state, attempt.pod, "n1")
    attempt.plugin.unreserve(attempt.state, attempt.pod, "n1")
    await settle()

    entry = {"resourceClaimName": "c", "containers": ["c"], "mapping": [{"name": "cpu", "quantity": "2"}]}
    assert api.pod_patches == [
        {"metadata": {"uid": "p"}, "status": {"nodeAllocatableResourceClaimStatuses": written}}
        for written in ([entry], [])
    ]


async def test_a_status_that_was_not_written_is_not_cleared() -> None:
    attempt, api = await reserved(CORES)

    attempt.plugin.unreserve(attempt.state, attempt.pod, "n1")
    await settle()

    assert api.pod_patches == []


async def test_devices_that_take_nothing_else_write_no_status() -> None:
    attempt, api = await reserved({})

    await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n1")

    assert api.pod_patches == []


async def test_the_next_attempt_writes_after_the_status_is_cleared() -> None:
    attempt, api = await reserved(CORES)
    await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n1")

    attempt.plugin.unreserve(attempt.state, attempt.pod, "n1")
    await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n1")

    written = [len(each["status"]["nodeAllocatableResourceClaimStatuses"]) for each in api.pod_patches]
    assert written == [1, 0, 1]


async def test_a_status_that_cannot_be_written_ends_the_attempt() -> None:
    attempt, api = await reserved(CORES)
    await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n1")
    api.errors = [ApiError(403, "forbidden")]

    with pytest.raises(WriteFailed, match="updating pod default/p NodeAllocatableResourceClaimStatuses: forbidden"):
        await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n1")


def test_space_that_a_pod_leaves_may_help_where_devices_need_some() -> None:
    plugin, _ = a_plugin(*cores(CORES))
    (on_pods,) = (each for each in plugin.events_to_register() if each.event.resource == fw.ASSIGNED_POD)
    assert on_pods.hint is not None

    gone = [asking("gone").bound_to(node) for node in ("n1", "n2")]
    assert [on_pods.hint(asking("p", "c"), each, None) for each in gone] == [
        fw.QueueingHint.QUEUE,
        fw.QueueingHint.SKIP,
    ]
