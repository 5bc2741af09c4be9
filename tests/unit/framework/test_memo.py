from collections.abc import Callable, Hashable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from plugins.image_locality import ImageLocality
from plugins.node_resources_fit import NodeResourcesFit
from plugins.taint_toleration import TaintToleration
from scheduler import framework as fw
from scheduler.framework.memo import MEMO_BYTES, Column, Evaluate, Memo, MemoColumn
from scheduler.framework.nodes import Aspect, Rows
from scheduler.framework.testing import a_container, a_node, a_pod
from scheduler.state.node_table import NodeTable
from tests.unit.plugins.cluster import a_cluster, every_row

GPU = "example.com/gpu"
REQUESTED = (Aspect.REQUESTED,)
TAINTS = [fw.Taint(key=key, effect=effect) for key, effect in (("a", "NoSchedule"), ("b", "PreferNoSchedule"))]
REQUESTS: list[dict[str, str | int]] = [{"cpu": 1}, {"cpu": 3, GPU: 1}, {"memory": "9Gi"}, {}]


class Toy:
    """Answers with the cpu requested on each node, and writes down which rows it was asked for."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.asked: list[list[int]] = []
        self.error: Exception | None = None

    def __call__(self, rows: Rows) -> Column | None:
        self.asked.append(rows.tolist())
        if self.error is not None:
            raise self.error
        return self.table.requested("cpu")[rows]

    @property
    def counts(self) -> list[int]:
        return [len(rows) for rows in self.asked]


def a_toy(nodes: int = 20) -> tuple[NodeTable, Memo, Toy]:
    table = a_cluster(*(a_node(f"n{i}") for i in range(nodes)))
    return table, Memo(table), Toy(table)


def ask(memo: Memo, toy: Evaluate, key: Hashable = "key", aspects: tuple[Aspect, ...] = REQUESTED) -> MemoColumn:
    return memo.column(key, aspects, np.int64, toy)


def put(table: NodeTable, node: str, uid: str = "p", cpu: int = 1) -> None:
    table.add_pod(node, a_pod(uid, uid=uid, requests={"cpu": cpu}))


# What is evaluated.


def test_the_first_question_is_answered_for_all_rows_and_the_second_from_memory() -> None:
    _, memo, toy = a_toy()

    first = ask(memo, toy).values.tolist()
    second = ask(memo, toy).values.tolist()

    assert first == second == [0] * 20
    assert toy.asked == [list(range(20))]


def test_only_changed_rows_are_evaluated_again() -> None:
    table, memo, toy = a_toy()
    ask(memo, toy)

    put(table, "n7")
    put(table, "n3")
    put(table, "n7", "q")
    values = ask(memo, toy).values

    assert toy.asked[1:] == [[3, 7]]
    assert values.tolist() == table.requested("cpu").tolist()


def test_a_change_is_evaluated_once() -> None:
    table, memo, toy = a_toy()
    ask(memo, toy)
    put(table, "n7")
    ask(memo, toy)

    values = ask(memo, toy).values

    assert toy.counts == [20, 1]
    assert values[7] == 1000


def test_a_change_of_another_aspect_evaluates_nothing() -> None:
    table, memo, toy = a_toy()
    ask(memo, toy)

    table.set_node(a_node("n1", labels={"zone": "a"}, cpu="64"))
    ask(memo, toy)

    assert toy.counts == [20]


def test_a_row_that_changed_in_several_aspects_is_evaluated_once() -> None:
    table, memo, toy = a_toy()
    aspects = (Aspect.REQUESTED, Aspect.LABELS)
    ask(memo, toy, aspects=aspects)

    put(table, "n1")
    table.set_node(a_node("n1", labels={"zone": "a"}))
    table.set_node(a_node("n2", labels={"zone": "a"}))
    ask(memo, toy, aspects=aspects)

    assert toy.asked[1:] == [[1, 2]]


def test_when_more_than_a_quarter_of_the_rows_changed_all_are_evaluated() -> None:
    table, memo, toy = a_toy(20)
    ask(memo, toy)

    for i in range(5):
        put(table, f"n{i}", f"a{i}")
    ask(memo, toy)
    for i in range(6):
        put(table, f"n{i}", f"b{i}")
    ask(memo, toy)

    assert toy.counts == [20, 5, 20]


def test_a_log_that_has_forgotten_too_much_leads_to_a_full_evaluation() -> None:
    table, memo, toy = a_toy()
    ask(memo, toy)

    pod = a_pod(requests={"cpu": 1})
    for _ in range(3000):
        table.add_pod("n5", pod)
        table.remove_pod("n5", pod)
    table.add_pod("n5", pod)
    values = ask(memo, toy).values

    assert toy.counts == [20, 20]
    assert values[5] == 1000


def test_a_change_that_may_touch_every_row_leads_to_a_full_evaluation() -> None:
    table, memo, toy = a_toy()
    ask(memo, toy, aspects=(Aspect.IMAGES,))

    table.set_node(a_node("n1", images={"app:1": 5}))
    ask(memo, toy, aspects=(Aspect.IMAGES,))

    assert toy.counts == [20, 20]


# Keys.


def test_equal_keys_share_a_column_and_others_do_not() -> None:
    table, memo, toy = a_toy()
    put(table, "n1")

    ask(memo, toy, ("filter", frozenset({1, 2})))
    ask(memo, toy, ("filter", frozenset({2, 1})))
    ask(memo, toy, ("filter", frozenset({3})))

    assert toy.counts == [20, 20]


def test_columns_of_different_ages_are_each_brought_up_to_date() -> None:
    table, memo, toy = a_toy()
    ask(memo, toy, "old")
    put(table, "n1")
    ask(memo, toy, "new")
    put(table, "n2", "q")

    old, new = ask(memo, toy, "old").values, ask(memo, toy, "new").values

    assert toy.asked[2:] == [[1, 2], [2]]
    assert old.tolist() == new.tolist() == table.requested("cpu").tolist()


def test_only_the_columns_of_a_prefix_are_forgotten() -> None:
    _, memo, toy = a_toy()
    keys = [(("filter", "A"), 1), (("filter", "A"), 2), (("filter", "B"), 1), "alone"]
    for key in keys:
        ask(memo, toy, key)

    memo.forget(("filter", "A"))
    toy.asked.clear()
    for key in keys:
        ask(memo, toy, key)

    assert toy.counts == [20, 20]


# Growth.


def test_new_rows_are_evaluated_and_old_ones_kept() -> None:
    table, memo, toy = a_toy()
    put(table, "n1")
    ask(memo, toy)

    table.set_node(a_node("n20"))
    put(table, "n20", "q", cpu=3)
    values = ask(memo, toy).values

    assert toy.asked[1:] == [[20]]
    assert values.tolist() == table.requested("cpu").tolist()
    assert memo.all_rows().tolist() == list(range(21))


def test_a_memo_of_no_nodes_is_empty_and_grows() -> None:
    table = NodeTable()
    memo, toy = Memo(table), Toy(table)

    empty = ask(memo, toy).values.tolist()
    table.set_node(a_node("a"))
    put(table, "a")

    assert empty == []
    assert ask(memo, toy).values.tolist() == [1000]


def test_the_numbers_of_all_rows_cannot_be_written() -> None:
    _, memo, _ = a_toy()

    assert not memo.all_rows().flags.writeable


# What is stored.


def test_a_stored_column_does_not_follow_the_array_that_was_handed_over() -> None:
    table, memo, _ = a_toy()
    put(table, "n1")

    stored = memo.column("key", (Aspect.NAME,), np.int64, lambda rows: table.requested("cpu")).values
    put(table, "n1", "q")

    assert stored[1] == 1000


def test_an_answer_of_none_means_0() -> None:
    table, memo, toy = a_toy()
    put(table, "n1")
    column = ask(memo, toy)
    before = column.values.tolist()

    put(table, "n1", "q")
    again = ask(memo, lambda rows: None).values.tolist()

    assert before[1] == 1000
    assert again == [0] * 20


def test_may_differ_says_whether_anything_but_0_may_be_stored() -> None:
    table, memo, toy = a_toy()
    said = [ask(memo, toy).may_differ]
    pod = a_pod(requests={"cpu": 1})

    table.add_pod("n1", pod)
    said.append(ask(memo, toy).may_differ)
    table.remove_pod("n1", pod)
    cautious = ask(memo, toy)
    for i in range(10):
        table.add_pod(f"n{i}", a_pod(f"p{i}"))
    said.append(ask(memo, toy).may_differ)

    assert not cautious.values.any()
    assert said == [False, True, False]


def test_an_exception_leaves_no_stale_column() -> None:
    table, memo, toy = a_toy()
    ask(memo, toy)
    put(table, "n1")
    toy.error = RuntimeError("a plugin failed")

    with pytest.raises(RuntimeError, match="a plugin failed"):
        ask(memo, toy)
    toy.error = None
    values = ask(memo, toy).values

    assert toy.counts == [20, 1, 20]
    assert values.tolist() == table.requested("cpu").tolist()


def test_an_exception_at_the_first_question_stores_nothing() -> None:
    table, memo, toy = a_toy()
    put(table, "n1")
    toy.error = RuntimeError("a plugin failed")

    with pytest.raises(RuntimeError, match="a plugin failed"):
        ask(memo, toy)
    toy.error = None

    assert ask(memo, toy).values[1] == 1000


# Limits.


class ManyRows(NodeTable):
    """So many rows that few columns fit into the memo; none of them is ever touched."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size


@pytest.mark.parametrize(
    ("size", "room"),
    [
        pytest.param(MEMO_BYTES // 8 // 10, 10, id="as many as fit"),
        pytest.param(MEMO_BYTES // 8, 8, id="eight, however long they are"),
    ],
)
def test_the_least_recently_used_columns_go_first(size: int, room: int) -> None:
    memo = Memo(ManyRows(size))
    evaluated: list[Hashable] = []

    def use(key: Hashable) -> None:
        def evaluate(rows: Rows) -> None:
            evaluated.append(key)

        ask(memo, evaluate, key)

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


# Any life of a cluster.


def filter_of(plugin: NodeResourcesFit | TaintToleration, pod: fw.Pod, table: NodeTable) -> Evaluate:
    state = fw.CycleState()
    if isinstance(plugin, NodeResourcesFit):
        plugin.pre_filter(state, pod, table)
    return lambda rows: plugin.filter_nodes(state, pod, table, rows)


def score_of(plugin: fw.ScoreNodesPlugin, pod: fw.Pod, table: NodeTable) -> Evaluate:
    state = fw.CycleState()
    if isinstance(plugin, fw.PreScorePlugin):
        plugin.pre_score(state, pod, table, every_row(table))
    return lambda rows: plugin.score_nodes(state, pod, table, rows)


FIT, TOLERATION, LOCALITY = NodeResourcesFit(), TaintToleration(), ImageLocality()
SMALL = a_pod("small")
LARGE = a_pod("large", requests={"cpu": "2", GPU: "1", "memory": "1Gi"})
CAREFREE = a_pod("carefree", tolerations=[fw.Toleration(operator="Exists")])
TWO_IMAGES = a_pod("images", containers=[a_container(image="app:1"), a_container("db", image="db:1")])

Question = tuple[Hashable, fw.Aspect, type[np.generic], Callable[[NodeTable], Evaluate]]
QUESTIONS: list[Question] = [
    ("toy", Aspect.REQUESTED, np.int64, Toy),
    ("fit small", FIT.aspects, np.int32, lambda table: filter_of(FIT, SMALL, table)),
    ("fit large", FIT.aspects, np.int32, lambda table: filter_of(FIT, LARGE, table)),
    ("fit score", FIT.aspects, np.int64, lambda table: score_of(FIT, LARGE, table)),
    ("taints", TOLERATION.aspects, np.int32, lambda table: filter_of(TOLERATION, SMALL, table)),
    ("tolerated", TOLERATION.aspects, np.int32, lambda table: filter_of(TOLERATION, CAREFREE, table)),
    ("taint score", TOLERATION.aspects, np.int64, lambda table: score_of(TOLERATION, SMALL, table)),
    ("images", LOCALITY.aspects, np.int64, lambda table: score_of(LOCALITY, TWO_IMAGES, table)),
]

changes = st.lists(
    st.tuples(
        st.sampled_from(["node", "node", "bare", "no node", "pod", "pod", "pod", "no pod", "what if", "ask", "ask"]),
        st.integers(0, 25),
        st.integers(0, 7),
    ),
    max_size=30,
)


def change(table: NodeTable, what: str, i: int, variant: int) -> None:
    name = f"n{i}"
    row, pods = table.row_of(name), list(table.pods_on(name))
    pod = a_pod(f"p{i}-{variant}", requests=REQUESTS[variant % 4])
    if what == "node":
        table.set_node(
            a_node(
                name,
                cpu=["1", "4", "8", "0"][variant % 4],
                pods=[110, 1, 0][variant % 3],
                allocatable={GPU: 1} if variant > 5 else {},
                taints=[taint for bit, taint in enumerate(TAINTS) if variant >> bit & 1],
                images=[{}, {"app:1": 2**29}, {"app:1": 2**28, "db:1": 2**29}][variant % 3],
            )
        )
    elif what == "bare":
        table.set_node(a_node(name))
    elif what == "no node":
        table.remove_node(name)
    elif what == "pod" and pod.uid not in {other.uid for other in pods}:
        table.add_pod(name, pod)
    elif what == "no pod" and pods:
        table.remove_pod(name, pods[variant % len(pods)])
    elif what == "what if" and row is not None:
        with table.what_if(row, add=[a_pod("visitor", requests={"cpu": 4})], remove=pods):
            table.check_invariants()


def compare(memo: Memo, table: NodeTable) -> None:
    for key, aspects, dtype, evaluator in QUESTIONS:
        column = memo.column(key, tuple(aspects), dtype, evaluator(table))
        fresh = evaluator(table)(every_row(table))
        expected = np.zeros(table.size, dtype) if fresh is None else fresh
        nodes = table.in_use
        assert column.values[nodes].tolist() == expected[nodes].tolist(), key
        assert column.may_differ or not column.values.any(), key


@settings(max_examples=60, deadline=None, derandomize=True)
@given(changes)
def test_a_stored_answer_is_always_the_one_that_a_fresh_look_gives(life: list[tuple[str, int, int]]) -> None:
    table = a_cluster(*(a_node(f"n{i}", images={"app:1": 2**29} if i % 5 == 0 else {}) for i in range(20)))
    memo = Memo(table)
    compare(memo, table)

    for what, i, variant in life:
        if what == "ask":
            compare(memo, table)
        else:
            change(table, what, i, variant)

    table.check_invariants()
    compare(memo, table)
