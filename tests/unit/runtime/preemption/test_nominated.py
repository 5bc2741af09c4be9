"""Filter with nominated pods, and what plugins are asked about: what test_filtering.py leaves open."""

from collections.abc import Mapping

import pytest

from scheduler import framework as fw
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.fakes import a_framework, everything
from tests.unit.runtime.fakes import (
    Extensions,
    Filter,
    FilterNodes,
    SignedFilter,
    a,
    named,
    nodes,
)

NO = fw.unschedulable("no")


class Counting(fw.PreFilterPlugin, fw.PreFilterExtensions, fw.FilterPlugin):
    """Counts in its state the pods in the cluster, allows `limit` of them anywhere."""

    name = "Counting"

    class Count:
        def __init__(self, pods: list[str]) -> None:
            self.pods = pods

        def clone(self) -> "Counting.Count":
            return Counting.Count(list(self.pods))

    def __init__(self, limit: int = 0) -> None:
        self.limit = limit

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> None:
        state.write(self.name, self.Count([]))

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
        state.read(self.name, self.Count).pods.append(other.name)

    def remove_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> None:
        state.read(self.name, self.Count).pods.remove(other.name)

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        pods = state.read(self.name, self.Count).pods
        return fw.unschedulable(f"beside {'+'.join(pods)}") if len(pods) > self.limit else None


def answers(framework: Framework, table: NodeTable, pod: fw.Pod | None = None) -> Mapping[str, str]:
    """Run PreFilter and Filter; return node → `plugin: reasons`, empty where it is feasible."""
    pod, state = pod or a_pod(), fw.CycleState()
    for plugin in framework.plugins.of("pre_filter", fw.PreFilterPlugin):
        plugin.pre_filter(state, pod, table)
    outcome = framework.run_filter(state, pod, everything(table))
    found = {name: outcome.status(state, pod, table.row_of(name) or 0) for name in table.node_names()}
    return {name: f"{status.plugin}: {status.message}" if status else "" for name, status in found.items()}


@pytest.mark.parametrize("kind", [Filter, FilterNodes])
def test_without_a_signature_only_nodes_that_still_pass_are_asked_about(kind: type[fw.Plugin]) -> None:
    table, log = nodes("a", "b", "c"), list[str]()

    answers(a_framework(a(Filter, "First", {"b": NO}), a(kind, "Second", {}, log), table=table), table)

    assert [name for line in log for name in line.removeprefix("Second ").split(",")] == ["a", "c"]


def test_a_stored_answer_is_for_every_node_and_does_not_refuse_twice() -> None:
    table, log = nodes("a", "b"), list[str]()
    second = a(SignedFilter, "Second", {"a": NO, "b": NO}, log)

    found = answers(a_framework(a(Filter, "First", {"a": NO}), second, table=table), table)

    assert found == {"a": "First: no", "b": "Second: no"}
    assert log == ["Second a", "Second b"]


@pytest.mark.parametrize("kind", [Filter, FilterNodes, SignedFilter])
def test_forms_with_and_without_a_store_agree_again_and_again(kind: type[fw.Plugin]) -> None:
    table = nodes("a", "b", "c")
    framework = a_framework(a(kind, "Judge", {"a": NO, "c": fw.unresolvable("never", "ever")}), table=table)

    first, second = answers(framework, table), answers(framework, table)

    assert first == second == {"a": "Judge: no", "b": "", "c": "Judge: never, ever"}


def test_a_node_that_was_changed_gets_a_new_answer() -> None:
    table = nodes("a", "b")
    judge = a(SignedFilter, "Judge", {"a": NO})
    framework = a_framework(judge, table=table)
    answers(framework, table)

    judge.answer = {}
    table.set_node(a_node("a", labels={"new": "yes"}))

    assert answers(framework, table) == {"a": "", "b": ""}


def test_plugins_count_nominated_pods_in_a_state_of_their_own() -> None:
    table = nodes("a", "b")
    promised = [a_pod("p"), a_pod("q")]

    found = answers(a_framework(Counting(), table=table, nominated={"a": promised}), table)

    assert found == {"a": "Counting: beside p+q", "b": ""}


def test_each_node_is_asked_beside_its_own_nominated_pods_only() -> None:
    table = nodes("a", "b", "c")
    nominated = {"a": [a_pod("p")], "b": [a_pod("q")]}

    found = answers(a_framework(Counting(), table=table, nominated=nominated), table)

    assert found == {"a": "Counting: beside p", "b": "Counting: beside q", "c": ""}


def test_of_several_nominated_pods_lower_ones_and_the_pod_itself_do_not_count() -> None:
    table = nodes("a")
    pod = a_pod("me", priority=5)
    promised = [a_pod("low", priority=4), pod, a_pod("equal", priority=5), a_pod("high", priority=6)]

    found = answers(a_framework(Counting(), table=table, nominated={"a": promised}), table, pod)

    assert found == {"a": "Counting: beside equal+high"}


def test_room_for_the_nominated_pods_and_one_more_is_enough() -> None:
    table = nodes("a")

    found = answers(a_framework(Counting(limit=1), table=table, nominated={"a": [a_pod("p")]}), table)

    assert found == {"a": ""}


def test_a_refused_node_tells_the_first_refusal_beside_the_nominated_pods() -> None:
    table = nodes("a")
    framework = a_framework(Counting(), a(Filter, "Later", {"a": NO}), table=table, nominated={"a": [a_pod("p")]})

    assert answers(framework, table) == {"a": "Counting: beside p"}


def test_a_plugin_that_refuses_before_is_still_the_first_beside_the_nominated_pods() -> None:
    table = nodes("a")
    framework = a_framework(a(Filter, "Earlier", {"a": NO}), Counting(), table=table, nominated={"a": [a_pod("p")]})

    assert answers(framework, table) == {"a": "Earlier: no"}


def test_extensions_are_told_in_the_order_of_plugins_and_pods() -> None:
    table, log = nodes("a"), list[str]()
    framework = a_framework(
        a(Extensions, "One", log=log),
        a(Extensions, "Two", log=log),
        table=table,
        nominated={"a": [a_pod("p"), a_pod("q")]},
    )

    answers(framework, table)

    assert log == ["One p on a", "Two p on a", "One q on a", "Two q on a"]


@pytest.mark.parametrize("nominated", [{"gone": [a_pod("p")]}, {"b": [a_pod("p")]}])
def test_pods_nominated_to_nodes_that_nobody_asks_about_do_not_matter(nominated: Mapping[str, list[fw.Pod]]) -> None:
    table, log = nodes("a", "b"), list[str]()
    framework = a_framework(a(Extensions, "Ext", log=log), a(Filter, answer={}), table=table, nominated=nominated)
    asked = everything(table)
    asked[1] = False

    outcome = framework.run_filter(fw.CycleState(), a_pod(), asked)

    assert outcome.feasible.tolist() == [0]
    assert log == []


def test_a_skipped_filter_is_skipped_beside_nominated_pods_too() -> None:
    table, state = nodes("a"), fw.CycleState()
    state.skip_filter |= {"Counting"}

    framework = a_framework(Counting(), table=table, nominated={"a": [a_pod("p")]})

    assert framework.run_filter(state, a_pod(), everything(table)).feasible.tolist() == [0]


def test_an_error_beside_nominated_pods_leaves_the_table_as_it_was() -> None:
    class Shy(fw.FilterPlugin):
        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
            if node.pods:
                raise RuntimeError("too many people")
            return None

    table = nodes("a")
    framework = a_framework(named("Shy", Shy)(), table=table, nominated={"a": [a_pod("p", requests={"cpu": "1"})]})

    with pytest.raises(fw.PluginError, match='running "Shy" filter plugin: RuntimeError: too many people'):
        answers(framework, table)

    assert table.requested("cpu").tolist() == [0]
    table.check_invariants()
