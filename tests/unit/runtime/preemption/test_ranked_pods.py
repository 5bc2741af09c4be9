"""The pods of lower priority on nodes, as they are now."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from msgspec.structs import replace

from scheduler import framework as fw
from scheduler.api.objects import PodStatus
from scheduler.api.pods.importance import NOT_STARTED
from scheduler.runtime.preemption import ranked_pods
from scheduler.runtime.preemption.ranked_pods import RankedPods
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod
from tests.unit.plugins.cluster import a_cluster

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pod(name: str, priority: int, cpu: str = "1", started: int | None = None) -> fw.Pod:
    status = PodStatus(start_time=None if started is None else EPOCH + timedelta(microseconds=started))
    return a_pod(name, priority=priority, requests={"cpu": cpu}, status=status)


def ranked(pods: RankedPods, row: int, below: int = 10) -> list[tuple[int, int, int]]:
    """Priority, thousandths of a core and start of each pod on one node."""
    lower = pods.below(below, np.array([row]))
    columns = lower.priorities, lower.amounts("cpu"), lower.starts
    return list(zip(*(column.tolist() for column in columns), strict=True))


def some_pods() -> NodeTable:
    on_n = [pod("b", 1, "2", started=7), pod("a", 1, "1", started=3), pod("c", 5, "3"), pod("top", 10)]
    return a_cluster(a_node("n"), a_node("m"), a_node("o"), pods={"n": on_n, "o": [pod("d", -5, "4", started=0)]})


def test_lower_pods_come_in_the_order_of_importance() -> None:
    pods = RankedPods(some_pods())

    assert ranked(pods, 0) == [(5, 3000, NOT_STARTED), (1, 1000, 3), (1, 2000, 7)]
    assert ranked(pods, 0, below=5) == [(1, 1000, 3), (1, 2000, 7)]
    assert ranked(pods, 1) == []


def test_each_node_knows_its_pods_and_their_sum() -> None:
    lower = RankedPods(some_pods()).below(10, np.array([2, 1, 0]))

    assert lower.counts.tolist() == [1, 0, 3]
    assert lower.first.tolist() == [0, 1, 1]
    assert lower.sums("cpu").tolist() == [4000, 0, 6000]
    assert lower.sums("example.com/gpu").tolist() == [0, 0, 0]


def test_there_may_be_none_of_a_lower_priority_anywhere() -> None:
    pods = RankedPods(some_pods())
    lower = pods.below(-5, np.array([2, 1, 0]))

    assert lower.counts.tolist() == [0, 0, 0]
    assert lower.sums("cpu").tolist() == [0, 0, 0]
    assert (list(lower.pods), ranked(pods, 0, below=-5)) == ([], [])
    assert lower.on(np.array([True, False, True])).counts.tolist() == [0, 0]


def test_that_there_are_none_is_known_until_pods_change_and_of_these_nodes_alone() -> None:
    table = some_pods()
    pods = RankedPods(table)
    assert pods.below(1, np.array([0])).counts.tolist() == [0]

    assert pods.below(1, np.array([2])).counts.tolist() == [1]
    assert pods.below(1, np.array([0])).counts.tolist() == [0]
    table.add_pod("n", pod("lower", 0))

    assert pods.below(1, np.array([0])).counts.tolist() == [1]


def test_pods_that_come_go_or_start_are_noticed() -> None:
    table = some_pods()
    pods = RankedPods(table)
    ranked(pods, 0)
    old = {each.name: each for each in table.info(0).pods}

    table.remove_pod("n", old["a"])
    table.add_pod("n", pod("new", 7, "5", started=1))
    table.replace_pod("n", old["c"], replace(old["c"], status=pod("c", 5, started=9).status))

    assert ranked(pods, 0) == [(7, 5000, 1), (5, 3000, 9), (1, 2000, 7)]


def test_a_look_at_a_changed_table_is_not_kept_longer_than_the_change_is_known() -> None:
    table = some_pods()
    pods = RankedPods(table)
    before = ranked(pods, 0)

    for _ in range(5000):  # more than the log of changes holds
        table.add_pod("n", each := pod("brief", 2))
        table.remove_pod("n", each)
    table.add_pod("n", pod("new", 7, "5", started=1))

    assert ranked(pods, 0) == [(7, 5000, 1), *before]


def test_shapes_that_no_pod_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked_pods, "_MAX_KINDS", 0)
    table = a_cluster(a_node("n"))
    pods = RankedPods(table)

    for cpu in range(1, 50):
        table.add_pod("n", each := pod("p", 0, str(cpu), started=0))
        assert ranked(pods, 0) == [(0, cpu * 1000, 0)]
        table.remove_pod("n", each)

    assert len(pods.below(0, np.array([0]))._kinds) <= 3


def test_shapes_that_take_much_memory_are_forgotten_when_their_pods_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranked_pods, "_KIND_BYTES", 100_000)
    table = a_cluster(a_node("n"))
    pods = RankedPods(table)
    every = np.array([0])

    for number in range(50):
        table.add_pod("n", each := a_pod("p", requests={f"example.com/{number}-{i}": "1" for i in range(300)}))
        assert pods.below(1, every).counts.tolist() == [1]
        table.remove_pod("n", each)

    kinds = pods.below(1, every)._kinds
    assert len(kinds) <= 3
    assert kinds.bytes < 200_000
