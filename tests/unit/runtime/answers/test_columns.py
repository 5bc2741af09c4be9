"""What is evaluated, and what is remembered."""

from collections.abc import Callable, Hashable

import numpy as np
import pytest

from scheduler.framework.nodes.nodes import Aspect, Rows
from scheduler.runtime.answers.store import FEWEST, STORE_BYTES, AnswerStore, Column, Evaluate, Values
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.unit.plugins.cluster import a_cluster

REQUESTED = (Aspect.REQUESTED,)
NAMES = [f"n{i}" for i in range(20)]


class Toy:
    """Answers with the cpu requested on each node, and writes down which rows it was asked for."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.asked: list[list[int]] = []
        self.error: Exception | None = None

    def __call__(self, rows: Rows) -> Values | None:
        self.asked.append(rows.tolist())
        if self.error is not None:
            raise self.error
        return self.table.requested("cpu")[rows]

    @property
    def counts(self) -> list[int]:
        return [len(rows) for rows in self.asked]


def a_toy(nodes: int = 20) -> tuple[NodeTable, AnswerStore, Toy]:
    table = a_cluster(*(a_node(f"n{i}") for i in range(nodes)))
    return table, AnswerStore(table), Toy(table)


def ask(store: AnswerStore, toy: Evaluate, key: Hashable = "key", aspects: tuple[Aspect, ...] = REQUESTED) -> Column:
    return store.column(key, aspects, np.int64, toy)


def put(table: NodeTable, node: str, uid: str = "p", cpu: int = 1) -> None:
    table.add_pod(node, a_pod(uid, uid=uid, requests={"cpu": cpu}))


# What is evaluated.


def test_the_first_question_is_answered_for_all_rows_and_the_second_from_memory() -> None:
    _, store, toy = a_toy()

    first = ask(store, toy).values.tolist()
    second = ask(store, toy).values.tolist()

    assert first == second == [0] * 20
    assert toy.asked == [list(range(20))]


def put_all(table: NodeTable, *nodes: str) -> NodeTable:
    for node in nodes:
        put(table, node, f"{node}-{len(table.pods_on(node))}")
    return table


def relabel(table: NodeTable, *nodes: str) -> None:
    for node in nodes:
        table.set_node(a_node(node, labels={"zone": "a"}, cpu="64"))


def forget_much(table: NodeTable) -> None:
    pod = a_pod(requests={"cpu": 1})
    for _ in range(3000):  # more than a log of changes holds
        table.add_pod("n5", pod)
        table.remove_pod("n5", pod)
    table.add_pod("n5", pod)


EVERYTHING = list(range(20))


@pytest.mark.parametrize(
    ("aspects", "change", "asked"),
    [
        pytest.param(REQUESTED, lambda table: None, [], id="nothing changed"),
        pytest.param(REQUESTED, lambda table: put_all(table, "n7", "n3", "n7"), [[3, 7]], id="two rows, one twice"),
        pytest.param(REQUESTED, lambda table: relabel(table, "n1"), [], id="another aspect"),
        pytest.param(
            (Aspect.REQUESTED, Aspect.LABELS),
            lambda table: relabel(put_all(table, "n1"), "n1", "n2"),
            [[1, 2]],
            id="a row in several aspects",
        ),
        pytest.param(REQUESTED, lambda table: put_all(table, *NAMES[:5]), [EVERYTHING[:5]], id="a quarter of the rows"),
        pytest.param(REQUESTED, lambda table: put_all(table, *NAMES[:6]), [EVERYTHING], id="more than a quarter"),
        pytest.param(REQUESTED, forget_much, [EVERYTHING], id="more changes than the log holds"),
        pytest.param(
            (Aspect.IMAGES,),
            lambda table: table.set_node(a_node("n1", images={"app:1": 5})),
            [EVERYTHING],
            id="a change that may touch every row",
        ),
    ],
)
def test_a_change_is_evaluated_once_and_only_where_it_matters(
    aspects: tuple[Aspect, ...], change: Callable[[NodeTable], object], asked: list[list[int]]
) -> None:
    table, store, toy = a_toy()
    ask(store, toy, aspects=aspects)

    change(table)
    for _ in range(2):
        assert ask(store, toy, aspects=aspects).values.tolist() == table.requested("cpu").tolist()

    assert toy.asked[1:] == asked


# Keys.


def test_equal_keys_share_a_column_and_others_do_not() -> None:
    table, store, toy = a_toy()
    put(table, "n1")

    ask(store, toy, ("filter", frozenset({1, 2})))
    ask(store, toy, ("filter", frozenset({2, 1})))
    ask(store, toy, ("filter", frozenset({3})))

    assert toy.counts == [20, 20]


def test_columns_of_different_ages_are_each_brought_up_to_date() -> None:
    table, store, toy = a_toy()
    ask(store, toy, "old")
    put(table, "n1")
    ask(store, toy, "new")
    put(table, "n2", "q")

    old, new = ask(store, toy, "old").values, ask(store, toy, "new").values

    assert toy.asked[2:] == [[1, 2], [2]]
    assert old.tolist() == new.tolist() == table.requested("cpu").tolist()


def test_only_the_columns_of_a_prefix_are_forgotten() -> None:
    _, store, toy = a_toy()
    keys = [(("filter", "A"), 1), (("filter", "A"), 2), (("filter", "B"), 1), "alone"]
    for key in keys:
        ask(store, toy, key)

    store.drop_columns(("filter", "A"))
    toy.asked.clear()
    for key in keys:
        ask(store, toy, key)

    assert toy.counts == [20, 20]


# Growth.


def test_new_rows_are_evaluated_and_old_ones_kept() -> None:
    table, store, toy = a_toy()
    put(table, "n1")
    ask(store, toy)

    table.set_node(a_node("n20"))
    put(table, "n20", "q", cpu=3)
    values = ask(store, toy).values

    assert toy.asked[1:] == [[20]]
    assert values.tolist() == table.requested("cpu").tolist()
    assert store.all_rows().tolist() == list(range(21))
    assert not store.all_rows().flags.writeable


def test_a_store_of_no_nodes_is_empty_and_grows() -> None:
    table = NodeTable()
    store, toy = AnswerStore(table), Toy(table)

    empty = ask(store, toy).values.tolist()
    table.set_node(a_node("a"))
    put(table, "a")

    assert empty == []
    assert ask(store, toy).values.tolist() == [1000]


# What is stored.


def test_a_stored_column_does_not_follow_the_array_that_was_handed_over() -> None:
    table, store, _ = a_toy()
    put(table, "n1")

    stored = store.column("key", (Aspect.NAME,), np.int64, lambda rows: table.requested("cpu")).values
    put(table, "n1", "q")

    assert stored[1] == 1000


def test_an_answer_of_none_means_0() -> None:
    table, store, toy = a_toy()
    put(table, "n1")
    column = ask(store, toy)
    before = column.values.tolist()

    put(table, "n1", "q")
    again = ask(store, lambda rows: None).values.tolist()

    assert before[1] == 1000
    assert again == [0] * 20


def test_may_differ_says_whether_anything_but_0_may_be_stored() -> None:
    table, store, toy = a_toy()
    said = [ask(store, toy).may_differ]
    pod = a_pod(requests={"cpu": 1})

    table.add_pod("n1", pod)
    said.append(ask(store, toy).may_differ)
    table.remove_pod("n1", pod)
    cautious = ask(store, toy)
    for i in range(10):
        table.add_pod(f"n{i}", a_pod(f"p{i}"))
    said.append(ask(store, toy).may_differ)

    assert not cautious.values.any()
    assert said == [False, True, False]


@pytest.mark.parametrize("is_stored", [True, False])
def test_an_exception_leaves_no_stale_column(is_stored: bool) -> None:
    table, store, toy = a_toy()
    if is_stored:
        ask(store, toy)
    put(table, "n1")
    toy.error = RuntimeError("a plugin failed")

    with pytest.raises(RuntimeError, match="a plugin failed"):
        ask(store, toy)
    toy.error = None
    values = ask(store, toy).values

    assert toy.counts == ([20, 1, 20] if is_stored else [20, 20])
    assert values.tolist() == table.requested("cpu").tolist()


# Limits.


class ManyRows(NodeTable):
    """So many rows that few columns fit into the store; none of them is ever touched."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size


@pytest.mark.parametrize(
    ("size", "room"),
    [
        pytest.param(STORE_BYTES // 8 // 31, 30, id="as many as fit"),
        pytest.param(STORE_BYTES // 8, FEWEST, id="a few, however long they are"),
    ],
)
def test_the_least_recently_used_columns_go_first(size: int, room: int) -> None:
    store = AnswerStore(ManyRows(size))
    evaluated: list[Hashable] = []

    def use(key: Hashable) -> None:
        def evaluate(rows: Rows) -> None:
            evaluated.append(key)

        ask(store, evaluate, key)

    for key in range(room):
        use(key)
    use(0)
    use("one more")  # in the place of 1
    evaluated.clear()
    for key in (0, *range(2, room), "one more"):
        use(key)
    stored = list(evaluated)
    use(1)

    assert stored == []
    assert evaluated == [1]
