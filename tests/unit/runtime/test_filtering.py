from collections import Counter

import numpy as np
import pytest

from plugins.node_resources.fit import NodeResourcesFit
from plugins.node_unschedulable import NodeUnschedulable
from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState, GroupCycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.errors import PluginError
from scheduler.framework.nodes.nodes import Aspect, NodeInfo
from scheduler.framework.plugin import FilterNodesPlugin, SignPlugin
from scheduler.framework.status import Code, Status, unresolvable, unschedulable
from scheduler.runtime.filter_outcome import FilterOutcome
from scheduler.runtime.framework import Framework
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_cluster, a_node, a_pod
from tests.fakes import ColumnFilter, PlainFilter, a_framework, everything, names_of, plugin, refuse
from tests.unit.runtime.fakes import Extensions, a


def filtered(framework: Framework, table: NodeTable, pod: Pod | None = None) -> tuple[list[str], dict[str, Status]]:
    """The names of feasible nodes, and the refusals by name."""
    pod, state = pod or a_pod(), CycleState()
    outcome = framework.run_filter(state, pod, everything(table))
    refused = {name: outcome.status(state, pod, table.row_of(name) or 0) for name in table.node_names()}
    return names_of(table, outcome.feasible.tolist()), {n: s for n, s in refused.items() if s is not None}


def test_the_first_plugin_in_order_that_refuses_a_node_tells_why() -> None:
    table = a_cluster(*map(a_node, "abc"))
    framework = a_framework(
        PlainFilter(refuse("a", reason="first"), "One"),
        ColumnFilter(refuse("a", "b", reason="second"), "Two"),
        table=table,
    )
    feasible, refused = filtered(framework, table)

    assert feasible == ["c"]
    assert {name: (status.plugin, status.message) for name, status in refused.items()} == {
        "a": ("One", "first"),
        "b": ("Two", "second"),
    }


def test_a_plugin_whose_pre_filter_skipped_is_not_asked() -> None:
    table = a_cluster(*map(a_node, "abc"))
    state = CycleState()
    state.skip_filter |= {"Judge"}
    outcome = a_framework(PlainFilter(refuse("a"), "Judge"), table=table).run_filter(state, a_pod(), everything(table))

    assert len(outcome.feasible) == 3


def test_once_no_node_is_left_no_further_plugin_is_asked() -> None:
    table, asked = a_cluster(*map(a_node, "abc")), []

    def judge(_: Pod, node: NodeInfo) -> None:
        asked.append(node.name)

    framework = a_framework(PlainFilter(refuse("a", "b", "c"), "One"), PlainFilter(judge, "Two"), table=table)
    filtered(framework, table)

    assert asked == []


def test_where_no_node_is_to_be_looked_at_no_plugin_is_asked() -> None:
    table = a_cluster(*map(a_node, "abc"))
    biggest = plugin(
        FilterNodesPlugin, "Max", filter_nodes=lambda s, p, nodes, rows: nodes.pod_count[rows].max() * rows
    )
    outcome = a_framework(biggest, table=table).run_filter(CycleState(), a_pod(), np.zeros(table.size, np.bool_))

    assert outcome.feasible.tolist() == []


def test_refusals_are_counted_by_reason_each_reason_once_a_node() -> None:
    table = a_cluster(*map(a_node, "abcd"))
    framework = a_framework(
        PlainFilter(lambda _, node: unschedulable("cpu", "memory") if node.name in "ab" else None, "Fit"),
        ColumnFilter(lambda _, node: unresolvable("taint") if node.name in "bc" else None, "Taints"),
        table=table,
    )
    diagnosis = Diagnosis(4)
    outcome: FilterOutcome = framework.run_filter(CycleState(), a_pod(), everything(table))
    outcome.count_into(diagnosis, CycleState(), a_pod())

    assert diagnosis.reasons == Counter({"cpu": 2, "memory": 2, "taint": 1})
    assert diagnosis.unschedulable_plugins == {"Fit", "Taints"}


def test_refusals_of_nodes_that_an_earlier_plugin_refused_do_not_count() -> None:
    table = a_cluster(*map(a_node, "ab"))
    framework = a_framework(PlainFilter(refuse("a"), "One"), ColumnFilter(refuse("a", "b"), "Two"), table=table)
    diagnosis = Diagnosis(2)
    framework.run_filter(CycleState(), a_pod(), everything(table)).count_into(diagnosis, CycleState(), a_pod())

    assert diagnosis.reasons == Counter({"no": 2})


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([1, 2, 3], id="list"),
        pytest.param(np.zeros(2, np.int32), id="too short"),
        pytest.param(np.zeros(3, np.float64), id="floats"),
    ],
)
def test_a_column_of_another_shape_is_the_fault_of_its_plugin(answer: object) -> None:
    table = a_cluster(*map(a_node, "abc"))
    odd = plugin(FilterNodesPlugin, "Odd", filter_nodes=lambda *_: answer)

    with pytest.raises(PluginError, match='"Odd"'):
        filtered(a_framework(odd, table=table), table)


@pytest.mark.parametrize("sign", [lambda _: 1 / 0, lambda _: ["unhashable"]], ids=["raises", "unhashable"])
def test_a_signature_that_fails_is_the_fault_of_its_plugin(sign: object) -> None:
    class Base(FilterNodesPlugin, SignPlugin):
        aspects = Aspect.NODE

    table = a_cluster(*map(a_node, "abc"))
    with pytest.raises(PluginError, match='"Odd"'):
        filtered(a_framework(plugin(Base, "Odd", sign=sign), table=table), table)


def test_a_nominated_pod_that_is_on_the_node_already_is_not_counted_twice() -> None:
    table, promised = a_cluster(*map(a_node, "a")), a_pod("promised")
    table.add_pod("a", promised)
    framework = a_framework(
        PlainFilter(lambda _, node: unschedulable("full") if len(node.pods) > 1 else None),
        table=table,
        nominated={"a": [promised]},
    )

    assert filtered(framework, table)[0] == ["a"]


def test_a_node_must_also_fit_without_the_pods_nominated_there() -> None:
    table = a_cluster(*map(a_node, "ab"))
    friends = PlainFilter(lambda _, node: None if node.pods else unschedulable("lonely"))
    framework = a_framework(friends, table=table, nominated={"a": [a_pod("promised")]})

    assert filtered(framework, table)[0] == []


def test_of_two_refusals_the_one_beside_the_nominated_pods_is_told() -> None:
    table = a_cluster(*map(a_node, "a"))
    framework = a_framework(
        PlainFilter(lambda _, node: unschedulable(f"{len(node.pods)} pods")),
        table=table,
        nominated={"a": [a_pod("promised")]},
    )
    diagnosis, state, pod = Diagnosis(1), CycleState(), a_pod()
    framework.run_filter(state, pod, everything(table)).count_into(diagnosis, state, pod)

    assert diagnosis.reasons == Counter({"1 pods": 1})


@pytest.mark.parametrize("answer", [ValueError("oh"), Status(Code.ERROR, ("oh",))], ids=["raises", "says so"])
def test_a_plugin_that_fails_to_count_a_nominated_pod_is_named(answer: object) -> None:
    table = a_cluster(*map(a_node, "a"))
    framework = a_framework(a(Extensions, "Counting", answer), table=table, nominated={"a": [a_pod("promised")]})

    with pytest.raises(PluginError, match=r'running AddPod on PreFilter plugin "Counting": (ValueError: )?oh'):
        filtered(framework, table)
    table.check_invariants()
    assert table.pod_count.tolist() == [0]


def test_one_node_is_asked_about_from_the_live_table() -> None:
    table = a_cluster(*map(a_node, "ab"))
    framework = a_framework(ColumnFilter(refuse("a"), "Judge"), table=table)

    assert framework.filtering.run_one(CycleState(), a_pod(), 0) == unschedulable("no").by("Judge")
    assert framework.filtering.run_one(CycleState(), a_pod(), 1) is None


def test_members_of_a_group_get_the_same_answers_about_some_nodes_as_any_pod() -> None:
    table = a_cluster(*(a_node(name, cpu="2", unschedulable=name == "b") for name in "abcde"))
    framework = a_framework(NodeUnschedulable(), NodeResourcesFit(), PlainFilter(refuse("d"), "Judge"), table=table)
    seen = []

    for turn, names in enumerate(["abcde", "abd", "ace", "ce", "", "abcde"]):
        asked = np.array([name in names for name in table.names()], np.bool_)
        for state in (CycleState(), GroupCycleState()):
            pod, diagnosis = a_pod(requests={"cpu": "2"}), Diagnosis(len(names))
            framework.run_pre_filter(state, pod, diagnosis)
            outcome = framework.run_filter(state, pod, asked)
            outcome.count_into(diagnosis, state, pod)
            statuses = [outcome.status(state, pod, row) for row in range(table.size)]
            seen.append((names_of(table, outcome.feasible.tolist()), statuses, diagnosis.reasons))
        table.add_pod("ace"[turn % 3], a_pod(f"there-{turn}", requests={"cpu": "1"}))

    assert seen[::2] == seen[1::2]
    assert [feasible for feasible, _, _ in seen[::2]] == [["a", "c", "e"], [], ["e"], [], [], []]
