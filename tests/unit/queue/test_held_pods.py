"""Pods that wait for room for their attempt."""

from scheduler.framework.queued import QueuedPod
from tests.unit.queue.fakes import Gate, QueueUnderTest, a_waiting_pod

LANE, OTHER = "lane", "other lane"


def a_queue(*priorities: int) -> QueueUnderTest:
    queue = QueueUnderTest(Gate())
    for priority in priorities:
        queue.add(a_waiting_pod(f"p{priority}", priority=priority))
    return queue


def pop(queue: QueueUnderTest) -> QueuedPod:
    return queue.pop_one()


def held(queue: QueueUnderTest) -> QueuedPod:
    queued = queue.pop_held(LANE)
    assert queued is not None
    return queued


def uid(number: int) -> str:
    return a_waiting_pod(f"p{number}").uid


def test_a_held_pod_counts_as_active_and_was_not_tried() -> None:
    queue = a_queue(1)

    queue.hold(pop(queue), LANE)

    assert queue.pending_counts()["active"] == 1
    assert queue.pop_nowait() is None
    assert [queued.attempts for queued in queue.pending_pods()["active"]] == [0]
    assert queue.in_flight_pods() == ()
    assert uid(1) in queue


def test_the_first_in_order_of_its_lane_comes_back() -> None:
    queue = a_queue(1, 2, 3, 4)
    for lane in (LANE, OTHER, LANE, LANE):
        queue.hold(pop(queue), lane)  # 4 and 2, 1 in the lane, 3 in the other one

    first, second, third = held(queue), held(queue), held(queue)

    assert [first.pod.uid, second.pod.uid, third.pod.uid] == [uid(4), uid(2), uid(1)]
    assert first.attempts == 1
    assert queue.pop_held(LANE) is None
    assert queue.pending_counts()["active"] == 1
    assert len(queue.in_flight_pods()) == 3


def test_a_deleted_pod_does_not_wait_for_room() -> None:
    queue = a_queue(1, 2)
    queue.hold(pop(queue), LANE)
    popped = pop(queue)
    queue.delete(popped.pod)

    queue.hold(popped, LANE)
    queue.delete(uid(2))

    assert queue.pending_counts()["active"] == 0
    assert queue.pop_held(LANE) is None


def test_a_held_pod_has_its_newest_version_and_place() -> None:
    queue = a_queue(1, 2)
    queue.hold(pop(queue), LANE)
    queue.hold(pop(queue), LANE)

    queue.update(None, a_waiting_pod("p1", priority=9, version=7))

    assert held(queue).pod.priority == 9


def test_an_update_while_it_was_popped_is_not_lost() -> None:
    queue = a_queue(1)
    popped = pop(queue)
    newest = a_waiting_pod("p1", priority=5, version=3)
    queue.update(None, newest)

    queue.hold(popped, LANE)

    assert held(queue).pod is newest


def test_every_fourth_time_it_is_the_turn_of_the_one_that_has_waited_longest() -> None:
    queue = a_queue(1)
    queue.hold(pop(queue), LANE)
    for priority in range(2, 9):
        queue.add(a_waiting_pod(f"p{priority}", priority=priority))
        queue.hold(pop(queue), LANE)

    order = [held(queue).pod.uid for _ in range(8)]

    assert order == [uid(8), uid(7), uid(6), uid(1), uid(5), uid(4), uid(3), uid(2)]


def test_nothing_is_taken_out_of_a_closed_queue() -> None:
    queue = a_queue(1)
    queue.hold(pop(queue), LANE)

    queue.close()

    assert queue.pop_held(LANE) is None


def test_a_rebuilt_queue_holds_nobody() -> None:
    queue = a_queue(1)
    queue.hold(pop(queue), LANE)

    queue.rebuild()

    assert pop(queue).pod.uid == uid(1)


def test_a_pod_that_was_confused_with_another_attempt_is_not_held() -> None:
    queue = a_queue(1)
    popped = pop(queue)
    queue.done(popped.pod.uid)

    queue.hold(popped, LANE)

    assert uid(1) not in queue


def test_the_end_of_a_pod_is_told_to_its_attempt() -> None:
    queue, told = a_queue(1), []
    popped = pop(queue)
    queue.when_deleted(popped.pod.uid, lambda: told.append("gone"))
    assert queue.in_flight.newest(popped.pod.uid) is popped.pod

    queue.delete(popped.pod)

    assert told == ["gone"]
    assert queue.in_flight.newest(popped.pod.uid) is None
