"""The cases by which scheduler-plugins judges its own Score: score_test.go and least_numa_test.go.

Amounts, distances and scores are theirs.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from plugins.contrib.node_resource_topology.least_numa import average_distance, fewest_zones, least_numa_score
from plugins.contrib.node_resource_topology.plugin import NodeResourceTopologyMatch, ScoringStrategy
from plugins.contrib.node_resource_topology.requests import asked
from plugins.contrib.node_resource_topology.topology import RESOURCE, NodeTopology, read_topology
from scheduler import framework as fw
from scheduler.testing import a_cluster, a_node, schedule
from tests.unit.plugins.contrib.topologies import Amounts, a_numa_pod, a_topology, a_zone

GPU = "example.com/gpu"
THREE: Final = {"node1": (4, "500Mi"), "node2": (2, "50Mi"), "node3": (6, "60Mi")}
"""Nodes, with the cores and the memory of each of their two zones."""


def zones_of(*amounts: Amounts, costs: Mapping[int, Mapping[int, int]] | None = None) -> list[dict[str, Any]]:
    return [a_zone(number, (costs or {}).get(number), resources=dict(each)) for number, each in enumerate(amounts)]


def three(**more: Any) -> list[fw.Unstructured]:
    return [
        a_topology(name, *zones_of(*[{"cpu": cpu, "memory": memory}] * 2), **more)
        for name, (cpu, memory) in THREE.items()
    ]


def scores(pod: fw.Pod, strategy: str, topologies: Sequence[fw.Unstructured]) -> Mapping[str, int]:
    """Of all three nodes, with and without an object."""
    nodes = a_cluster(*(a_node(name, cpu="8", memory="1000Mi", allocatable={GPU: 2}) for name in THREE))
    plugin = NodeResourceTopologyMatch(scoring_strategy=ScoringStrategy(strategy))  # type: ignore[arg-type]
    return schedule(plugin, pod, nodes, {RESOURCE: topologies}).scores


@pytest.mark.parametrize(
    ("strategy", "best", "score"),
    [("MostAllocated", "node2", 70), ("BalancedAllocation", "node3", 100), ("LeastAllocated", "node1", 73)],
)
def test_the_strategies_prefer_what_they_are_for(strategy: str, best: str, score: int) -> None:
    found = scores(a_numa_pod({"cpu": 2, "memory": "20Mi"}), strategy, three())

    assert (max(found, key=lambda name: found[name]), found[best]) == (best, score)


@pytest.mark.parametrize(
    ("strategy", "score"), [("MostAllocated", 27), ("LeastAllocated", 73), ("BalancedAllocation", 89)]
)
def test_nodes_without_an_object_score_nothing(strategy: str, score: int) -> None:
    pod = a_numa_pod({"cpu": 2, "memory": "20Mi"})

    assert scores(pod, strategy, three()[:1]) == {"node1": score, "node2": 0, "node3": 0}
    assert scores(pod, strategy, []) == {"node1": 0, "node2": 0, "node3": 0}


@pytest.mark.parametrize(
    ("scope", "cores", "expected"),
    [
        ("container", [2], (94, 94, 94)),
        ("container", [4], (94, 82, 94)),
        ("container", [6], (82, 0, 94)),
        ("container", [2, 2], (94, 94, 94)),
        ("container", [1, 3], (94, 82, 94)),
        ("container", [5, 3], (82, 0, 94)),
        ("pod", [2, 2], (94, 82, 82)),
        ("pod", [1, 3], (94, 82, 82)),
        ("pod", [5, 3], (82, 0, 82)),
    ],
)
def test_the_fewer_zones_are_needed_the_higher_the_score(
    scope: str, cores: list[int], expected: tuple[int, ...]
) -> None:
    pod = a_numa_pod(*({"cpu": each, "memory": "50Mi"} for each in cores))

    found = scores(pod, "LeastNUMANodes", three(policy="best-effort", scope=scope))

    assert tuple(found.values()) == expected


@pytest.mark.parametrize("scope", ["container", "pod"])
def test_what_no_zone_has_makes_all_nodes_equal(scope: str) -> None:
    pod = a_numa_pod({"non-numa-resource": 1}, {"non-numa-resource": 2})

    assert set(scores(pod, "LeastNUMANodes", three(policy="best-effort", scope=scope)).values()) == {100}


PAIRS: Final = {
    0: {0: 10, 1: 12, 2: 20, 3: 20},
    1: {0: 12, 1: 10, 2: 20, 3: 20},
    2: {0: 20, 1: 20, 2: 10, 3: 12},
    3: {0: 20, 1: 20, 2: 12, 3: 10},
}
"""Zone → zone → distance: 0 and 1 are neighbours, and so are 2 and 3."""


@pytest.mark.parametrize(
    ("gpus", "containers", "expected"),
    [
        ((1, 1, 0, 0), [1], 94),
        ((1, 0, 1, 0), [1], 94),
        ((1, 1, 0, 0), [2], 82),
        ((1, 0, 1, 0), [2], 76),
        ((1, 1, 0, 0), [2, 0], 82),
        ((1, 0, 1, 0), [2, 0], 76),
    ],
)
def test_devices_that_are_far_from_each_other_cost(gpus: tuple[int, ...], containers: list[int], expected: int) -> None:
    amounts = [{"cpu": 2, "memory": "50Mi", GPU: count} for count in gpus]
    topology = a_topology("n", *zones_of(*amounts, costs=PAIRS), policy="best-effort")
    pod = a_numa_pod(*({"cpu": 2, "memory": "50Mi", GPU: count} for count in containers))

    assert least_numa_score(asked(pod), read_topology(topology)) == expected


def four(gpus: Sequence[int], without_memory: Sequence[int] = (), ids: Sequence[int] = (0, 1, 2, 3)) -> NodeTopology:
    """Four zones with these ids, two pairs of neighbours."""
    zones = [
        a_zone(
            ids[place],
            {ids[other]: cost for other, cost in PAIRS[place].items()},
            resources={"cpu": 4, GPU: count} | ({} if ids[place] in without_memory else {"memory": "5Gi"}),
        )
        for place, count in enumerate(gpus)
    ]
    return read_topology(a_topology("n", *zones))


FAR: Final = {
    0: (10, 20, 40, 30, 20, 30, 50, 40),
    3: (30, 40, 20, 10, 30, 20, 40, 50),
    5: (30, 20, 50, 20, 50, 10, 50, 40),
    7: (40, 50, 30, 50, 20, 40, 30, 10),
    1: (20, 10, 30, 40, 50, 20, 40, 50),
    6: (50, 40, 20, 40, 30, 50, 10, 30),
    2: (40, 30, 10, 20, 40, 50, 20, 30),
    4: (20, 50, 40, 30, 10, 50, 30, 20),
}
"""Zone → its distances to all others: not sorted, not the same both ways."""


def eight(without_memory: Sequence[int] = ()) -> NodeTopology:
    zones = [
        a_zone(
            number,
            dict(enumerate(costs)),
            resources={"cpu": 4, GPU: 1} | ({} if number in without_memory else {"memory": "5Gi"}),
        )
        for number, costs in FAR.items()
    ]
    return read_topology(a_topology("n", *zones))


def plain(zones: int) -> NodeTopology:
    return read_topology(a_topology("n", *zones_of(*[{"cpu": 8, "memory": "10Gi"}] * zones)))


SPARSE: Final = (0, 2, 4, 6)


@pytest.mark.parametrize(
    ("topology", "cores", "gpus", "expected", "near"),
    [
        (plain(1), 2, 0, {0}, True),
        (plain(2), 12, 0, {0, 1}, True),
        (plain(2), 22, 0, set(), False),
        (four((1, 1, 0, 0)), 2, 2, {0, 1}, True),
        (four((1, 0, 1, 0)), 2, 2, {0, 2}, False),
        (eight(), 3, 3, {0, 1, 5}, True),
        (eight(without_memory=(1, 3, 5, 7)), 3, 3, {2, 4, 6}, False),
        (four((1, 1, 0, 0), ids=SPARSE), 2, 2, {0, 2}, True),
        (four((1, 0, 0, 1), ids=SPARSE), 2, 2, {0, 6}, False),
        (four((1, 1, 1, 1), without_memory=(2, 6), ids=SPARSE), 2, 2, {0, 4}, False),
    ],
)
def test_the_nearest_of_the_fewest_zones_are_taken(
    topology: NodeTopology, cores: int, gpus: int, expected: set[int], near: bool
) -> None:
    amounts = asked(a_numa_pod({"cpu": cores, "memory": "2Gi", GPU: gpus})).whole
    left = [dict(zone.available) for zone in topology.zones]

    places, is_near = fewest_zones(amounts, topology, left, guaranteed=True)

    assert ({topology.zones[place].id for place in places}, is_near) == (expected, near)


@pytest.mark.parametrize(
    ("topology", "combinations", "expected"),
    [
        (four((0,) * 4), [(0,), (1,), (2,), (3,)], 10),
        (four((0,) * 4), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 11),
        (four((0,) * 4), [(0, 1, 2), (1, 2, 3), (0, 2, 3)], 14.888889),
        (plain(4), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 255),
    ],
)
def test_the_distance_is_the_mean_of_all_distances(
    topology: NodeTopology, combinations: list[tuple[int, ...]], expected: float
) -> None:
    assert min(average_distance(topology, places) for places in combinations) == pytest.approx(expected)


@pytest.mark.parametrize(("count", "near", "far"), [(1, 94, 88), (2, 82, 76), (8, 10, 4)])
def test_each_zone_costs_an_eighth_and_near_ones_give_half_of_that_back(count: int, near: int, far: int) -> None:
    costs = {number: dict.fromkeys(range(9), 10 if number else 20) for number in range(8)}
    together = a_topology("n", *zones_of(*[{"cpu": 1, "memory": "1Gi"}] * 8), policy="best-effort")
    pod = a_numa_pod({"cpu": count, "memory": "1Gi"})

    assert least_numa_score(asked(pod), read_topology(together)) == near
    if count < 8:
        first = [{"cpu": 1, "memory": "1Gi"}] * count + [{"cpu": 0, "memory": "1Gi"}] * (8 - count)
        apart = a_topology("n", *zones_of(*first, costs=costs), policy="best-effort")
        assert least_numa_score(asked(pod), read_topology(apart)) == far
