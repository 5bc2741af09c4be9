"""What every in-tree plugin promises, whatever it does."""

import random

import numpy as np
import pytest

from plugins import IN_TREE
from plugins.inter_pod_affinity.plugin import InterPodAffinity
from plugins.node_affinity import NodeAffinity
from plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from plugins.node_resources.fit import NodeResourcesFit, RequestedToCapacityRatio, ScoringStrategy
from plugins.node_resources.scoring import ResourceSpec
from plugins.shared.shapes import UtilizationShapePoint
from scheduler import framework as fw
from scheduler.api.objects import ContainerPort, LabelSelector, LabelSelectorRequirement
from scheduler.framework.nodes.resources import KNOWN
from scheduler.state.objects import ObjectStore
from scheduler.testing import (
    Cluster,
    a_cluster,
    a_container,
    a_node,
    a_pod,
    a_requirement,
    a_term,
    check_plugin,
    preferred,
    required,
    started,
)
from tests.fakes import a_handle
from tests.unit.plugins.cluster import every_row
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


def a_mixed_cluster() -> Cluster:
    """Nodes of all sorts, one row that is free, and one that only holds pods of a node that is gone."""
    dice = random.Random(7)
    taints = [fw.Taint(key=key, effect=effect) for key, effect in (("a", "NoSchedule"), ("b", "PreferNoSchedule"))]
    table = a_cluster()
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


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_builds_from_defaults_and_says_what_it_is(plugin: fw.Plugin) -> None:
    assert IN_TREE[plugin.name] is type(plugin)
    assert (type(plugin).__doc__ or "").strip()
    assert any(version in (type(plugin).__doc__ or "") for version in ("v1.36.3", "v1.37.2"))


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_defaults_are_valid_arguments(plugin: fw.Plugin) -> None:
    problems = getattr(plugin, "problems", list)

    assert list(problems()) == []


@pytest.mark.parametrize("plugin", [*PLUGINS, *WITH_ARGUMENTS])
def test_a_plugin_keeps_what_every_plugin_promises(plugin: fw.Plugin) -> None:
    objects = ObjectStore()
    objects.watch(KNOWN)

    # kube-scheduler's own scores leave the range where amounts overflow.
    for overflows in (False, True):
        pods = [pod for pod in some_pods() if (pod.requests.get("memory") == HUGE) is overflows]
        check_plugin(plugin, pods, a_mixed_cluster(), objects, scores_in_range=not overflows)


@pytest.mark.parametrize("plugin", [*PLUGINS, *WITH_ARGUMENTS])
def test_columns_have_the_types_of_codes_and_scores(plugin: fw.Plugin) -> None:
    nodes = a_mixed_cluster()
    started(plugin, a_handle(table=nodes))
    for pod in some_pods():
        state, rows = fw.CycleState(), every_row(nodes)
        if isinstance(plugin, fw.FilterNodesPlugin):
            skips = isinstance(plugin, fw.PreFilterPlugin) and plugin.pre_filter(state, pod, nodes) == fw.SKIP
            codes = None if skips else plugin.filter_nodes(state, pod, nodes, rows)
            assert codes is None or codes.dtype == np.int32
        if isinstance(plugin, fw.ScoreNodesPlugin):
            skips = isinstance(plugin, fw.PreScorePlugin) and plugin.pre_score(state, pod, nodes, rows) == fw.SKIP
            scores = None if skips else plugin.score_nodes(state, pod, nodes, rows)
            assert scores is None or scores.dtype == np.int64


@pytest.mark.parametrize("plugin", SIGNING)
def test_equal_pods_have_equal_signatures(plugin: fw.SignPlugin) -> None:
    for one, other in zip(some_pods(), some_pods(), strict=True):
        assert plugin.sign(one) == plugin.sign(other)
        assert hash(plugin.sign(one)) == hash(plugin.sign(other))
