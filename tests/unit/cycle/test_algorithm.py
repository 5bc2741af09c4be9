from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from scheduler.api.objects import PodStatus
from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm, Placed, Unplaced
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.errors import PluginError
from scheduler.framework.plugin import (
    FilterPlugin,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
)
from scheduler.framework.status import Code, Status, pending, unresolvable, unschedulable
from scheduler.state.nodes.node_table import NodeTable
from scheduler.state.nominator import Nominator
from scheduler.testing import a_cluster, a_node, a_pod
from tests.fakes import ColumnFilter, PlainFilter, PlainScore, a_framework, plugin, refuse


def decide(*plugins: Plugin, table: NodeTable | None = None, pod: Pod | None = None) -> Placed | Unplaced:
    table = table or a_cluster(*map(a_node, "abc"))
    return Algorithm(table).schedule(a_framework(*plugins, table=table), CycleState(), pod or a_pod())


def unplaced(*plugins: Plugin, table: NodeTable | None = None, pod: Pod | None = None) -> Unplaced:
    decision = decide(*plugins, table=table, pod=pod)
    assert isinstance(decision, Unplaced)
    return decision


def only(*names: str, name: str = "Only") -> PreFilterPlugin:
    return plugin(PreFilterPlugin, name, pre_filter=lambda *_: PreFilterResult(frozenset(names)))


def refusing(status: Status, name: str = "Pre") -> PreFilterPlugin:
    return plugin(PreFilterPlugin, name, pre_filter=lambda *_: status)


def promised(node: str) -> Pod:
    pod = a_pod()
    return Pod(metadata=pod.metadata, spec=pod.spec, status=PodStatus(nominated_node_name=node))


def test_the_node_with_the_highest_score_is_taken() -> None:
    assert decide(PlainScore({"a": 1, "b": 3, "c": 2})) == Placed("b", 3, 3)


def test_a_single_feasible_node_is_taken_without_scoring() -> None:
    scored: list[int] = []
    prepares = plugin(PreScorePlugin, "Prepares", pre_score=lambda *_: scored.append(1))

    assert decide(PlainFilter(refuse("a", "c")), prepares, PlainScore({})) == Placed("b", 3, 1)
    assert scored == []


def test_without_nodes_nothing_is_asked() -> None:
    table = NodeTable(2)
    table.add_pod("placeholder", a_pod("there"))

    assert decide(refusing(unresolvable("x")), table=table) == Unplaced("no nodes available to schedule pods")


@pytest.mark.parametrize(
    ("plugins", "message", "blamed"),
    [
        pytest.param(
            [PlainFilter(refuse("a", reason="one"), "A"), PlainFilter(refuse("b", "c", reason="two"), "B")],
            "0/3 nodes are available: 1 one, 2 two.",
            {"A", "B"},
            id="reasons by nodes",
        ),
        pytest.param(
            [PlainFilter(lambda *_: unresolvable(), "A")], "0/3 nodes are available:", {"A"}, id="no reasons at all"
        ),
        pytest.param(
            [refusing(unresolvable("claim not found"))],
            "0/3 nodes are available: claim not found.",
            {"Pre"},
            id="PreFilter",
        ),
        pytest.param(
            [refusing(unschedulable("one", "two")), only("a")],
            "0/3 nodes are available: one, two.",
            {"Pre", "Only"},
            id="PreFilter unschedulable goes on",
        ),
        pytest.param(
            [only(), PlainFilter(refuse("a"))],
            "0/3 nodes are available: node(s) didn't satisfy plugin Only.",
            {"Only"},
            id="no node left",
        ),
        pytest.param(
            [only("a"), only("b", name="Other")],
            "0/3 nodes are available: node(s) didn't satisfy plugin(s) [Only Other] simultaneously.",
            {"Only", "Other"},
            id="no common node",
        ),
        pytest.param(
            [only("a", "gone"), ColumnFilter(refuse("a", "b", reason="full"), "Fit")],
            "0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) [Only].",
            {"Only", "Fit"},
            id="nodes that PreFilter cut off",
        ),
        pytest.param(
            [only("gone"), PlainFilter(refuse("a"))],
            "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [Only].",
            {"Only"},
            id="only nodes that do not exist",
        ),
    ],
)
def test_a_pod_that_fits_nowhere_is_told_why_in_kube_schedulers_words(
    plugins: list[Plugin], message: str, blamed: set[str]
) -> None:
    decision = unplaced(*plugins)

    assert decision.message == message
    assert decision.unschedulable_plugins == blamed
    assert decision.nominated_node_name == "", "nobody makes room: an earlier promise ends"


def test_reasons_are_sorted_as_strings() -> None:
    table = a_cluster(*(a_node(f"n{number}") for number in range(12)))
    few = PlainFilter(refuse("n0", "n1", reason="few"), "Few")

    assert unplaced(few, PlainFilter(lambda *_: unschedulable("many"), "Many"), table=table).message == (
        "0/12 nodes are available: 10 many, 2 few."
    )


def test_pending_plugins_are_told_apart() -> None:
    decision = unplaced(PlainFilter(lambda *_: pending("soon"), "Waits"))

    assert decision.pending_plugins == {"Waits"}
    assert decision.unschedulable_plugins == {"Waits"}


def making_room(result: object) -> PostFilterPlugin:
    return plugin(PostFilterPlugin, "Post", post_filter=lambda *_: result)


@pytest.mark.parametrize(
    ("result", "message", "nominated"),
    [
        pytest.param((PostFilterResult("b"), None), "0/3 nodes are available: 3 no.", "b", id="room made"),
        pytest.param(
            (None, unschedulable("preemption: none.")),
            "0/3 nodes are available: 3 no. preemption: none.",
            None,
            id="no room",
        ),
        pytest.param(
            (PostFilterResult(""), unresolvable("not helpful")),
            "0/3 nodes are available: 3 no. not helpful",
            "",
            id="promise ended",
        ),
        pytest.param(
            (None, Status(Code.ERROR, ("boom",))), "0/3 nodes are available: 3 no. boom", None, id="says error"
        ),
    ],
)
def test_what_post_filter_says_is_added(result: object, message: str, nominated: str | None) -> None:
    decision = unplaced(PlainFilter(refuse("a", "b", "c")), making_room(result))

    assert (decision.message, decision.nominated_node_name) == (message, nominated)
    assert decision.unschedulable_plugins == {"Plain"}


def test_post_filter_learns_the_status_of_every_node() -> None:
    seen: dict[str, Status] = {}
    looks = plugin(
        PostFilterPlugin, "Looks", post_filter=lambda s, p, found: (seen.update(found), (None, unschedulable()))[1]
    )
    unplaced(only("a"), PlainFilter(refuse("a"), "F"), looks)

    absent = unresolvable("node(s) didn't satisfy plugin(s) [Only]")
    assert seen == {"a": unschedulable("no").by("F"), "b": absent, "c": absent}


def test_after_a_refusal_by_pre_filter_every_node_has_that_status() -> None:
    seen: dict[str, Status] = {}
    looks = plugin(
        PostFilterPlugin, "Looks", post_filter=lambda s, p, found: (seen.update(found), (None, unschedulable()))[1]
    )
    unplaced(refusing(unschedulable("no")), looks)

    assert seen == dict.fromkeys("abc", unschedulable("no").by("Pre"))


def test_the_nominated_node_is_tried_first_and_ends_the_search() -> None:
    scores = PlainScore({"a": 9, "b": 1, "c": 9})

    assert decide(scores, pod=promised("b")) == Placed("b", 1, 1)


@pytest.mark.parametrize("node", ["b", "gone"], ids=["refused", "gone"])
def test_a_nominated_node_that_does_not_do_is_one_among_all(node: str) -> None:
    decision = decide(PlainFilter(refuse("b")), PlainScore({"a": 1, "c": 2}), pod=promised(node))

    assert decision == Placed("c", 3, 2)


def test_the_verdict_on_a_nominated_node_that_pre_filter_cut_off_is_told() -> None:
    decision = unplaced(only("a"), PlainFilter(refuse("a", "b"), "F"), pod=promised("b"))

    assert decision.message == "0/3 nodes are available: 1 node(s) didn't satisfy plugin(s) [F Only], 2 no."


def test_a_plugin_that_fails_on_the_nominated_node_alone_does_not_end_the_attempt() -> None:
    def judge(pod: Pod, node: object) -> None:
        if getattr(node, "name", "") == "b":
            raise ValueError("broken")

    assert decide(only("a"), PlainFilter(judge), pod=promised("b")) == Placed("a", 1, 1)
    with pytest.raises(PluginError, match="broken"):
        decide(PlainFilter(judge), pod=promised("b"))


def test_a_pod_yields_to_one_that_was_promised_the_node() -> None:
    table, nominator = a_cluster(*map(a_node, "a")), Nominator()
    nominator.add(a_pod("promised"), "a")
    one = PlainFilter(lambda _, node: unschedulable("taken") if node.pods else None, "One")
    decision = Algorithm(table).schedule(
        a_framework(one, table=table, nominated=nominator), CycleState(), a_pod("late")
    )

    assert isinstance(decision, Unplaced)
    assert decision.message == "0/1 nodes are available: 1 taken."
    assert decision.unschedulable_plugins == {"One"}


# Ties.


def placements(seed: int, attempt: int = 0, count: int = 1000) -> list[str]:
    table = a_cluster(*(a_node(f"n{number}") for number in range(10)))
    framework, algorithm = a_framework(table=table), Algorithm(table, seed)
    found = []
    for number in range(count):
        decision = algorithm.schedule(framework, CycleState(), a_pod(f"p{number}"), attempt)
        assert isinstance(decision, Placed)
        found.append(decision.node_name)
    return found


def test_ties_are_spread_evenly() -> None:
    counts = Counter(placements(seed=1))
    chi_square = sum((counts[f"n{number}"] - 100) ** 2 / 100 for number in range(10))

    assert chi_square < 27.9, "one in a thousand for 9 degrees of freedom"


def test_ties_are_broken_the_same_way_with_the_same_seed() -> None:
    assert placements(seed=1, count=50) == placements(seed=1, count=50)
    assert placements(seed=1, count=50) != placements(seed=2, count=50)


def test_the_next_attempt_may_take_another_node() -> None:
    first, second = placements(seed=1, count=50), placements(seed=1, attempt=1, count=50)

    assert sum(one != other for one, other in zip(first, second, strict=True)) > 25


# A percentage of the nodes.


def test_a_percentage_limits_the_search_and_the_next_one_goes_on_from_there() -> None:
    table = a_cluster(*(a_node(f"n{number:03}") for number in range(400)))
    framework, algorithm = a_framework(PlainScore({}), table=table, percentage=50), Algorithm(table)
    searches = [algorithm.search(framework, CycleState(), a_pod()) for _ in range(3)]

    assert [search.asked for search in searches] == [200, 200, 200]
    assert searches[0].feasible.tolist() == list(range(200))
    assert searches[1].feasible.tolist() == list(range(200, 400))
    assert searches[2].feasible.tolist() == list(range(200))


def test_nodes_that_do_not_fit_are_walked_over() -> None:
    table = a_cluster(*(a_node(f"n{number:03}") for number in range(400)))
    odd = PlainFilter(lambda _, node: unschedulable("odd") if int(node.name[1:]) % 2 else None)
    framework, algorithm = a_framework(odd, table=table, percentage=25), Algorithm(table)
    starts = []
    for _ in range(4):
        search = algorithm.search(framework, CycleState(), a_pod())
        starts.append(int(search.feasible[0]))
        assert len(search.feasible) == 100
        assert search.asked in (199, 200)

    assert all(one != other for one, other in pairwise(starts))


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [
        pytest.param(99, 1, 99, id="few nodes: all"),
        pytest.param(300, 1, 100, id="at least a hundred"),
        pytest.param(300, 50, 150, id="half"),
        pytest.param(300, 0, 300, id="0 is all"),
        pytest.param(300, 100, 300, id="100 is all"),
    ],
)
def test_how_many_feasible_nodes_are_looked_for(nodes: int, percentage: int, found: int) -> None:
    table = a_cluster(*(a_node(f"n{number}") for number in range(nodes)))
    search = Algorithm(table).search(a_framework(table=table, percentage=percentage), CycleState(), a_pod())

    assert len(search.feasible) == found


def test_rows_that_are_no_nodes_are_never_chosen() -> None:
    table = a_cluster(*map(a_node, "ab"))
    table.add_pod("a", a_pod("there"))
    table.remove_node("a")
    filters = plugin(FilterPlugin, "All")

    for number in range(20):
        decision = decide(filters, table=table, pod=a_pod(f"p{number}"))
        assert isinstance(decision, Placed)
        assert decision.node_name == "b"
    assert np.flatnonzero(table.in_use).tolist() == [1]
