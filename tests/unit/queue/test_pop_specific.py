"""Taking one pod out of the queue, wherever it waits; and when a pod of a group that failed is tried again."""

import pytest

from scheduler.framework.events import POD_GROUP
from tests.unit.queue.fakes import FIT, NODE_ADD, Gate, Grouped, QueueUnderTest, a_waiting_pod


@pytest.mark.parametrize("place", ["active", "backoff", "unschedulable"])
def test_a_pod_is_taken_from_wherever_it_waits(place: str) -> None:
    queue = QueueUnderTest()
    if place == "active":
        queue.add(a_waiting_pod("a"))
    else:
        queue.refused(a_waiting_pod("a"), *((FIT,) if place == "unschedulable" else ()))
    queue.add(a_waiting_pod("b"))
    assert queue.where("a") == place

    queued = queue.pop_specific("a")

    assert queued is not None
    assert (queued.pod.uid, queued.attempts) == ("a", 1 if place == "active" else 2)
    assert [each.pod.uid for each in queue.in_flight_pods()] == ["a"]
    assert queue.pop_one().pod.uid == "b"
    queue.check_invariants()


def test_a_pod_that_is_kept_out_or_in_flight_or_unknown_is_not_taken() -> None:
    queue = QueueUnderTest(Gate())
    queue.add(a_waiting_pod("gated", gates=["g"]))
    queue.add(a_waiting_pod("flying"))
    queue.pop_one()

    assert [queue.pop_specific(uid) for uid in ("gated", "flying", "unknown")] == [None, None, None]
    assert queue.where("gated") == "gated"
    queue.check_invariants()


@pytest.mark.parametrize(("source", "place"), [(POD_GROUP, "backoff"), ("other", "unschedulable")])
def test_a_pod_of_a_group_of_kube_scheduler_waits_for_its_backoff_and_for_no_event(source: str, place: str) -> None:
    queue = QueueUnderTest(groups=Grouped("a", source))

    queue.refused(a_waiting_pod("a", group="g"), FIT)

    assert queue.where("a") == place


def test_a_pod_of_a_group_does_not_leave_its_backoff_early() -> None:
    queue = QueueUnderTest(groups=Grouped({"grouped"}))
    queue.refused(a_waiting_pod("grouped", group="g"), FIT)
    queue.add(a_waiting_pod("alone"))
    alone = queue.pop_one()
    queue.move_all(NODE_ADD, None, None)
    queue.fail(alone, FIT)

    assert queue.where("alone") == queue.where("grouped") == "backoff"
    assert queue.pop_one().pod.uid == "alone"
    assert queue.pop_nowait() is None
    queue.clock.advance(3)
    queue.flush_backoff_completed()
    assert queue.pop_one().pod.uid == "grouped"
    queue.check_invariants()


def test_an_event_meanwhile_does_not_spare_a_pod_of_a_group_its_backoff() -> None:
    queue = QueueUnderTest(groups=Grouped("a"))
    queue.add(a_waiting_pod("a", group="g"))
    queued = queue.pop_one()
    queue.move_all(NODE_ADD, None, None)

    queue.fail(queued, pending=[FIT])

    assert queue.where("a") == "backoff"
