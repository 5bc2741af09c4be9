"""Any life of a cluster: a stored answer is the one that a fresh look gives."""

from collections.abc import Callable, Hashable

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from plugins.image_locality import ImageLocality
from plugins.node_resources.fit import NodeResourcesFit
from plugins.taint_toleration import TaintToleration
from scheduler import framework as fw
from scheduler.framework.nodes.nodes import Aspect
from scheduler.runtime.answers.store import AnswerStore, Evaluate
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_container, a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, every_row

GPU = "example.com/gpu"
TAINTS = [fw.Taint(key=key, effect=effect) for key, effect in (("a", "NoSchedule"), ("b", "PreferNoSchedule"))]
REQUESTS: list[dict[str, str | int]] = [{"cpu": 1}, {"cpu": 3, GPU: 1}, {"memory": "9Gi"}, {}]


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
    ("cpu", Aspect.REQUESTED, np.int64, lambda table: lambda rows: table.requested("cpu")[rows]),
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


def compare(store: AnswerStore, table: NodeTable) -> None:
    for key, aspects, dtype, evaluator in QUESTIONS:
        column = store.column(key, tuple(aspects), dtype, evaluator(table))
        fresh = evaluator(table)(every_row(table))
        expected = np.zeros(table.size, dtype) if fresh is None else fresh
        nodes = table.in_use
        assert column.values[nodes].tolist() == expected[nodes].tolist(), key
        assert column.may_differ or not column.values.any(), key


@settings(max_examples=60, deadline=None, derandomize=True)
@given(changes)
def test_a_stored_answer_is_always_the_one_that_a_fresh_look_gives(life: list[tuple[str, int, int]]) -> None:
    table = a_cluster(*(a_node(f"n{i}", images={"app:1": 2**29} if i % 5 == 0 else {}) for i in range(20)))
    store = AnswerStore(table)
    compare(store, table)

    for what, i, variant in life:
        if what == "ask":
            compare(store, table)
        else:
            change(table, what, i, variant)

    table.check_invariants()
    compare(store, table)
