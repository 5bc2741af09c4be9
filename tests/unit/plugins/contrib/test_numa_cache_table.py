"""The cases by which scheduler-plugins judges what it believes of the zones.

Of pkg/noderesourcetopology: nodeconfig/topologymanager_test.go, resourcerequests/exclusive_test.go, and in cache
overreserve_test.go and store_test.go. Amounts and answers are theirs.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

from plugins.contrib.node_resource_topology.fingerprint import pod_fingerprint
from plugins.contrib.node_resource_topology.over_reserve import OverReserve
from plugins.contrib.node_resource_topology.plugin import CacheArguments, NodeResourceTopologyMatch
from plugins.contrib.node_resource_topology.requests import asked
from plugins.contrib.node_resource_topology.topology import RESOURCE, NodeTopology, read_topology
from scheduler import framework as fw
from scheduler.testing import Objects, a_cluster, a_handle, a_node, an_object, started
from tests.unit.plugins.contrib.topologies import Amounts, a_numa_pod, a_topology, a_zone

GIB: Final = 2**30
NIC, FPGA = "vendor.com/nic1", "veryfast.io/fpga"

# --- the kubelet's topology manager ---


def configured(policies: list[str] | None = None, **attributes: str) -> tuple[str, str]:
    listed = [{"name": f"topologyManager{name.title()}", "value": value} for name, value in attributes.items()]
    topology = read_topology(an_object("n", topologyPolicies=policies, attributes=listed))
    return topology.policy, topology.scope


@pytest.mark.parametrize(
    ("policies", "attributes", "expected"),
    [
        (None, {}, ("none", "container")),
        ([], {}, ("none", "container")),
        (None, {"scope": "pod"}, ("none", "pod")),
        (None, {"policy": "restricted"}, ("restricted", "container")),
        (None, {"policy": "restricted", "scope": "container"}, ("restricted", "container")),
        (None, {"policy": "single-numa-node", "scope": "pod"}, ("single-numa-node", "pod")),
        (None, {"policy": "single-numa-node", "scope": "Pod"}, ("single-numa-node", "container")),
        (None, {"policy": "restricted", "scope": "Container"}, ("restricted", "container")),
        (None, {"policy": "single-NUMA-node", "scope": "POD"}, ("none", "container")),
        (["SingleNUMANodePodLevel"], {}, ("single-numa-node", "pod")),
        (["SingleNUMANodeContainerLevel"], {}, ("single-numa-node", "container")),
        (["RestrictedContainerLevel"], {}, ("restricted", "container")),
        (["RestrictedContainerLevel", "SingleNUMANodePodLevel"], {}, ("restricted", "container")),
        (["BestEffortPodLevel"], {}, ("best-effort", "pod")),
        (["foobar"], {}, ("none", "container")),
        (["BestEffortPodLevel"], {"scope": "container"}, ("best-effort", "container")),
        (["BestEffortPodLevel"], {"scope": "container", "policy": "restricted"}, ("restricted", "container")),
    ],
)
def test_attributes_count_before_policies_and_what_is_misspelt_not_at_all(
    policies: list[str] | None, attributes: dict[str, str], expected: tuple[str, str]
) -> None:
    assert configured(policies, **attributes) == expected


# --- pods that have resources for themselves ---

CORES: Final[Amounts] = {"cpu": "4", "memory": "2Gi"}
DEVICE: Final[Amounts] = {FPGA: "1"}


@pytest.mark.parametrize(
    ("containers", "more", "exclusive"),
    [
        ([], {}, False),
        ([CORES], {}, True),
        ([], {"init": [CORES]}, False),  # ends before the pod is at its work
        ([], {"sidecars": [CORES]}, True),
        ([DEVICE], {}, True),
        ([], {"init": [DEVICE]}, False),
        ([], {"sidecars": [DEVICE]}, True),
        ([{"cpu": "8", "memory": "16Gi", **DEVICE}], {}, True),
        ([{"cpu": "8", **DEVICE}], {}, True),
        ([{"cpu": "8"}], {}, False),
        ([{"cpu": "1500m", "memory": "2Gi"}], {}, True),  # for its memory
        ([{"cpu": "8", "example.com/not-in-a-zone": "1"}], {}, False),
    ],
)
def test_only_pods_with_resources_for_themselves_make_a_node_doubtful(
    containers: list[Amounts], more: Mapping[str, Any], exclusive: bool
) -> None:
    nodes = a_cluster(a_node("n", cpu="64", memory="256Gi"))
    topology = a_topology("n", a_zone(0, cpu="32", memory="64Gi", resources={FPGA: 4}))
    plugin = NodeResourceTopologyMatch(
        cache_resync_period_seconds=5, cache=CacheArguments(foreign_pods_detect="OnlyExclusiveResources")
    )
    plugin = started(plugin, a_handle(nodes, Objects({RESOURCE: [topology]})))
    newcomer = a_numa_pod({"cpu": "1", "memory": "1Gi"})

    def is_refused() -> bool:
        return plugin.filter_nodes(fw.CycleState(), newcomer, nodes, np.arange(1)) is not None

    assert not is_refused()
    nodes.add_pod("n", a_numa_pod(*containers, name="of-others", schedulerName="others", **more))

    assert is_refused() == exclusive


# --- what was reserved ---


def a_host(cpu: str = "30", memory: str = "60Gi", fingerprint: str = "") -> NodeTopology:
    """What an agent says; the second zone has what the arguments say."""
    zones = (
        a_zone(0, cpu="30", memory="60Gi", resources={NIC: 16}),
        a_zone(1, cpu=cpu, memory=memory, resources={NIC: 16}),
    )
    return read_topology(a_topology("node1", *zones, attributes={"nodeTopologyPodsFingerprint": fingerprint}))


POD: Final = asked(a_numa_pod({"cpu": "8", "memory": "16Gi"})).whole
KNOWN: Final = "pfp0v0019e0420efb37746c6"
"""The fingerprint of pod1 in namespace1."""


def a_cache() -> OverReserve:
    cache = OverReserve()
    cache.heard("node1", a_host())
    return cache


def left(cache: OverReserve, resource: str) -> list[int]:
    topology = cache.topology("node1")
    assert topology is not None
    return [zone.available[resource] for zone in topology.zones]


def test_what_is_reserved_is_taken_off_every_zone() -> None:
    cache = a_cache()

    cache.reserve("node1", "pod1", POD)
    cache.reserve("node1", "pod1", POD)  # twice is once

    assert (left(cache, "cpu"), left(cache, "memory"), left(cache, NIC)) == ([22000] * 2, [44 * GIB] * 2, [16, 16])


def test_a_zone_has_less_only_of_what_it_reports() -> None:
    cache = OverReserve()
    zones = a_zone(0, cpu="20", memory="32Gi"), a_zone(1, cpu="20", memory="32Gi", resources={NIC: 8})
    cache.heard("node1", read_topology(a_topology("node1", *zones)))
    pod = a_numa_pod({"cpu": "16", "memory": "4Gi", NIC: 2}, {"cpu": "2", "memory": "2Gi"})

    cache.reserve("node1", "pod1", asked(pod).whole)

    assert (left(cache, "cpu"), left(cache, "memory")) == ([2000] * 2, [26 * GIB] * 2)
    topology = cache.topology("node1")
    assert topology is not None
    assert [zone.available.get(NIC) for zone in topology.zones] == [None, 6]


def test_unreserved_it_is_as_before() -> None:
    cache = a_cache()

    assert not cache.unreserve("node1", "pod1")
    cache.reserve("node1", "pod1", POD)
    assert cache.unreserve("node1", "pod1")

    assert cache.topology("node1") == a_host()


@pytest.mark.parametrize(
    ("fingerprint", "settled"), [("", []), ("pfp0v001" + "0" * 16, []), ("nonsense", []), (KNOWN, ["node1"])]
)
def test_an_object_counts_once_its_fingerprint_is_that_of_the_pods(fingerprint: str, settled: list[str]) -> None:
    cache, newest = a_cache(), a_host("22", "44Gi", fingerprint)
    cache.reserve("node1", "pod1", POD)
    cache.doubt("node1")
    assert not cache.heard("node1", newest)

    assert pod_fingerprint([("namespace1", "pod1")]) == KNOWN
    assert cache.resync(lambda node, method: [("namespace1", "pod1")]) == settled

    assert left(cache, "cpu") == ([30000, 22000] if settled else [22000, 22000])
    assert cache.resync(lambda node, method: [("namespace1", "pod1")]) == []


def test_a_node_without_an_object_is_never_in_doubt() -> None:
    cache = a_cache()

    cache.doubt("node-bogus", foreign=True)
    cache.doubt("node1", foreign=True)

    assert (cache.is_foreign("node-bogus"), cache.is_foreign("node1")) == (False, True)
