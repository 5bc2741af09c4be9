"""What every in-tree plugin promises, whatever it does."""

import copy
import random

import numpy as np
import pytest

from plugins import IN_TREE
from plugins.inter_pod_affinity.plugin import InterPodAffinity
from plugins.node_affinity import NodeAffinity
from plugins.node_resources.allocation_strategies import UtilizationShapePoint
from plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from plugins.node_resources.fit import NodeResourcesFit, RequestedToCapacityRatio, ScoringStrategy
from plugins.node_resources.scoring import ResourceSpec
from scheduler import framework as fw
from scheduler.api.objects import ContainerPort, LabelSelector, LabelSelectorRequirement
from scheduler.framework.nodes import NodeColumns
from scheduler.state.node_table import NodeTable
from scheduler.testing import a_container, a_node, a_pod, a_requirement, a_term, preferred, required, started
from tests.unit.plugins.cluster import a_handle, every_row
from tests.unit.plugins.pod_affinity import pods_like, with_terms
from tests.unit.plugins.spread import a_constraint, a_spread_pod

GPU = "example.com/gpu"
HUGE = 2**61
WEB = {"app": "web"}
WEBS = pods_like("zone", app="web")
THREE = (ResourceSpec("cpu", 2), ResourceSpec(GPU, 5), ResourceSpec("ephemeral-storage"))


def by_default(cls: type[fw.Plugin]) -> fw.Plugin:
    return started(cls(), a_handle())


PLUGINS = [pytest.param(by_default(cls), id=name) for name, cls in IN_TREE.items()]
WITH_ARGUMENTS = [
    pytest.param(NodeResourcesFit(scoring_strategy=ScoringStrategy("MostAllocated", THREE)), id="Fit, MostAllocated"),
    pytest.param(
        NodeResourcesFit(
            scoring_strategy=ScoringStrategy(
                "RequestedToCapacityRatio",
                THREE,
                RequestedToCapacityRatio((UtilizationShapePoint(0, 2), UtilizationShapePoint(70, 10))),
            )
        ),
        id="Fit, RequestedToCapacityRatio",
    ),
    pytest.param(
        NodeResourcesBalancedAllocation((ResourceSpec("cpu"), ResourceSpec("memory"), ResourceSpec(GPU))),
        id="Balanced, three resources",
    ),
    pytest.param(NodeAffinity(required(a_term(a_requirement("zone", "Exists")))), id="NodeAffinity, added"),
    pytest.param(InterPodAffinity(100, True), id="InterPodAffinity, with weight"),
]

NO_APP = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="DoesNotExist"),))

SIGNING = [param for param in (*PLUGINS, *WITH_ARGUMENTS) if isinstance(param.values[0], fw.SignPlugin)]


def a_mixed_cluster() -> NodeTable:
    """Nodes of all sorts, one row that is free, and one that only holds pods of a node that is gone."""
    dice = random.Random(7)
    taints = [fw.Taint(key=key, effect=effect) for key, effect in (("a", "NoSchedule"), ("b", "PreferNoSchedule"))]
    table = NodeTable(capacity=4)
    for i in range(24):
        table.set_node(
            a_node(
                f"n{i}",
                cpu=dice.choice(["0", "2", "4", "64"]),
                memory=dice.choice(["0", "2Gi", "32Gi", str(2**60)]),
                pods=dice.choice([0, 2, 110]),
                allocatable=dice.choice([{}, {GPU: "4"}, {"ephemeral-storage": "50Gi"}]),
                labels=dice.choice([{}, {"zone": "a", "generation": "3"}, {"zone": "b", "generation": "x"}]),
                taints=[taint for taint in taints if dice.random() < 0.4],
                unschedulable=dice.random() < 0.2,
                images=dice.choice([{}, {"app:latest": 600_000_000}, {"app:latest": 1, "db:1": 900_000_000}]),
            )
        )
        for j in range(dice.randrange(3)):
            ports = [ContainerPort(host_port=8080, host_ip=dice.choice(["", "10.0.0.1"]))] if j else []
            table.add_pod(f"n{i}", a_pod(f"p{i}-{j}", requests={"cpu": "700m", "memory": "1Gi", GPU: "1"}, ports=ports))
    table.add_pod("n10", with_terms("near", WEB, near=[WEBS], likes=[(7, WEBS)]))
    table.add_pod("n11", with_terms("apart", WEB, apart=[WEBS], dislikes=[(9, pods_like("generation", app="web"))]))
    table.add_pod("gone", a_pod("orphan", requests={"cpu": "1"}))
    table.remove_node("n3")
    return table


def some_pods() -> list[fw.Pod]:
    term = a_term(a_requirement("zone", "In", "a", "b"), fields=[a_requirement("metadata.name", "NotIn", "n5")])
    numbers = a_term(a_requirement("generation", "Gt", "2"))
    return [
        a_pod(),
        a_pod(requests={"cpu": "1", "memory": "3Gi"}),
        a_pod(requests={"cpu": "1", GPU: "2", "ephemeral-storage": "1Gi", "memory": str(HUGE)}),
        a_pod(tolerations=[fw.Toleration(operator="Exists")], node_name="n2"),
        a_pod(ports=[ContainerPort(host_port=8080, host_ip="10.0.0.1"), ContainerPort(host_port=9)]),
        a_pod(node_selector={"zone": "a"}, node_affinity=required(term, numbers)),
        a_pod(node_affinity=preferred((3, term), (50, numbers))),
        a_pod(containers=[a_container(image="app"), a_container("db", image="db:1")]),
        a_pod(gates=["later"]),
        a_pod(labels=WEB),
        with_terms(labels=WEB, near=[WEBS], apart=[pods_like("generation", app="web")], likes=[(5, WEBS)]),
        a_spread_pod(a_constraint("zone", label_selector=NO_APP), a_constraint(soft=True, label_selector=NO_APP)),
        a_spread_pod(
            a_constraint("zone", soft=True, label_selector=NO_APP, node_taints_policy="Honor"),
            a_constraint("generation", soft=True, label_selector=NO_APP),
            a_constraint("generation", label_selector=NO_APP, min_domains=3),
            node_selector={"zone": "a"},
        ),
    ]


def prepared(plugin: fw.Plugin, pod: fw.Pod, nodes: NodeTable) -> fw.CycleState:
    """Return the state in which Filter and Score are asked, if they are."""
    state = fw.CycleState()
    if isinstance(plugin, fw.PreFilterPlugin) and plugin.pre_filter(state, pod, nodes) == fw.SKIP:
        state.skip_filter.add(plugin.name)
    if isinstance(plugin, fw.PreScorePlugin) and plugin.pre_score(state, pod, nodes, every_row(nodes)) == fw.SKIP:
        state.skip_score.add(plugin.name)
    return state


def answers(
    plugin: fw.Plugin, state: fw.CycleState, pod: fw.Pod, nodes: NodeColumns, rows: list[int]
) -> tuple[list[int] | None, list[int] | None]:
    """Return what Filter and Score say of `rows`; None for a phase that the plugin has not, or skips."""
    asked = np.array(rows, np.intp)
    codes = scores = None
    if isinstance(plugin, fw.FilterNodesPlugin) and plugin.name not in state.skip_filter:
        found = plugin.filter_nodes(state, pod, nodes, asked)
        assert found is None or found.dtype == np.int32
        codes = [0] * len(rows) if found is None else found.tolist()
    if isinstance(plugin, fw.ScoreNodesPlugin) and plugin.name not in state.skip_score:
        rated = plugin.score_nodes(state, pod, nodes, asked)
        assert rated is None or rated.dtype == np.int64
        scores = [0] * len(rows) if rated is None else rated.tolist()
    return codes, scores


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_builds_from_defaults_and_says_what_it_is(plugin: fw.Plugin) -> None:
    assert IN_TREE[plugin.name] is type(plugin)
    assert (type(plugin).__doc__ or "").strip()
    assert "v1.36.3" in (type(plugin).__doc__ or "")


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_defaults_are_valid_arguments(plugin: fw.Plugin) -> None:
    problems = getattr(plugin, "problems", list)

    assert list(problems()) == []


@pytest.mark.parametrize("plugin", [*PLUGINS, *WITH_ARGUMENTS])
def test_pods_that_do_not_concern_a_plugin_are_those_that_it_skips(plugin: fw.Plugin) -> None:
    if isinstance(plugin, fw.PreFilterPlugin):
        nodes = a_mixed_cluster()
        started(plugin, a_handle(table=nodes))
        for pod in some_pods():
            assert plugin.concerns(pod) or plugin.pre_filter(fw.CycleState(), pod, nodes) == fw.SKIP


@pytest.mark.parametrize("plugin", [*PLUGINS, *WITH_ARGUMENTS])
def test_one_row_at_a_time_gives_the_same_answer_as_all_at_once(plugin: fw.Plugin) -> None:
    nodes = a_mixed_cluster()
    started(plugin, a_handle(table=nodes))
    rows = list(range(nodes.size))
    for pod in some_pods():
        state = prepared(plugin, pod, nodes)
        together = answers(plugin, state, pod, nodes, rows)
        half = answers(plugin, state, pod, nodes, rows[::2])
        each = [answers(plugin, state, pod, nodes, [row]) for row in rows]
        for phase, every in enumerate(together):
            assert half[phase] == (None if every is None else every[::2])
            assert [alone[phase] for alone in each] == [None if every is None else [every[row]] for row in rows]


@pytest.mark.parametrize("plugin", [*PLUGINS, *WITH_ARGUMENTS])
def test_the_same_question_has_the_same_answer_and_changes_nothing(plugin: fw.Plugin) -> None:
    nodes, untouched = a_mixed_cluster(), a_mixed_cluster()
    other = started(copy.copy(plugin), a_handle(table=untouched))
    started(plugin, a_handle(table=nodes))
    rows = list(range(nodes.size))
    for pod in some_pods():
        state = prepared(plugin, pod, nodes)
        first = answers(plugin, state, pod, nodes, rows)

        assert answers(plugin, state, pod, nodes, rows) == first
        assert answers(other, prepared(other, pod, untouched), pod, untouched, rows) == first
    nodes.check_invariants()


@pytest.mark.parametrize("plugin", [*PLUGINS, *WITH_ARGUMENTS])
def test_no_rows_have_no_answers(plugin: fw.Plugin) -> None:
    nodes = a_mixed_cluster()
    started(plugin, a_handle(table=nodes))
    for pod in some_pods():
        found = answers(plugin, prepared(plugin, pod, nodes), pod, nodes, [])

        assert all(answer in (None, []) for answer in found)


@pytest.mark.parametrize("plugin", [*PLUGINS, *WITH_ARGUMENTS])
def test_normalised_scores_are_in_range(plugin: fw.Plugin) -> None:
    nodes = a_mixed_cluster()
    started(plugin, a_handle(table=nodes))
    rows = np.flatnonzero(nodes.in_use).tolist()
    for pod in some_pods():
        state = prepared(plugin, pod, nodes)
        _, scores = answers(plugin, state, pod, nodes, rows)
        if scores is None or pod.requests.get("memory") == HUGE:
            continue  # kube-scheduler's own scores leave the range where amounts overflow
        final = np.array(scores)
        if isinstance(plugin, fw.NormalizeScorePlugin):
            final = plugin.normalize_score(state, pod, final)
        assert final.min() >= fw.MIN_NODE_SCORE
        assert final.max() <= fw.MAX_NODE_SCORE


@pytest.mark.parametrize("plugin", [*PLUGINS, *WITH_ARGUMENTS])
def test_every_refusal_has_a_reason(plugin: fw.Plugin) -> None:
    nodes = a_mixed_cluster()
    started(plugin, a_handle(table=nodes))
    for pod in some_pods():
        state = prepared(plugin, pod, nodes)
        codes, _ = answers(plugin, state, pod, nodes, list(range(nodes.size)))
        for code in set(codes or ()) - {0}:
            assert isinstance(plugin, fw.FilterNodesPlugin)
            status = plugin.status_of(state, pod, code)
            assert status.is_rejected
            assert status.reasons
            assert all(status.reasons)


@pytest.mark.parametrize("plugin", SIGNING)
def test_equal_pods_have_equal_signatures(plugin: fw.SignPlugin) -> None:
    for one, other in zip(some_pods(), some_pods(), strict=True):
        assert plugin.sign(one) == plugin.sign(other)
        assert hash(plugin.sign(one)) == hash(plugin.sign(other))


@pytest.mark.parametrize("plugin", SIGNING)
def test_pods_of_one_signature_have_the_same_answers(plugin: fw.SignPlugin) -> None:
    nodes = a_mixed_cluster()
    started(plugin, a_handle(table=nodes))
    by_signature: dict[object, object] = {}
    for pod in some_pods():
        found = answers(plugin, prepared(plugin, pod, nodes), pod, nodes, list(range(nodes.size)))
        if None not in found:
            assert by_signature.setdefault(plugin.sign(pod), found) == found
