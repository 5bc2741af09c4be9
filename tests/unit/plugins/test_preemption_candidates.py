"""Which victims a node takes, which candidates are found, and which of them is best.

The intent of kube-scheduler's TestDryRunPreemption and TestSelectBestCandidate in
defaultpreemption/default_preemption_test.go, and of preemption/preemption_test.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from plugins.shared.eviction.budgets import NO_DISRUPTIONS, Budgets, Disruptions
from plugins.shared.eviction.candidates import Candidate, CandidateSearch, SearchResult, cheapest, costs
from scheduler import framework as fw
from scheduler.api.unstructured import Unstructured
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.nodes.nodes import Rows
from scheduler.testing import a_pod
from tests.fakes import PlainFilter
from tests.unit.plugins.preemption import Scene, a_budget, a_scene, node, pod

DB = {"app": "db"}


def search(
    scene: Scene, high: fw.Pod, wanted: int = 100, *, start: int = 0, budgets: Iterable[Unstructured] = ()
) -> SearchResult:
    """Look at all nodes, from the one at place `start` on."""
    searcher, rows = a_search(scene, high, budgets, start=start)
    return searcher.among(rows, wanted)


def a_search(
    scene: Scene,
    high: fw.Pod,
    budgets: Iterable[Unstructured] = (),
    *,
    start: int = 0,
    disruptions: Disruptions = NO_DISRUPTIONS,
) -> tuple[CandidateSearch, Rows]:
    """Begin a search, and return all nodes, from the one at place `start` on."""
    state = fw.CycleState()
    scene.framework.run_pre_filter(state, high, Diagnosis(scene.table.count))
    run = scene.framework.handle.dry_runs.begin(state, high)
    rows = np.roll(np.flatnonzero(scene.table.in_use), -start)
    return CandidateSearch(run, high, scene.table, Budgets.among(budgets, disruptions)), rows


def victims(
    pods: Mapping[str, Sequence[fw.Pod]], high: fw.Pod, budgets: Iterable[Unstructured] = (), **wishes: Any
) -> dict[str, tuple[list[str], int]]:
    """Return the victims and violations on each node of four cores, if it is a candidate."""
    scene = a_scene(*(node(name) for name in pods), pods=pods, **wishes)
    searcher, rows = a_search(scene, high, budgets)
    names = scene.table.names()
    return {
        names[each.row]: ([victim.name for victim in searcher.victims_of(each.row)], each.costs[0])
        for each in searcher.among(rows, 100).candidates
    }


def names(scene: Scene, found: SearchResult) -> list[str]:
    """The nodes that are candidates."""
    return [scene.table.names()[each.row] for each in found.candidates]


WEB_AND_DB = [pod("web", 50, 2), pod("db", 0, 2, labels=DB)]
TWO_DB = [pod("db-1", 2, 2, labels=DB), pod("db-2", 1, 2, labels=DB)]


@pytest.mark.parametrize(
    ("on_node", "cpu", "allowed", "chosen"),
    [
        pytest.param(
            [pod("new", 0, 2, started=None), pod("old", 0, 2, started=10**6)],
            2,
            None,
            (["new"], 0),
            id="one that has not started is the youngest",
        ),
        pytest.param(
            [pod("a", 1), pod("b", 9), pod("c", 5, started=7), pod("d", 5, started=3)],
            4,
            None,
            (["b", "d", "c", "a"], 0),
            id="the most important is told first",
        ),
        pytest.param(WEB_AND_DB, 4, 0, (["web", "db"], 1), id="violations are counted and all sorted together"),
        pytest.param(TWO_DB, 4, 1, (["db-1", "db-2"], 1), id="a budget allows one of two"),
        pytest.param(TWO_DB, 2, 1, (["db-1"], 0), id="a budget allows the most important one"),
    ],
)
def test_victims_on_a_node(on_node: list[fw.Pod], cpu: int, allowed: int | None, chosen: tuple[list[str], int]) -> None:
    budgets = [] if allowed is None else [a_budget(allowed, app="db")]

    assert victims({"n": on_node}, pod("high", 100, cpu), budgets) == {"n": chosen}


def test_a_filter_of_any_kind_judges_a_node_without_its_victims() -> None:
    apart = PlainFilter(lambda _, info: fw.unschedulable("x") if any(p.name == "x" for p in info.pods) else None)
    pods = {"n": [pod("x", 0), pod("y", 0)], "m": [pod("z", 0)]}

    assert victims(pods, pod("high", 100), filters=[apart])["n"] == (["x"], 0)


def test_why_nodes_are_no_candidates_is_counted() -> None:
    scene = a_scene(
        *map(node, "nmo"), pods={"n": [pod("a", 100, 4)], "m": [pod("b", 100, 3), pod("c", 0)], "o": [pod("d", 0, 4)]}
    )

    found = search(scene, pod("high", 100, 4))

    assert {status.message: count for status, count in found.refusals.items()} == {
        "No preemption victims found for incoming pod": 1,
        "Insufficient cpu": 1,
    }
    assert names(scene, found) == ["o"]


FIVE = {name: [pod(name, 0, 4)] for name in ("n1", "n2", "n3", "n4", "n5")}


@pytest.mark.parametrize(
    ("start", "found"), [(0, ["n1", "n2"]), (1, ["n2", "n3"]), (3, ["n4", "n5"]), (4, ["n5", "n1"])]
)
def test_the_search_ends_with_enough_candidates_wherever_it_begins(start: int, found: list[str]) -> None:
    scene = a_scene(*map(node, FIVE), pods=FIVE)

    assert names(scene, search(scene, pod("high", 100, 4), 2, start=start)) == found


def test_the_search_goes_on_until_a_candidate_violates_nothing() -> None:
    pods = {name: [pod(name, 0, 4, labels=DB if name != "n5" else {})] for name in FIVE}
    scene = a_scene(*map(node, pods), pods=pods)

    found = search(scene, pod("high", 100, 4), 2, budgets=[a_budget(0, app="db")])

    assert names(scene, found) == ["n5", "n1", "n2"]
    assert [each.costs[0] for each in found.candidates] == [0, 1, 1]


def test_where_all_violate_the_first_ones_are_kept() -> None:
    pods = {name: [pod(name, 0, 4, labels=DB)] for name in FIVE}
    scene = a_scene(*map(node, pods), pods=pods)

    found = search(scene, pod("high", 100, 4), 2, budgets=[a_budget(0, app="db")])

    assert names(scene, found) == ["n1", "n2"]


def candidate(name: str, *on_node: fw.Pod, violations: int = 0) -> Candidate:
    return Candidate(costs(on_node, violations), ord(name))


MOST = 2**63 - 1
amounts = st.sampled_from([0, 1, 2, 3, 5, MOST // 2, MOST])
lower_pods = st.tuples(
    st.sampled_from([0, 0, 5, -5, 100, -(2**31)]),
    st.integers(0, 3),
    st.sampled_from([None, 0, 1, 2]),
    amounts,
    st.sampled_from(["", "", "a", "b"]),
)
clusters = st.lists(st.tuples(amounts, st.integers(0, 5), st.lists(lower_pods, max_size=6)), min_size=1, max_size=4)


def a_running_pod(name: str, drawn: tuple[int, int, int | None, int, str]) -> fw.Pod:
    priority, cpu, started, memory, app = drawn
    made = pod(name, priority, started=started)
    other = a_pod(name, priority=priority, requests={"cpu": cpu, "memory": memory}, labels={"app": app} if app else {})
    return fw.Pod(metadata=other.metadata, spec=other.spec, status=made.status)


@settings(max_examples=100, deadline=None)
@given(
    nodes=clusters,
    cpu=st.integers(0, 5),
    memory=amounts,
    promised=st.booleans(),
    allowed=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=3),
    leaving=st.sets(st.integers(0, 5)),
)
def test_many_nodes_at_once_are_judged_as_one_by_one(
    nodes: list[tuple[int, int, list[Any]]],
    cpu: int,
    memory: int,
    promised: bool,
    allowed: list[tuple[str, int]],
    leaving: set[int],
) -> None:
    pods = {
        f"n{i}": [a_running_pod(f"p{i}-{j}", drawn) for j, drawn in enumerate(on_node)]
        for i, (_, _, on_node) in enumerate(nodes)
    }
    made = [node(f"n{i}", memory=most, pods=room) for i, (most, room, _) in enumerate(nodes)]
    scene = a_scene(*made, pods=pods)
    if promised:
        scene.nominator.add(pod("promised", 100, 2), "n0")
    high = a_pod("high", priority=50, requests={"cpu": cpu, "memory": memory})
    budgets = [a_budget(most, app=app) for app, most in allowed]
    every = {each.uid: each for on_node in pods.values() for each in on_node}
    disruptions = Disruptions(every)
    disruptions.add(each for each in every.values() if int(each.name[-1]) in leaving)
    searcher, rows = a_search(scene, high, budgets, disruptions=disruptions)

    rows = np.array([row for row in rows.tolist() if any(p.priority < 50 for p in scene.table.info(row).pods)], np.intp)

    answers = list(searcher._answers(rows, 3))

    assert answers == [(row, searcher._answer(row)) for row in rows.tolist()]


LOW, MIDDLE, HIGH = 10, 100, 1000


@pytest.mark.parametrize(
    ("candidates", "best"),
    [
        pytest.param(
            [
                candidate("a", pod("x", MIDDLE), pod("y", -1), pod("z", -1)),
                candidate("b", pod("v", MIDDLE), pod("w", 0)),
            ],
            "b",
            id="negative priorities do not make a sum better",
        ),
        pytest.param(
            [
                candidate("a", pod("x", -(2**31)), pod("y", -(2**31))),
                candidate("b", pod("z", -(2**31))),
            ],
            "b",
            id="fewest victims, where the lowest of all priorities adds nothing to a sum",
        ),
        pytest.param(
            [
                candidate("a", pod("x", MIDDLE, started=5), pod("y", LOW, started=99)),
                candidate("b", pod("z", MIDDLE, started=6), pod("w", LOW, started=1)),
            ],
            "b",
            id="only the start of the most important victims counts",
        ),
        pytest.param(
            [
                candidate("a", pod("x", LOW, started=2), pod("y", LOW, started=9)),
                candidate("b", pod("z", LOW, started=3), pod("w", LOW, started=4)),
            ],
            "b",
            id="of several the earliest",
        ),
        pytest.param(
            [candidate("a", pod("x", LOW)), candidate("b", pod("y", LOW)), candidate("c", pod("z", LOW))],
            "a",
            id="at last the first",
        ),
    ],
)
def test_the_choice(candidates: list[Candidate], best: str) -> None:
    assert chr(cheapest(candidates).row) == best
