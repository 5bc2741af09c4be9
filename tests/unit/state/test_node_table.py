"""Rows and pods of the node table, apart from what the random life of the cache says (test_cache_model)."""

import pytest

from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.unit.state.tables import LOCKED, MOST, SLOW, a_table, everything

# Rows.


def test_an_empty_table_has_no_rows() -> None:
    table = NodeTable()

    table.check_invariants()
    assert (table.size, table.count, list(table.names())) == (0, 0, [])
    assert len(table.in_use) == len(table.allocatable("cpu")) == len(table.label_codes("zone")) == 0


def test_the_rows_of_nodes_are_found_by_their_names_but_not_of_those_that_are_gone() -> None:
    table = a_table(a_node("a"), a_node("b"), a_node("c"))
    table.add_pod("b", a_pod("web"))
    table.remove_node("b")  # a placeholder now

    assert table.row_of("b") is None
    assert table.rows_of(["c", "mars", "b", "a"]).tolist() == [2, 0]
    assert table.rows_of([]).tolist() == []
    assert NodeTable().rows_of(["a"]).tolist() == []


def test_a_free_row_says_nothing() -> None:
    table = a_table(a_node("a", labels={"zone": "1"}, taints=[LOCKED], unschedulable=True, images={"app:1": 5}))

    table.remove_node("a")

    table.check_invariants()
    assert table.names() == [""]
    assert table.in_use.tolist() == [False]
    assert table.allowed_pods.tolist() == [0]
    assert table.unschedulable.tolist() == [False]
    assert not table.images
    assert table.row_of("a") is None
    assert table.node("a") is None
    assert table.node_names() == []
    assert table.count == 0
    with pytest.raises(KeyError, match="row 0 is not in use"):
        table.info(0)


# Growth.


def test_all_columns_have_the_length_of_the_table() -> None:
    table = a_table(*(a_node(f"n{i}", taints=[SLOW]) for i in range(5)))
    table.add_pod("late", a_pod())

    columns = [
        table.in_use,
        table.unschedulable,
        table.pod_count,
        table.allowed_pods,
        table.allocatable("cpu"),
        table.allocatable("unheard/of"),
        table.requested("cpu"),
        table.requested("unheard/of"),
        table.non_zero_requested("cpu"),
        table.label_codes("zone"),
        table.taints[SLOW],
        table.names(),
    ]

    assert {len(column) for column in columns} == {table.size} == {6}


def test_a_view_of_a_node_outlives_the_growth_of_the_table() -> None:
    table = a_table(a_node("a", cpu="2"), capacity=1)
    info = table.info(0)

    table.set_node(a_node("b"))
    table.add_pod("a", a_pod(requests={"cpu": "1"}))

    assert info.allocatable["cpu"] == 2000
    assert info.requested == {"cpu": 1000}


# Pods.


def test_scoring_counts_something_for_a_pod_that_asks_for_nothing() -> None:
    table = a_table(a_node("a"))

    table.add_pod("a", a_pod())

    table.check_invariants()
    assert table.requested("cpu").tolist() == [0]
    assert table.non_zero_requested("cpu").tolist() == [100]
    assert table.non_zero_requested("memory").tolist() == [200 * 2**20]


def test_a_pod_is_not_counted_twice_on_one_node() -> None:
    table = a_table(a_node("a"))
    table.add_pod("a", a_pod(requests={"cpu": "1"}))
    before = everything(table)

    with pytest.raises(ValueError, match="already"):
        table.add_pod("a", a_pod(requests={"cpu": "1"}))

    assert everything(table) == before


def test_an_unreadable_pod_changes_nothing() -> None:
    table = a_table(a_node("a"))
    before = everything(table)

    with pytest.raises(ValueError, match="lots"):
        table.add_pod("a", a_pod(requests={"cpu": "lots"}))
    with pytest.raises(ValueError, match="lots"):
        table.add_pod("stranger", a_pod(requests={"cpu": "lots"}))

    assert everything(table) == before
    assert table.size == 1


def test_sums_wrap_around_as_in_go_and_come_back() -> None:
    table = a_table(a_node("a"))
    pods = [a_pod(name, requests={"memory": str(MOST)}) for name in ("p", "q", "r")]
    sums = []

    for pod in pods:
        table.add_pod("a", pod)
        table.check_invariants()
        sums.append(table.requested("memory").item(0))
    for pod in pods[:2]:
        table.remove_pod("a", pod)
        table.check_invariants()
        sums.append(table.requested("memory").item(0))

    assert sums == [MOST, -2, MOST - 2, -2, MOST]
    assert table.non_zero_requested("memory").tolist() == [MOST]


def test_a_new_version_that_cannot_be_read_leaves_the_old_one_counted() -> None:
    table = a_table(a_node("a"))
    old = a_pod(requests={"cpu": "1"})
    table.add_pod("a", old)
    before = everything(table)

    with pytest.raises(ValueError, match="lots"):
        table.replace_pod("a", old, a_pod(requests={"cpu": "lots"}))

    assert everything(table) == before


# The invariants themselves.


def test_a_wrong_sum_is_noticed() -> None:
    table = a_table(a_node("a"))
    table.add_pod("a", a_pod(requests={"cpu": "1"}))

    table._amounts.requested["cpu"].values[0] = 7

    with pytest.raises(AssertionError, match="cpu"):
        table.check_invariants()


def test_a_forgotten_pod_is_noticed() -> None:
    table = a_table(a_node("a"))

    table._pod_count.values[0] += 1

    with pytest.raises(AssertionError, match="a"):
        table.check_invariants()
