"""Which node has which row of the table: nodes that come and go, pods before their node, growth."""

import pytest

from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.unit.state.tables import GPU, LOCKED, SLOW, a_table, everything

# Rows.


def test_an_empty_table_has_no_rows() -> None:
    table = NodeTable()

    table.check_invariants()
    assert (table.size, table.count, list(table.names())) == (0, 0, [])
    assert len(table.in_use) == len(table.allocatable("cpu")) == len(table.label_codes("zone")) == 0


def test_each_node_gets_a_row_of_its_own() -> None:
    table = NodeTable()

    rows = [table.set_node(a_node(name)) for name in ("a", "b", "c")]

    table.check_invariants()
    assert rows == [0, 1, 2]
    assert table.names() == ["a", "b", "c"]
    assert table.in_use.tolist() == [True, True, True]
    assert (table.size, table.count) == (3, 3)


def test_the_rows_of_nodes_are_found_by_their_names_but_not_of_those_that_are_gone() -> None:
    table = a_table(a_node("a"), a_node("b"), a_node("c"))
    table.add_pod("b", a_pod("web"))
    table.remove_node("b")  # a placeholder now

    assert table.rows_of(["c", "mars", "b", "a"]).tolist() == [2, 0]
    assert table.rows_of([]).tolist() == []
    assert NodeTable().rows_of(["a"]).tolist() == []


def test_a_new_version_of_a_node_keeps_its_row() -> None:
    table = a_table(a_node("a"), a_node("b"))
    newer = a_node("a", cpu="8")

    row = table.set_node(newer)

    table.check_invariants()
    assert row == 0
    assert table.node("a") is newer
    assert (table.size, table.count) == (2, 2)


def test_a_removed_node_without_pods_frees_its_row_for_the_next_one() -> None:
    table = a_table(
        a_node("a", labels={"zone": "1"}, taints=[LOCKED], unschedulable=True, allocatable={GPU: "2"}), a_node("b")
    )

    table.remove_node("a")
    row = table.set_node(a_node("c", cpu="1"))

    table.check_invariants()
    assert row == 0
    assert table.names() == ["c", "b"]
    assert (table.size, table.count) == (2, 2)
    assert table.unschedulable.tolist() == [False, False]
    assert table.allocatable(GPU).tolist() == [0, 0]
    assert table.allocatable("cpu").tolist() == [1000, 4000]
    assert table.label_codes("zone").tolist() == [0, 0]
    assert not table.taints


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


def test_removing_an_unknown_node_does_nothing() -> None:
    table = a_table(a_node("a"))
    before = everything(table)

    table.remove_node("stranger")

    assert everything(table) == before


def test_removing_a_node_twice_does_nothing_more() -> None:
    table = a_table(a_node("a"), a_node("b"))
    table.add_pod("a", a_pod())
    table.remove_node("a")
    before = everything(table)

    table.remove_node("a")

    assert everything(table) == before


def test_an_unreadable_node_changes_nothing() -> None:
    table = a_table(a_node("a"))
    before = everything(table)

    with pytest.raises(ValueError, match="lots"):
        table.set_node(a_node("a", cpu="lots", labels={"zone": "1"}))
    with pytest.raises(ValueError, match="lots"):
        table.set_node(a_node("b", cpu="lots"))

    assert everything(table) == before
    assert table.size == 1


# Placeholders.


def test_a_pod_on_an_unknown_node_waits_for_it_in_a_placeholder() -> None:
    table = NodeTable()
    pod = a_pod(requests={"cpu": "1"})

    table.add_pod("late", pod)

    table.check_invariants()
    assert (table.size, table.count) == (1, 0)
    assert table.in_use.tolist() == [False]
    assert table.names() == [""]
    assert table.row_of("late") is None
    assert table.node("late") is None
    assert list(table.pods_on("late")) == [pod]


def test_a_late_node_finds_its_pods_counted() -> None:
    table = NodeTable()
    table.add_pod("late", a_pod(requests={"cpu": "1", GPU: "1"}))

    row = table.set_node(a_node("late"))

    table.check_invariants()
    assert row == 0
    assert table.info(row).requested == {"cpu": 1000, GPU: 1}
    assert table.pod_count.tolist() == [1]
    assert (table.size, table.count) == (1, 1)


def test_pods_of_a_removed_node_stay_counted_until_they_go() -> None:
    table = a_table(a_node("a"), a_node("b"))
    first, second = a_pod("p", requests={"cpu": "1"}), a_pod("q", requests={"cpu": "2"})
    table.add_pod("a", first)
    table.add_pod("a", second)

    table.remove_node("a")
    table.remove_pod("a", first)

    table.check_invariants()
    assert table.row_of("a") is None
    assert list(table.pods_on("a")) == [second]
    assert table.requested("cpu").tolist() == [2000, 0]


def test_the_last_pod_of_a_placeholder_frees_its_row() -> None:
    table = a_table(a_node("a"))
    pod = a_pod(requests={"cpu": "1"})
    table.add_pod("a", pod)
    table.remove_node("a")

    table.remove_pod("a", pod)
    row = table.set_node(a_node("c"))

    table.check_invariants()
    assert row == 0
    assert table.pods_on("a") == ()
    assert table.requested("cpu").tolist() == [0]


def test_the_last_pod_of_a_node_does_not_free_its_row() -> None:
    table = a_table(a_node("a"))
    pod = a_pod()
    table.add_pod("a", pod)

    table.remove_pod("a", pod)

    table.check_invariants()
    assert table.row_of("a") == 0


def test_a_node_that_comes_back_gets_its_row_and_pods_back() -> None:
    table = a_table(a_node("a"), a_node("b"))
    pod = a_pod()
    table.add_pod("b", pod)
    table.remove_node("b")
    table.set_node(a_node("c"))

    row = table.set_node(a_node("b", labels={"zone": "2"}))

    table.check_invariants()
    assert row == 1
    assert list(table.info(row).pods) == [pod]
    assert table.info(row).labels == {"zone": "2"}


def test_no_pod_is_on_a_node_that_was_never_seen() -> None:
    assert NodeTable().pods_on("stranger") == ()


# Growth.


def test_a_table_that_grows_loses_nothing() -> None:
    table = NodeTable(capacity=1)
    assert table.label_values("zone") == [""]

    for i in range(9):
        zone = {"zone": str(i % 2)}
        table.set_node(
            a_node(
                f"n{i}",
                cpu=i,
                pods=i,
                labels=zone,
                taints=[LOCKED] if i % 3 == 0 else [],
                unschedulable=i == 4,
                allocatable={GPU: i} if i == 2 else {},
            )
        )
        table.add_pod(f"n{i}", a_pod(f"p{i}", requests={"memory": i}))

    table.check_invariants()
    assert (table.size, table.count) == (9, 9)
    assert table.in_use.all()
    assert table.allocatable("cpu").tolist() == [1000 * i for i in range(9)]
    assert table.allocatable(GPU).tolist() == [0, 0, 2, 0, 0, 0, 0, 0, 0]
    assert table.allowed_pods.tolist() == list(range(9))
    assert table.pod_count.tolist() == [1] * 9
    assert table.requested("memory").tolist() == list(range(9))
    assert table.unschedulable.tolist() == [i == 4 for i in range(9)]
    assert table.taints[LOCKED].tolist() == [i % 3 == 0 for i in range(9)]
    values = table.label_values("zone")
    assert [values[code] for code in table.label_codes("zone").tolist()] == [str(i % 2) for i in range(9)]


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


def test_a_placeholder_may_be_what_makes_the_table_grow() -> None:
    table = a_table(a_node("a"), capacity=1)

    table.add_pod("late", a_pod(requests={"cpu": "1"}))

    table.check_invariants()
    assert table.requested("cpu").tolist() == [0, 1000]
