"""DefaultPreemption: who may preempt, whom, where, and what is said if nobody can.

The intent of kube-scheduler's TestPostFilter, TestDryRunPreemption, TestPodEligibleToPreemptOthers and TestPreempt in
defaultpreemption/default_preemption_test.go, with the rules that leave nodes or victims equal left to
test_preemption_candidates.py.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from plugins.default_preemption.plugin import DefaultPreemption
from plugins.shared.eviction.candidates import CandidateSearch, SearchResult
from scheduler import framework as fw
from scheduler.api.objects import PodCondition
from scheduler.framework.arguments import parse_arguments
from tests.fakes import FakeWorld, NominationCleared, PlainFilter, plugin, sample
from tests.unit.plugins.preemption import LEAVING, Outcome, Scene, a_budget, a_scene, name_of, node, pod

NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."


def placed(node: str, victims: int) -> str:
    """What a pod is told that preempts."""
    return f"preemption: found a potential placement for pod on node {node}, preempting {victims} victims"


def full(**arguments: Any) -> Scene:
    """One node with a pod of priority 10 on all of its four cores."""
    return a_scene(node("n"), pods={"n": [pod("low", 10, 4)]}, arguments=arguments)


def test_a_pod_is_nominated_where_a_lower_one_has_to_go() -> None:
    assert full().preempt(pod("high", 100)) == Outcome("n", ["low"], f"{NO_ROOM} {placed('n', 1)}")


def test_a_pod_of_the_same_priority_stays() -> None:
    message = "0/1 nodes are available: 1 No preemption victims found for incoming pod."

    assert full().preempt(pod("equal", 10)) == Outcome("", [], f"{NO_ROOM} preemption: {message}")


def test_a_node_that_is_refused_for_good_is_not_looked_at() -> None:
    scene = a_scene(
        node("closed", unschedulable=True), node("n"), pods={"closed": [pod("a", 0)], "n": [pod("b", 0, 4)]}
    )

    assert scene.preempt(pod("high", 100)).node == "n"


def test_the_message_says_of_each_node_why_nothing_helps() -> None:
    scene = a_scene(
        node("closed", unschedulable=True),
        node("small", 1),
        node("same"),
        node("held"),
        pods={"same": [pod("a", 100, 4)], "held": [pod("b", 100, 3), pod("c", 0, 1)]},
    )

    outcome = scene.preempt(pod("high", 100, 2))

    assert outcome.message == (
        "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu. "
        "preemption: 0/4 nodes are available: 1 Insufficient cpu, "
        "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )
    assert (outcome.node, outcome.victims) == ("", [])


def test_pods_that_are_alike_share_a_search_in_vain_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = []
    among = CandidateSearch.among

    def counted(*args: Any) -> SearchResult:
        searches.append(args)
        return among(*args)

    monkeypatch.setattr(CandidateSearch, "among", counted)
    equal = pod("equal", 100, 2)
    scene = a_scene(node("n"), pods={"n": [pod("low", 10, 1), equal]})
    refused = scene.preempt(pod("first", 100, 3))

    assert (scene.preempt(pod("second", 100, 3)), len(searches)) == (refused, 1)
    assert (scene.preempt(pod("larger", 100, 4)), len(searches)) == (refused, 2)
    scene.nominator.add(pod("nominated", 100, 1), "n")
    assert (scene.preempt(pod("third", 100, 4)), len(searches)) == (refused, 3)
    scene.table.remove_pod("n", equal)
    assert scene.preempt(pod("fourth", 100, 3)).victims == ["low"]


def test_where_no_node_could_be_made_free_nothing_is_searched() -> None:
    scene = a_scene(node("n", unschedulable=True), pods={"n": [pod("low", 0)]})

    assert scene.preempt(pod("high", 100)).message == (
        "0/1 nodes are available: 1 node(s) were unschedulable. preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_a_policy_of_never_is_heeded() -> None:
    message = f"{NO_ROOM} preemption: not eligible due to preemptionPolicy=Never."

    assert full().preempt(pod("shy", 100, policy="Never")) == Outcome(None, [], message)
    assert full().preempt(pod("bold", 100, policy="PreemptLowerPriority")).node == "n"


@pytest.mark.parametrize(
    ("on_node", "eligible"),
    [
        pytest.param(pod("v", 0, 4, leaving=True, conditions=[LEAVING]), False, id="a victim is on its way out"),
        pytest.param(pod("v", 0, 4, leaving=True), True, id="a pod that goes for another reason"),
        pytest.param(pod("v", 0, 4, conditions=[LEAVING]), True, id="a victim that was not deleted yet"),
        pytest.param(
            pod(
                "v",
                0,
                4,
                leaving=True,
                conditions=[PodCondition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")],
            ),
            True,
            id="evicted by somebody else",
        ),
        pytest.param(pod("v", 200, 4, leaving=True, conditions=[LEAVING]), True, id="a higher pod is no victim"),
    ],
)
def test_a_pod_waits_for_the_victims_on_its_nominated_node(on_node: fw.Pod, eligible: bool) -> None:
    scene = a_scene(node("n"), node("m"), pods={"n": [on_node], "m": [pod("other", 0, 4)]})

    outcome = scene.preempt(pod("high", 100, nominated="n"))

    waiting = "preemption: not eligible due to a terminating pod on the nominated node."
    assert outcome.message.endswith(waiting) is not eligible
    assert (outcome.node is None) is not eligible


def test_a_nominated_node_that_is_refused_for_good_holds_nobody_back() -> None:
    leaving = pod("v", 0, 4, leaving=True, conditions=[LEAVING])
    scene = a_scene(node("n", unschedulable=True), node("m"), pods={"n": [leaving], "m": [pod("other", 0, 4)]})

    assert scene.preempt(pod("high", 100, nominated="n")).node == "m"


def test_a_nominated_node_that_is_gone_holds_nobody_back() -> None:
    assert full().preempt(pod("high", 100, nominated="gone")).node == "n"


def test_a_victim_that_is_going_already_is_not_deleted_again() -> None:
    scene = a_scene(node("n"), pods={"n": [pod("going", 0, 3, leaving=True), pod("staying", 1, 1)]})

    assert scene.preempt(pod("high", 100, 4)) == Outcome("n", ["staying"], f"{NO_ROOM} {placed('n', 2)}")
    assert sample(scene.metrics, "scheduler_preemption_victims_sum") == 2


def test_each_attempt_is_counted_whatever_comes_of_it() -> None:
    scene = full()

    scene.preempt(pod("equal", 10))
    scene.preempt(pod("shy", 100, policy="Never"))
    scene.preempt(pod("high", 100))

    assert sample(scene.metrics, "scheduler_preemption_attempts_total") == 3
    assert sample(scene.metrics, "scheduler_preemption_victims_count") == 1


def test_each_search_is_timed_by_its_outcome() -> None:
    scene = a_scene(node("n"), pods={"n": [pod("db", 0, 4, labels={"app": "db"})]}, budgets=[a_budget(0, app="db")])
    scene.metrics.add_pod_groups()

    for preemptor in (pod("equal", 0), pod("high", 100, 4)):
        scene.preempt(preemptor)

    seconds = "scheduler_preemption_evaluation_duration_seconds_count"
    assert sample(scene.metrics, seconds, preemptor="pod", result="Unschedulable") == 1
    assert sample(scene.metrics, seconds, preemptor="pod", result="Success") == 1
    assert sample(scene.metrics, "scheduler_preemption_pdb_violations_total", preemptor="pod") == 1


def test_a_pod_that_is_gone_meanwhile_is_an_error() -> None:
    scene = full()
    with pytest.raises(fw.AttemptFailed, match=r'^preemption: pod "high" not found$'):
        scene.plugin.post_filter(fw.CycleState(), pod("high", 100), {})


def test_a_filter_that_fails_on_every_node_is_told_instead_of_a_search() -> None:
    def broken(_: fw.Pod, info: fw.NodeInfo) -> fw.Status | None:
        if info.pods:
            return fw.unschedulable("taken")
        raise ValueError("broken")

    scene = a_scene(node("n"), node("m"), pods={"n": [pod("a", 0)], "m": [pod("b", 0)]}, filters=[PlainFilter(broken)])

    outcome = scene.preempt(pod("high", 100))

    assert outcome == Outcome(
        None, [], '0/2 nodes are available: 2 taken. preemption: running "Plain" filter plugin: ValueError: broken'
    )


def test_a_filter_that_fails_on_one_node_costs_only_that_node() -> None:
    def broken_on_n(_: fw.Pod, info: fw.NodeInfo) -> fw.Status | None:
        if info.pods:
            return fw.unschedulable("taken")
        if info.name == "n":
            raise ValueError("broken")
        return None

    scene = a_scene(
        node("n"), node("m"), pods={"n": [pod("a", 0)], "m": [pod("b", 0)]}, filters=[PlainFilter(broken_on_n)]
    )

    assert scene.preempt(pod("high", 100))[:2] == ("m", ["b"])


def test_a_node_on_which_everybody_could_stay_is_an_error() -> None:
    answers = iter([fw.unschedulable("not now"), *[None] * 3])
    scene = a_scene(node("n"), pods={"n": [pod("a", 0)]}, filters=[PlainFilter(lambda *_: next(answers))])

    assert scene.preempt(pod("high", 100)).message.endswith('preemption: expected at least one victim pod on node "n"')


def test_a_refusal_of_the_whole_pod_leaves_every_node_to_preemption() -> None:
    once = plugin(fw.PreFilterPlugin, "Once", pre_filter=lambda *_: fw.unschedulable("only once"))
    scene = a_scene(node("n"), node("m"), pods={"n": [pod("a", 0, 4)]}, filters=[once])

    outcome = scene.preempt(pod("high", 100))

    assert (outcome.node, outcome.victims) == ("n", ["a"])
    assert outcome.message == f"0/2 nodes are available: only once. {placed('n', 1)}"


def test_pods_nominated_to_a_node_count_as_if_they_ran_there() -> None:
    scene = a_scene(node("n"), pods={"n": [pod("a", 0, 4)]})
    scene.nominator.add(pod("promised", 100, 3), "n")

    assert scene.preempt(pod("high", 100, 1)).victims == ["a"]
    assert scene.preempt(pod("higher", 101, 4)).victims == ["a"]
    assert scene.preempt(pod("second", 100, 2)).node == ""


def test_a_budget_is_violated_only_where_there_is_no_other_way() -> None:
    protected = {"app": "db"}
    pods = {"n": [pod("db", 0, 4, labels=protected)], "m": [pod("web", 5, 4)]}

    assert a_scene(node("n"), node("m"), pods=pods).preempt(pod("high", 100)).victims == ["db"]
    with_budget = a_scene(node("n"), node("m"), pods=pods, budgets=[a_budget(0, app="db")])
    assert with_budget.preempt(pod("high", 100)).victims == ["web"]
    alone = a_scene(node("n"), pods={"n": pods["n"]}, budgets=[a_budget(0, app="db")])
    assert alone.preempt(pod("high", 100)).victims == ["db"]


def test_a_user_plugin_that_counts_pods_is_told_of_every_one_that_leaves_and_returns() -> None:
    class Limit(fw.PreFilterPlugin, fw.PreFilterExtensions, fw.FilterPlugin):
        """At most one pod that is called a database in the cluster."""

        name = "Limit"

        def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> None:
            rows = range(nodes.size)
            state.write(self.name, Count({p.uid for row in rows for p in nodes.info(row).pods if "db" in p.name}))

        def add_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
            if "db" in other.name:
                state.read(self.name, Count).uids.add(other.uid)

        def remove_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
            state.read(self.name, Count).uids.discard(other.uid)

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
            return fw.unschedulable("one is enough") if state.read(self.name, Count).uids else None

    class Count:
        def __init__(self, uids: set[str]) -> None:
            self.uids = uids

        def clone(self) -> "Count":
            return Count(set(self.uids))

    pods = {"n": [pod("web", 0), pod("db", 1)], "m": [pod("web-2", 0)]}
    scene = a_scene(node("n"), node("m"), pods=pods, filters=[Limit()])

    assert scene.preempt(pod("db-new", 100))[:2] == ("n", ["db"])


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ({}, []),
        ({"minCandidateNodesPercentage": 0}, []),
        ({"minCandidateNodesAbsolute": 0}, []),
        ({"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 1}, []),
        (
            {"minCandidateNodesPercentage": -1},
            ["args.minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]"],
        ),
        (
            {"minCandidateNodesPercentage": 900},
            ["args.minCandidateNodesPercentage: Invalid value: 900: not in valid range [0, 100]"],
        ),
        (
            {"minCandidateNodesAbsolute": -2},
            ["args.minCandidateNodesAbsolute: Invalid value: -2: not in valid range [0, inf)"],
        ),
        (
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                "args.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesAbsolute",
                "args.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesPercentage",
            ],
        ),
    ],
)
def test_arguments_are_checked_as_kube_scheduler_does(arguments: Mapping[str, Any], problems: list[str]) -> None:
    found: list[str] = []

    made = parse_arguments(DefaultPreemption, arguments, "args", found)

    assert found == problems
    assert (made is None) == bool(problems)


def test_the_plugin_hears_of_deleted_pods_and_leaves_the_decision_to_others() -> None:
    (registered,) = full().plugin.events_to_register()

    assert registered.event == fw.ClusterEvent(fw.ASSIGNED_POD, fw.Action.DELETE)
    assert registered.hint is not None
    assert registered.hint(pod("high", 100), pod("low", 0), None) is fw.QueueingHint.SKIP


def test_lower_pods_that_were_promised_the_node_lose_their_nomination() -> None:
    scene = full()
    for each in (
        pod("low", 50, 4, nominated="n"),
        pod("unheard", 50, 4),
        pod("equal", 100, 4, nominated="n"),
        pod("other", 50, 4, nominated="m"),
    ):
        scene.nominator.add(each, "m" if each.name == "other" else "n")

    scene.preempt(pod("high", 101))

    assert cleared(scene.world) == ["low", "equal"]


def cleared(world: FakeWorld) -> list[str]:
    return [name_of(each.pod) for each in world.written(NominationCleared)]
