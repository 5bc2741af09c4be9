"""Nodes as columns, and after these only what changed."""

import pytest

from scheduler import framework as fw
from scheduler.serve.page.nodes import CORDONED, NOT_READY, ROWS_AT_ONCE, TAINTED, NodeReader
from scheduler.testing import a_cluster, a_node, a_pod
from tests.unit.serve.page.sent_events import events, named

ZONE = "topology.kubernetes.io/zone"


def test_all_nodes_are_told_with_their_zones_and_use() -> None:
    table = a_cluster(a_node("a", cpu="4", labels={ZONE: "z1"}), a_node("b", cpu="2", labels={ZONE: "z2"}))
    table.add_pod("b", a_pod("p", requests={"cpu": 1}))

    told = events(*NodeReader(table).whole())

    assert told[0] == ("reset", {"resources": ["cpu", "memory", "pods"], "size": 2})
    name, data = told[1]
    assert (name, data["names"], data["zones"], data["zone"]) == ("nodes", ["a", "b"], ["z1", "z2"], [0, 1])
    assert data["use"] == {"cpu": [0, 500], "memory": [0, 0], "pods": [0, 9]}


def test_many_nodes_are_told_in_parts() -> None:
    table = a_cluster(*(a_node(f"n{number}") for number in range(ROWS_AT_ONCE + 1)))

    parts = named("nodes", events(*NodeReader(table).whole()))

    assert [len(part["rows"]) for part in parts] == [ROWS_AT_ONCE, 1]


def test_a_pod_that_comes_changes_the_use_of_its_node_alone() -> None:
    table = a_cluster(a_node("a"), a_node("b", cpu="4"))
    reader = NodeReader(table)
    table.add_pod("b", a_pod("p", requests={"cpu": 3}))

    changes = reader.changes()

    assert changes is not None
    assert [(name, data["rows"], data["use"]["cpu"]) for name, data in events(*changes)] == [("use", [1], [750])]
    assert list(reader.changes() or ()) == []


def test_a_node_that_goes_is_told_without_a_name() -> None:
    table = a_cluster(a_node("a"), a_node("b"))
    reader = NodeReader(table)
    table.remove_node("a")

    changes = reader.changes()

    assert changes is not None
    (data,) = named("nodes", events(*changes))
    assert (data["rows"], data["names"]) == ([0], [None])


def test_another_resource_means_that_all_is_told_again() -> None:
    table = a_cluster(a_node("a"))
    reader = NodeReader(table)
    table.set_node(a_node("b", allocatable={"nvidia.com/gpu": 8}))

    assert reader.changes() is None
    assert events(*reader.whole())[0][1]["resources"][-1] == "nvidia.com/gpu"


def test_more_changes_than_are_remembered_mean_the_same() -> None:
    table = a_cluster(a_node("a"))
    reader = NodeReader(table)
    pod = a_pod("p", requests={"cpu": 1})
    for _ in range(5000):
        table.add_pod("a", pod)
        table.remove_pod("a", pod)

    assert reader.changes() is None


@pytest.mark.parametrize(
    ("node", "flags"),
    [
        (a_node("n"), 0),
        (a_node("n", unschedulable=True), CORDONED),
        (a_node("n", taints=[fw.Taint(key="k", effect="NoSchedule")]), TAINTED),
        (a_node("n", taints=[fw.Taint(key="k", effect="PreferNoSchedule")]), 0),
        (a_node("n", taints=[fw.Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")]), NOT_READY),
    ],
)
def test_what_keeps_pods_away_is_told(node: fw.Node, flags: int) -> None:
    (data,) = named("nodes", events(*NodeReader(a_cluster(node)).whole()))

    assert data["flags"] == [flags]


def test_a_use_that_makes_no_sense_stays_a_number() -> None:
    table = a_cluster(a_node("a", cpu="1m", memory="0"))
    table.add_pod("a", a_pod("p", requests={"cpu": 9 << 40, "memory": 1 << 62}))

    (data,) = named("nodes", events(*NodeReader(table).whole()))

    assert (data["use"]["cpu"], data["use"]["memory"]) == ([9999], [-1])
