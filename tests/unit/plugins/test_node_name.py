"""NodeName: pods that name their node."""

import pytest

from plugins.node_name import OTHER_NODE, NodeName
from scheduler import framework as fw
from scheduler.testing import a_node, a_pod
from tests.unit.plugins.cluster import a_cluster, refusals
from tests.unit.plugins.hints import NODE_ADDED, wakes


@pytest.mark.parametrize(
    ("node_name", "refused"),
    [
        pytest.param("", set(), id="a pod that names none may run anywhere"),
        pytest.param("b", {"a", "c"}, id="a pod that names one may run only there"),
        pytest.param("gone", {"a", "b", "c"}, id="a pod that names an unknown one may run nowhere"),
    ],
)
def test_only_the_named_node_is_left(node_name: str, refused: set[str]) -> None:
    cluster = a_cluster(a_node("a"), a_node("b"), a_node("c"))

    found = refusals(NodeName(), a_pod(node_name=node_name), cluster)

    assert found == dict.fromkeys(refused, OTHER_NODE)


def test_a_pod_that_names_a_node_is_tried_there_only() -> None:
    pods = [a_pod(), a_pod(node_name="b")]

    asked = [NodeName().pre_filter(fw.CycleState(), pod, a_cluster()) for pod in pods]

    assert asked == [None, fw.PreFilterResult(frozenset({"b"}))]
    assert [NodeName().concerns(pod) for pod in pods] == [False, True]


def test_any_new_node_may_be_the_one_that_is_named() -> None:
    assert wakes(NodeName(), a_pod(node_name="a"), NODE_ADDED, None, a_node("b"))
