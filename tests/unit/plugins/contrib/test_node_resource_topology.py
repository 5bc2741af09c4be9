"""NodeResourceTopologyMatch answers as that of scheduler-plugins does: what the cases of the latter leave open."""

from typing import Any

import pytest

from plugins.contrib.node_resource_topology.fingerprint import pod_fingerprint, xxh64
from plugins.contrib.node_resource_topology.plugin import NodeResourceTopologyMatch, ScoringStrategy
from plugins.contrib.node_resource_topology.topology import RESOURCE, read_topology
from scheduler import framework as fw
from scheduler.testing import Objects, a_cluster, a_handle, a_node, a_pod, an_object, check_plugin, schedule, started
from tests.unit.plugins.contrib.topologies import a_numa_pod, a_topology, a_zone

GPU = "example.com/gpu"
TWO = (a_zone(0, cpu="4", memory="8Gi"), a_zone(1, cpu="2", memory="8Gi"))
SMALL: dict[str, Any] = {"cpu": "2", "memory": "2Gi"}


def refusal(pod: fw.Pod, topology: fw.Unstructured | None, **allocatable: Any) -> str:
    """What is said of one node; empty for a yes."""
    node = a_node("n", cpu="64", memory="256Gi", allocatable=allocatable)
    decision = schedule(
        NodeResourceTopologyMatch(), pod, a_cluster(node), {RESOURCE: [] if topology is None else [topology]}
    )
    return "".join(reason for status in decision.refusals.values() for reason in status.reasons)


def score(
    pod: fw.Pod, *topologies: fw.Unstructured, strategy: str = "LeastAllocated", **arguments: Any
) -> dict[str, int]:
    nodes = a_cluster(*(a_node(each.name, cpu="64", memory="256Gi", allocatable={GPU: 8}) for each in topologies))
    plugin = NodeResourceTopologyMatch(scoring_strategy=ScoringStrategy(strategy, **arguments))  # type: ignore[arg-type]
    return dict(schedule(plugin, pod, nodes, {RESOURCE: topologies}).scores)


# --- Filter ---


def test_a_container_takes_from_the_first_zone_that_has_all_of_it() -> None:
    zones = a_zone(0, cpu="2", memory="1Gi"), a_zone(1, cpu="4", memory="8Gi")

    assert refusal(a_numa_pod(SMALL, SMALL, {"cpu": "2", "memory": "1Gi"}), a_topology("n", *zones)) == ""
    assert refusal(
        a_numa_pod({"cpu": "1", "memory": "1Gi"}, SMALL, SMALL, {"cpu": "2", "memory": "1Gi"}), a_topology("n", *zones)
    )


def test_sidecars_keep_what_they_have() -> None:
    pod = a_numa_pod({"cpu": "4", "memory": "1Gi"}, sidecars=[{"cpu": "1", "memory": "1Gi"}])

    assert refusal(pod, a_topology("n", *TWO)) == "cannot align container"


@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted", "odd"])
def test_other_policies_refuse_nothing(policy: str) -> None:
    assert refusal(a_numa_pod({"cpu": "60", "memory": "1Gi"}), a_topology("n", *TWO, policy=policy)) == ""


def test_a_node_without_an_object_is_not_refused() -> None:
    assert refusal(a_numa_pod({"cpu": "60", "memory": "1Gi"}), None) == ""


def test_devices_that_no_zone_reports_are_the_nodes() -> None:
    pod = a_numa_pod({**SMALL, GPU: 4, "ephemeral-storage": "1Gi"})

    assert refusal(pod, a_topology("n", *TWO), **{GPU: 4, "ephemeral-storage": "10Gi"}) == ""
    assert refusal(pod, a_topology("n", *TWO), **{"ephemeral-storage": "10Gi"}) == "cannot align container"


def test_what_belongs_together_comes_from_one_zone() -> None:
    zones = a_zone(0, cpu="4", memory="8Gi"), a_zone(1, cpu="1", memory="8Gi", resources={GPU: 1})

    assert refusal(a_numa_pod({**SMALL, GPU: 1}), a_topology("n", *zones), **{GPU: 1}) == "cannot align container"
    assert refusal(a_numa_pod({"cpu": "1", "memory": "2Gi", GPU: 1}), a_topology("n", *zones), **{GPU: 1}) == ""


# --- Score ---


def a_node_with(*cpus: int, name: str = "n", **more: Any) -> fw.Unstructured:
    return a_topology(name, *(a_zone(i, cpu=cpu, memory=f"{cpu}Gi") for i, cpu in enumerate(cpus)), **more)


ONE: dict[str, Any] = {"cpu": "2", "memory": "2Gi"}


@pytest.mark.parametrize(
    ("strategy", "cpus", "expected"),
    [
        ("LeastAllocated", (4, 8), 50),
        ("LeastAllocated", (2, 8), 75),  # a zone that would be full scores 0, which does not count
        ("LeastAllocated", (1, 4), 50),
        ("MostAllocated", (4, 8), 25),
        ("MostAllocated", (2, 1), 100),
        ("BalancedAllocation", (4, 8), 100),
    ],
)
def test_the_lowest_zone_that_counts_decides(strategy: str, cpus: tuple[int, ...], expected: int) -> None:
    for scope in ("pod", "container"):
        assert score(a_numa_pod(ONE), a_node_with(*cpus, scope=scope), strategy=strategy) == {"n": expected}


def test_containers_count_by_their_mean_and_init_containers_too() -> None:
    pod = a_numa_pod({"cpu": "4", "memory": "4Gi"}, init=[{"cpu": "2", "memory": "2Gi"}])

    assert score(pod, a_node_with(8)) == {"n": (75 + 50) // 2}


def test_weights_count() -> None:
    from plugins.contrib.node_resource_topology.plugin import ResourceWeight

    zone = a_zone(0, cpu="4", memory="8Gi")
    pod = a_numa_pod(ONE)

    assert score(pod, a_topology("n", zone)) == {"n": (50 + 75) // 2}
    assert score(pod, a_topology("n", zone), resources=(ResourceWeight("memory", 3),)) == {"n": (50 + 225) // 4}


def test_unbalanced_zones_score_by_their_variance() -> None:
    zone = a_zone(0, cpu="4", memory="8Gi")

    assert score(a_numa_pod(ONE), a_topology("n", zone), strategy="BalancedAllocation") == {"n": 96}  # 1 - 1/32


def test_pods_that_are_not_guaranteed_find_all_nodes_good() -> None:
    assert score(a_numa_pod(ONE, guaranteed=False), a_node_with(4)) == {"n": 100}


def test_nodes_of_other_policies_score_nothing_but_for_least_numa_nodes() -> None:
    topology = a_node_with(4, policy="restricted")

    assert score(a_numa_pod(ONE), topology) == {"n": 0}
    assert score(a_numa_pod(ONE), topology, strategy="LeastNUMANodes") == {"n": 100 - 12 + 6}


# --- objects that are odd ---


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"zones": None, "attributes": None, "topologyPolicies": None},
        {"zones": 7, "attributes": "x", "topologyPolicies": [7]},
        {"zones": [7, None, {}, {"name": 7, "type": "Node"}, {"name": "node-999999", "type": "Node"}]},
        {
            "zones": [
                {"name": "node-0", "type": "Node", "resources": [7, {"name": 7}, {"name": "cpu", "available": "x"}]}
            ]
        },
        {"zones": [{"name": "node-0", "type": "Node", "costs": [7, {"name": "node-1", "value": "x"}]}]},
        {"attributes": [{"name": "topologyManagerMaxNUMANodes", "value": "9" * 5000}]},
    ],
)
def test_what_is_odd_is_left_out(content: dict[str, Any]) -> None:
    topology = read_topology(an_object("n", **content))

    assert (topology.policy, topology.scope) == ("none", "container")
    assert all(not zone.available and not zone.costs for zone in topology.zones)


def test_what_one_object_takes_is_bounded() -> None:
    zones = [a_zone(i, resources={f"example.com/r{j}": 1 for j in range(500)}) for i in range(500)]

    topology = read_topology(a_topology("n", *zones))

    assert (len(topology.zones), len(topology.zones[0].available)) == (16, 64)


# --- the over-reserve cache ---


class Stage:
    def __init__(self, *zones: dict[str, Any], **arguments: Any) -> None:
        self.nodes = a_cluster(a_node("n", cpu="64", memory="256Gi"))
        self.objects = Objects({RESOURCE: [a_topology("n", *zones)]})
        arguments = {"cache_resync_period_seconds": 5, **arguments}
        self.plugin = started(NodeResourceTopologyMatch(**arguments), a_handle(self.nodes, self.objects))

    def fits(self, pod: fw.Pod) -> bool:
        import numpy as np

        state = fw.CycleState()
        assert self.plugin.pre_filter(state, pod, self.nodes) is None
        return self.plugin.filter_nodes(state, pod, self.nodes, np.arange(1)) is None

    def place(self, pod: fw.Pod) -> None:
        self.plugin.reserve(fw.CycleState(), pod, "n")
        self.nodes.add_pod("n", pod)

    def tell(self, *zones: dict[str, Any], pods: tuple[str, ...] = ()) -> None:
        """The node's agent writes what is left, and which pods it knows of."""
        fingerprint = pod_fingerprint(("default", name) for name in pods)
        attributes = {"nodeTopologyPodsFingerprint": fingerprint}
        self.objects.put(RESOURCE, a_topology("n", *zones, attributes=attributes, version=2))


def running(pod: fw.Pod) -> fw.Pod:
    import msgspec

    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase="Running"))


def test_what_was_reserved_is_taken_off_all_zones() -> None:
    stage = Stage(a_zone(0, cpu="3", memory="8Gi"), a_zone(1, cpu="3", memory="8Gi"))
    assert stage.fits(a_numa_pod(ONE))

    stage.place(a_numa_pod(ONE, name="first"))

    assert not stage.fits(a_numa_pod(ONE))
    assert stage.fits(a_numa_pod({"cpu": "1", "memory": "1Gi"}))


def test_what_is_unreserved_is_there_again() -> None:
    stage, pod = Stage(a_zone(0, cpu="3", memory="8Gi")), a_numa_pod(ONE, name="first")
    stage.plugin.reserve(fw.CycleState(), pod, "n")
    assert not stage.fits(a_numa_pod(ONE))

    stage.plugin.unreserve(fw.CycleState(), pod, "n")
    stage.plugin.unreserve(fw.CycleState(), pod, "n")

    assert stage.fits(a_numa_pod(ONE))


async def test_an_object_that_knows_of_all_pods_settles_it() -> None:
    stage = Stage(a_zone(0, cpu="3", memory="8Gi"), a_zone(1, cpu="3", memory="8Gi"))
    first = running(a_numa_pod(ONE, name="first", schedulerName="default-scheduler"))
    stage.place(first)
    after = a_zone(0, cpu="1", memory="6Gi"), a_zone(1, cpu="3", memory="8Gi")

    stage.tell(*after, pods=())
    await stage.plugin._resync()
    assert not stage.fits(a_numa_pod(ONE))

    stage.tell(*after, pods=("first",))
    await stage.plugin._resync()
    assert stage.fits(a_numa_pod(ONE))


async def test_a_pod_of_another_scheduler_makes_its_node_invalid_until_the_agent_knows_it() -> None:
    stage = Stage(a_zone(0, cpu="3", memory="8Gi"))
    assert stage.fits(a_numa_pod(ONE))
    stage.nodes.add_pod("n", running(a_numa_pod(ONE, name="other", schedulerName="somebody-else")))

    assert not stage.fits(a_numa_pod(ONE))
    stage.tell(a_zone(0, cpu="2", memory="6Gi"), pods=("other",))
    await stage.plugin._resync()

    assert stage.fits(a_numa_pod(ONE))


async def test_reserved_nodes_can_be_left_alone_until_the_pod_is_bound() -> None:
    stage = Stage(a_zone(0, cpu="8", memory="8Gi"), cache_resync_period_seconds=0, discard_reserved_nodes=True)
    pod = a_numa_pod(ONE, name="first")
    stage.plugin.reserve(fw.CycleState(), pod, "n")
    assert not stage.fits(a_numa_pod(ONE))

    await stage.plugin.post_bind(fw.CycleState(), pod, "n")

    assert stage.fits(a_numa_pod(ONE))


def test_without_a_cache_objects_count_as_they_come() -> None:
    stage = Stage(a_zone(0, cpu="3", memory="8Gi"), cache_resync_period_seconds=0)
    stage.place(a_numa_pod(ONE, name="first"))
    assert stage.fits(a_numa_pod(ONE))

    stage.tell(a_zone(0, cpu="1", memory="6Gi"))

    assert not stage.fits(a_numa_pod(ONE))


# --- fingerprints, and the contract ---


def test_fingerprints_are_those_of_the_agents() -> None:
    """Vectors: testdata/compat-*.sign of podfingerprint, and XXH64's own."""
    tiny = [("production", name) for name in ("jaeger-dpgjk", "nginx-rt684", "envoy-g9m22")]

    assert pod_fingerprint(tiny) == pod_fingerprint(reversed(tiny)) == "pfp0v001607b76a0e9d3aeb4"
    assert xxh64(b"") == 0xEF46DB3751D8E999


@pytest.mark.parametrize("strategy", ["LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"])
def test_it_keeps_what_every_plugin_promises(strategy: str) -> None:
    names = ("a", "b", "c", "d", "gone")
    nodes = a_cluster(*(a_node(name, cpu="64", memory="256Gi", allocatable={GPU: 4}) for name in names))
    nodes.remove_node("gone")
    topologies = [
        a_node_with(2, 8, name="a"),
        a_node_with(4, name="b", scope="pod"),
        a_node_with(4, 4, name="c", policy="none"),
    ]
    pods = [
        a_pod(),
        a_numa_pod(ONE),
        a_numa_pod(ONE, ONE, init=[ONE], sidecars=[ONE]),
        a_numa_pod({**ONE, GPU: 1}, guaranteed=False),
        a_numa_pod({"cpu": "500m", "memory": "1Gi"}),
    ]
    plugin = NodeResourceTopologyMatch(scoring_strategy=ScoringStrategy(strategy))  # type: ignore[arg-type]

    check_plugin(plugin, pods, nodes, {RESOURCE: topologies})
