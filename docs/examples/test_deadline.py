import pytest
from deadline import DEADLINE, Deadline

from scheduler import framework as fw
from scheduler.testing import a_cluster, a_node, a_pod, a_scheduler, check_plugin


def due(name: str, time: str, priority: int = 0) -> fw.Pod:
    return a_pod(name, priority=priority, annotations={DEADLINE: time})


def test_the_earliest_deadline_is_tried_first_within_a_priority() -> None:
    with a_scheduler(Deadline(), nodes=[a_node()]) as scheduler:
        scheduler.create(
            due("evening", "2026-03-01T18:00:00Z"),
            a_pod("some day"),
            due("noon", "2026-03-01T12:00:00Z"),
            due("morning", "2026-03-01T12:00:00+04:00"),
            due("important", "2026-03-02T00:00:00Z", priority=10),
        )

        order = [pod.name for pod in scheduler.bound]
        assert order == ["important", "morning", "noon", "evening", "some day"]


@pytest.mark.parametrize("time", ["", "tomorrow", "2026-13-01", "9" * 1000])
def test_what_is_no_time_comes_last(time: str) -> None:
    with a_scheduler(Deadline(), nodes=[a_node()]) as scheduler:
        scheduler.create(due("odd", time), due("noon", "2026-03-01T12:00:00"))

        assert [pod.name for pod in scheduler.bound] == ["noon", "odd"]


def test_it_is_an_order() -> None:
    pods = [due("a", "2026-03-01T12:00:00Z"), due("b", "soon"), a_pod("c", priority=5), a_pod("d")]

    check_plugin(Deadline(), pods, a_cluster(a_node()))
