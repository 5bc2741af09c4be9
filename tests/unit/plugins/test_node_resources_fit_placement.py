"""NodeResourcesFit, PlacementScore: kube-scheduler's own cases, and those that they leave open."""

from typing import Any

import numpy as np
import pytest

from plugins.node_resources.fit import NodeResourcesFit, ScoringStrategy
from plugins.node_resources.scoring import ResourceSpec
from scheduler import framework as fw
from scheduler.testing import Cluster, a_cluster, a_node, a_pod, started
from tests.conformance.transcribed import Case, cases
from tests.fakes import a_handle

CPU_ONLY = (ResourceSpec("cpu"),)


def score(plugin: NodeResourcesFit, table: Cluster, nodes: list[str], pods: list[fw.Pod]) -> int:
    """The score of a placement of these nodes, with the pods on the first of them."""
    rows = np.array([table.row_of(name) for name in nodes])
    proposed = [fw.ProposedAssignment(pod, nodes[0]) for pod in pods]
    assignments = fw.PodGroupAssignments(fw.Placement("p", rows), proposed)
    return started(plugin, a_handle(table)).score_placement(fw.CycleState(), pods[0], assignments)


def a_fit(kind: str, resources: tuple[ResourceSpec, ...]) -> NodeResourcesFit:
    return NodeResourcesFit(scoring_strategy=ScoringStrategy(kind, resources))


def some_node(name: str, cpu: str, memory: str, **others: str) -> fw.Node:
    return a_node(name, cpu=cpu, memory=memory, allocatable=others)


@pytest.mark.parametrize("case", cases("fit_score_placement"))
def test_a_placement_scores_as_in_kube_scheduler(case: Case) -> None:
    running: dict[str, Any] = case.get("running", {})
    table = a_cluster(*(some_node(name, **amounts) for name, amounts in case["nodes"].items()))
    for name, pod in running.items():
        table.add_pod(pod["node"], a_pod(name, requests=pod["requests"]))
    resources = tuple(ResourceSpec(name, weight) for name, weight in case["resources"].items())
    pods = [a_pod(name, requests=pod["requests"]) for name, pod in case["pods"].items()]

    found = score(a_fit("LeastAllocated", resources), table, case["placement"], pods)

    assert found == case["score"]


def test_a_fuller_placement_scores_higher_whatever_the_strategy_for_nodes() -> None:
    table = a_cluster(a_node("small", cpu="2"), a_node("large", cpu="8"))
    pods = [a_pod(requests={"cpu": "1"})]

    found = [
        score(a_fit(kind, CPU_ONLY), table, [node], pods)
        for kind in ("LeastAllocated", "MostAllocated")
        for node in ("small", "large")
    ]

    assert found == [50, 12, 50, 12]


def test_a_node_without_the_resource_counts_neither_way() -> None:
    table = a_cluster(a_node("a", cpu="4"), a_node("b", cpu="0"))
    table.add_pod("b", a_pod("other", requests={"cpu": "4"}))

    assert score(a_fit("LeastAllocated", CPU_ONLY), table, ["a", "b"], [a_pod(requests={"cpu": "1"})]) == 25


def test_a_placement_without_any_of_the_resources_scores_0() -> None:
    table = a_cluster(a_node("a", cpu="0"))

    assert score(a_fit("LeastAllocated", CPU_ONLY), table, ["a"], [a_pod()]) == 0


def test_amounts_that_overflow_wrap_as_in_go() -> None:
    table = a_cluster(a_node("a", memory=str(2**57)), a_node("b", memory=str(2**57)))
    pods = [a_pod(f"p{i}", requests={"memory": str(2**55)}) for i in range(4)]
    wrapped = 2**57 * 100 - 2**64

    found = score(a_fit("MostAllocated", (ResourceSpec("memory"),)), table, ["a", "b"], pods)

    assert found == -(-wrapped // 2**58)
