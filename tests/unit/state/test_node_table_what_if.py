"""What-ifs are seen inside and leave no trace."""

from collections.abc import Iterable

import pytest

from scheduler.api.objects import ContainerPort
from scheduler.api.pods.pod import Pod
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.unit.state.tables import GPU, LOCKED, MOST, a_table, everything


def a_busy_table() -> tuple[NodeTable, list[Pod]]:
    table = a_table(a_node("a", labels={"zone": "1"}, images={"app:1": 5}), a_node("b", taints=[LOCKED]))
    pods = [
        a_pod("p", requests={"cpu": "1", "memory": str(MOST)}, ports=[ContainerPort(host_port=80)]),
        a_pod("q", requests={"cpu": "2"}, ports=[ContainerPort(host_port=80, host_ip="10.0.0.1")]),
    ]
    for pod in pods:
        table.add_pod("a", pod)
    return table, pods


def visitors() -> Iterable[Pod]:
    return (
        a_pod("v", requests={"cpu": "3", "memory": str(MOST), GPU: "1"}, ports=[ContainerPort(host_port=80)]),
        a_pod("w", requests={"cpu": "500m"}, ports=[ContainerPort(host_port=443)]),
    )


def test_a_what_if_is_seen_inside_and_leaves_no_trace() -> None:
    table, pods = a_busy_table()
    before = everything(table)

    with table.what_if(0, add=visitors(), remove=pods[:1]):
        table.check_invariants()
        inside = everything(table)
        on_node = {pod.name for pod in table.info(0).pods}

    assert everything(table) == before
    assert on_node == {"q", "v", "w"}
    assert inside["requested"]["cpu"] == [5500, 0]
    assert inside["requested"][GPU] == [1, 0]
    assert inside["pod count"] == [3, 0]
    assert inside["ports"]["('TCP', 80)"] == {"10.0.0.1": {"0": 1}, "0.0.0.0": {"0": 1}}
    assert inside["positions"] == before["positions"]


@pytest.mark.parametrize("taken", ["p", "q", "pq", "qp"])
def test_a_what_if_leaves_pods_in_the_order_in_which_they_came(taken: str) -> None:
    table, pods = a_busy_table()
    table.add_pod("a", a_pod("r"))
    with table.what_if(0, add=visitors(), remove=[pod for name in taken for pod in pods if pod.name == name]):
        pass
    assert [pod.name for pod in table.info(0).pods] == ["p", "q", "r"]


def test_what_ifs_can_be_nested() -> None:
    table, pods = a_busy_table()
    before = everything(table)

    with table.what_if(0, remove=pods):
        outer = everything(table)
        with table.what_if(0, add=visitors()), table.what_if(1, add=visitors()):
            table.check_invariants()
        after = everything(table)

    assert after == outer
    assert everything(table) == before


def test_a_what_if_that_ends_in_an_exception_leaves_no_trace() -> None:
    table, pods = a_busy_table()
    before = everything(table)

    with pytest.raises(RuntimeError, match="a plugin"), table.what_if(0, add=visitors(), remove=pods):
        raise RuntimeError("a plugin failed")

    assert everything(table) == before


@pytest.mark.parametrize(
    ("add", "remove", "error"),
    [
        pytest.param([a_pod("v"), a_pod("x", requests={"cpu": "lots"})], [], ValueError, id="an unreadable pod"),
        pytest.param([a_pod("v"), a_pod("p")], [], ValueError, id="a pod that is there"),
        pytest.param([], [a_pod("stranger")], KeyError, id="a pod that is not there"),
    ],
)
def test_a_what_if_that_cannot_begin_leaves_no_trace(add: list[Pod], remove: list[Pod], error: type[Exception]) -> None:
    table, _ = a_busy_table()
    before = everything(table)

    with pytest.raises(error), table.what_if(0, add=add, remove=remove):
        raise AssertionError("must not get here")

    assert everything(table) == before
