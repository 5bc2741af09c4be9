"""Filter with nominated pods, and what plugins are asked about: what test_filtering.py leaves open."""

from collections.abc import Mapping

import pytest

from scheduler import framework as fw
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_pod
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
PROMISED, TOO = a_pod("p", priority=5), a_pod("q", priority=5)


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


BEFORE, AFTER = a(Filter, "Other", {"a": NO}), a(Filter, "Later", {"a": NO})
ME = a_pod("me", priority=5)


@pytest.mark.parametrize(
    ("plugins", "nominated", "found"),
    [
        pytest.param([Counting()], {"a": [PROMISED, TOO]}, "Counting: beside p+q", id="two"),
        pytest.param([Counting()], {"a": [PROMISED], "b": [TOO]}, "Counting: beside p", id="its own only"),
        pytest.param(
            [Counting()],
            {"a": [a_pod("low", priority=4), ME, a_pod("equal", priority=5), a_pod("high", priority=6)]},
            "Counting: beside equal+high",
            id="neither lower ones nor the pod itself",
        ),
        pytest.param([Counting(limit=1)], {"a": [PROMISED]}, "", id="room for them and one more"),
        pytest.param([Counting(), AFTER], {"a": [PROMISED]}, "Counting: beside p", id="the first refusal is told"),
        pytest.param([BEFORE, Counting()], {"a": [PROMISED]}, "Other: no", id="also if they do not matter to it"),
    ],
)
def test_a_node_is_asked_beside_the_pods_nominated_to_it(
    plugins: list[fw.Plugin], nominated: dict[str, list[fw.Pod]], found: str
) -> None:
    table = nodes("a", "b", "c")

    answer = answers(a_framework(*plugins, table=table, nominated=nominated), table, ME)

    assert (answer["a"], answer["c"]) == (found, "")


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
