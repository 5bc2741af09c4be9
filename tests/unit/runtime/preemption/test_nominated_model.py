"""The nominated pods of all nodes are brought up to date, and are those that a new search would find."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

from scheduler import framework as fw
from scheduler.runtime.preemption.nominated import NominatedFinder
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.testing import a_node, a_pod

NAMES = ("a", "b", "c")
PODS = [a_pod(f"p{i}", priority=i % 3, requests={"cpu": i, "memory": 2**62}) for i in range(6)]

places, pods = st.sampled_from(NAMES), st.sampled_from(PODS)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("node"), places, pods),
        st.tuples(st.just("no node"), places, pods),
        st.tuples(st.just("nominate"), places, pods),
        st.tuples(st.just("forget"), places, pods),
        st.tuples(st.just("run"), places, pods),
        st.tuples(st.just("end"), places, pods),
    ),
    max_size=20,
)


@settings(max_examples=200, deadline=None)
@given(steps=steps, priorities=st.lists(st.integers(0, 3), min_size=21, max_size=21))
def test_nominated_pods_are_those_of_a_new_search(steps: list[tuple[str, str, fw.Pod]], priorities: list[int]) -> None:
    table, nominator = NodeTable(), Nominator()
    finder = NominatedFinder(table, nominator)
    for (step, name, pod), priority in zip(steps, priorities, strict=False):
        play(step, name, pod, table, nominator)
        new = a_pod("new", priority=priority // 2)

        found = finder.of(fw.CycleState(), new)

        rows = np.arange(table.size)
        fresh = fw.NominatedPods(finder.on(table.in_use, new), table.size)
        assert (found.by_row, len(found)) == (fresh.by_row, len(fresh))
        assert found.counts(rows).tolist() == fresh.counts(rows).tolist()
        assert found.sums("cpu", rows).tolist() == fresh.sums("cpu", rows).tolist()
        assert found.sums("memory", rows).tolist() == fresh.sums("memory", rows).tolist()


def play(step: str, name: str, pod: fw.Pod, table: NodeTable, nominator: Nominator) -> None:
    is_there = name in table.node_names()
    row = table.row_of(name) if is_there else None
    match step:
        case "node":
            table.set_node(a_node(name))
        case "no node" if is_there:
            table.remove_node(name)
        case "nominate":
            nominator.add(pod, name)
        case "forget":
            nominator.delete(pod.uid)
        case "run" if row is not None and not any(table.has_pod(each, pod.uid) for each in range(table.size)):
            table.add_pod(name, pod)
        case "end" if row is not None and table.has_pod(row, pod.uid):
            table.remove_pod(name, pod)
