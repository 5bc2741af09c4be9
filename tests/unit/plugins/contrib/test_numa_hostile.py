"""A NodeResourceTopology that is odd costs its own node alone, and a pod that asks for too much only itself."""

from typing import Any

import numpy as np
import pytest

from plugins.contrib.node_resource_topology.beliefs import PLUGIN
from plugins.contrib.node_resource_topology.plugin import NodeResourceTopologyMatch, ScoringStrategy
from plugins.contrib.node_resource_topology.topology import MAX_AMOUNT, RESOURCE, read_topology
from plugins.contrib.node_resource_topology.zones import MAX_COLUMNS, ZoneTable
from scheduler import framework as fw
from scheduler.testing import Objects, a_cluster, a_handle, a_node, an_object, started
from tests.fakes import sample
from tests.unit.plugins.contrib.topologies import a_numa_pod, a_topology, a_zone

STRATEGIES = ("LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes")
POLICY = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]
DIGITS = "9" * 100_000
SMALL = {"cpu": "2", "memory": "2Gi"}


def zone(number: int = 0, available: Any = "4", **more: Any) -> dict[str, Any]:
    resources = [{"name": name, "available": available} for name in ("cpu", "memory")]
    return {"name": f"node-{number}", "type": "Node", "resources": resources, **more}


def content(*zones: Any, attributes: Any = (), **more: Any) -> dict[str, Any]:
    return {"attributes": [*POLICY, *attributes], "zones": list(zones), **more}


AMOUNTS: tuple[Any, ...] = (
    DIGITS,
    f"0.{'0' * 90_000}1",
    "1e999999999",
    "1e-999999999",
    "-1e999999999",
    "9223372036854775807",
    "9223372036854775808",
    "1E",
    "-5",
    10**30,
    1e300,
    float("nan"),
    True,
    None,
    [],
    {},
    "NaN",
    "",
)
COSTS: tuple[Any, ...] = (10**400, -(10**400), -1, True, 1.5, "x", None, [])


def cost(value: Any) -> dict[str, Any]:
    return content(*(zone(i, "1", costs=[{"name": f"node-{1 - i}", "value": value}]) for i in (0, 1)))


ODD = [
    *(content(zone(0, amount), zone(1, amount)) for amount in AMOUNTS),
    *map(cost, COSTS),
    content(*(zone(i % 64) for i in range(10_000))),
    content({**zone(), "resources": [{"name": f"example.com/{i}", "available": "1"} for i in range(20_000)]}),
    content({**zone(), "costs": [{"name": f"node-{i % 64}", "value": i} for i in range(20_000)]}),
    content(zone(), attributes=[{"name": f"a{i}", "value": "x"} for i in range(20_000)]),
    content(zone(), attributes=[{"name": "nodeTopologyPodsFingerprint", "value": "x" * 1_000_000}]),
    content(zone(), attributes=[{"name": "nodeTopologyPodsFingerprint", "value": [["x"] * 100] * 100}]),
    content(zone(), attributes=[{"name": "topologyManagerMaxNUMANodes", "value": DIGITS}]),
    content({**zone(), "name": "node-" + DIGITS}, {**zone(), "name": "node-٣"}, {**zone(), "name": ["node-0"]}),
    content(zone(), zone(), zone(parent="node-0"), zone(parent=zone())),
    {"zones": {"node-0": zone()}, "attributes": {"a": "b"}, "topologyPolicies": {"a": "b"}},
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_an_odd_object_changes_nothing_for_other_nodes(odd: dict[str, Any], strategy: Any) -> None:
    nodes = a_cluster(a_node("odd", cpu="64", memory="256Gi"), a_node("good", cpu="64", memory="256Gi"))
    good = a_topology("good", a_zone(0, cpu="4", memory="8Gi"))
    objects = Objects({RESOURCE: [an_object("odd", uid="odd", **odd), good]})
    plugin = NodeResourceTopologyMatch(cache_resync_period_seconds=5, scoring_strategy=ScoringStrategy(strategy))
    plugin = started(plugin, a_handle(nodes, objects))
    pod, state = a_numa_pod(SMALL), fw.CycleState()

    def codes() -> list[int]:
        assert plugin.pre_filter(state, pod, nodes) is None
        found = plugin.filter_nodes(state, pod, nodes, np.arange(2))
        return [0, 0] if found is None else [int(code) for code in found]

    scores = plugin.score_nodes(state, pod, nodes, np.arange(2))
    assert scores is not None
    assert 0 <= scores[0] <= 100
    assert (codes()[1], scores[1]) == (0, {"LeastAllocated": 62, "MostAllocated": 37}.get(strategy, scores[1]))
    assert scores[1] > 0
    plugin.reserve(state, pod, "odd")
    plugin.reserve(state, pod, "good")
    assert codes()[1] == 0


@pytest.mark.parametrize("amount", ["1e18", "9223372036854775807", "1e30"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_pod_that_asks_for_more_than_any_zone_can_have_is_refused(amount: str, strategy: Any) -> None:
    nodes = a_cluster(a_node("n", cpu="64", memory="256Gi", allocatable={"example.com/gpu": "1"}))
    topology = a_topology("n", zone(0, "1e40"))
    plugin = started(
        NodeResourceTopologyMatch(scoring_strategy=ScoringStrategy(strategy)),
        a_handle(nodes, Objects({RESOURCE: [topology]})),
    )
    pod, state = a_numa_pod({"cpu": amount, "memory": amount}), fw.CycleState()

    codes = plugin.filter_nodes(state, pod, nodes, np.arange(1))

    assert codes is not None
    assert plugin.status_of(state, pod, int(codes[0])).reasons == ("cannot align container",)
    assert plugin.score_nodes(state, pod, nodes, np.arange(1)) is not None


def test_amounts_beyond_all_measure_are_as_good_as_a_large_one() -> None:
    topology = read_topology(an_object("n", **content(zone(0, "1e40"), zone(1, "-1e40"))))

    assert [each.available["cpu"] for each in topology.zones] == [MAX_AMOUNT, 0]


def test_resources_have_columns_only_if_they_are_reported_and_asked_for() -> None:
    table, rows = ZoneTable(), np.arange(1)
    names = [f"example.com/r{i}" for i in range(200)]
    for first in range(0, 200, 50):
        table.set(0, read_topology(a_topology("n", a_zone(0, resources=dict.fromkeys(names[first : first + 50], 1)))))
        assert not table._available.keys() - set(names)
        found = table.of(rows, 1, names)
        assert found.available.keys() == set(names[first : first + 50])
        assert all(column.tolist() == [[1]] for column in found.available.values())
        assert len(table._available) <= MAX_COLUMNS
    assert table.of(rows, 1, (f"example.com/x{i}" for i in range(100_000))).available == {}


def test_odd_objects_are_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "plugins")
    good, bad = content(zone()), content(zone(0, "much"))
    objects = Objects({RESOURCE: []})
    handle = a_handle(a_cluster(), objects)
    started(NodeResourceTopologyMatch(), handle)

    for a, b in ((bad, good), (bad, bad), (good, bad), (good, good), (good, good)):
        objects.put(RESOURCE, an_object("a", uid="a", **a), an_object("b", uid="b", **b))

    assert [record.message for record in caplog.records] == [
        "Not all of a NodeResourceTopology can be used",
        "All NodeResourceTopologies can be used again",
    ]
    assert caplog.records[0].__dict__["err"].startswith("zones[0].resources[0].available: not a quantity: 'much'")
    faults = sample(handle.metrics, "loadmaster_plugin_data_faults_total", plugin=PLUGIN, reason="odd object")
    assert faults == 4
