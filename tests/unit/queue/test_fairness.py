from tests.unit.queue.fakes import FIT, NODE_ADD, QueueUnderTest, a_waiting_pod

CROWD = [f"crowd-{i}" for i in range(20)]


def a_queue_with_a_crowd(starvation_seconds: float = 10.0) -> QueueUnderTest:
    """Twenty pods of high priority that were refused and are to be tried again."""
    queue = QueueUnderTest(starvation_seconds=starvation_seconds)
    for uid in CROWD:
        queue.refused(a_waiting_pod(uid, priority=1000), FIT)
    queue.clock.advance(5)
    queue.move_all(NODE_ADD, None, None)
    return queue


def popped(queue: QueueUnderTest, count: int) -> list[str]:
    return [queue.pop_one().pod.uid for _ in range(count)]


def test_as_long_as_no_pod_waits_too_long_priority_decides() -> None:
    queue = a_queue_with_a_crowd()
    queue.add(a_waiting_pod("low"))
    queue.clock.advance(9.9)

    assert popped(queue, 21) == [*CROWD, "low"]


def test_a_pod_that_waits_too_long_goes_after_three_retries_of_higher_priority() -> None:
    queue = a_queue_with_a_crowd()
    queue.add(a_waiting_pod("low-1"))
    queue.add(a_waiting_pod("low-2"))
    queue.clock.advance(10)

    assert popped(queue, 8) == [*CROWD[:3], "low-1", *CROWD[3:6], "low-2"]


def test_of_those_that_wait_too_long_the_first_to_come_goes_first_whatever_its_priority() -> None:
    queue = a_queue_with_a_crowd()
    queue.add(a_waiting_pod("first"))
    queue.clock.advance(1)
    queue.add(a_waiting_pod("second", priority=5))
    queue.clock.advance(10)

    assert popped(queue, 8) == [*CROWD[:3], "first", *CROWD[3:6], "second"]


def test_the_wait_of_a_pod_that_left_activeq_and_came_back_starts_again() -> None:
    queue = a_queue_with_a_crowd()
    queue.add(a_waiting_pod("low"))
    queue.delete("low")
    queue.clock.advance(9)
    queue.add(a_waiting_pod("low"))
    queue.clock.advance(9)

    assert popped(queue, 21) == [*CROWD, "low"]


def test_pods_that_were_never_tried_are_not_held_back() -> None:
    queue = QueueUnderTest()
    queue.add(a_waiting_pod("low"))
    queue.clock.advance(60)
    for i in range(10):
        queue.add(a_waiting_pod(f"new-{i}", priority=1000))

    assert popped(queue, 11)[-1] == "low"


def test_pods_that_come_and_go_leave_nothing_behind() -> None:
    queue = QueueUnderTest()
    queue.add(a_waiting_pod("stays"))
    for i in range(500):
        queue.add(a_waiting_pod(f"new-{i}", priority=1000))
        queue.done(queue.pop_one().pod.uid)

    assert queue._fairness._count < 100


def test_a_queue_that_ran_empty_keeps_no_pod_in_memory() -> None:
    queue = QueueUnderTest()
    for i in range(500):
        queue.add(a_waiting_pod(f"pod-{i}", priority=i % 3))

    popped(queue, 500)

    assert queue._fairness._count == 0


def test_pods_that_leave_in_another_order_than_they_came_are_swept() -> None:
    queue = QueueUnderTest()
    for i in range(500):
        queue.add(a_waiting_pod(f"pod-{i}"))
        queue.delete("pod-0")

    popped(queue, 499)

    assert queue._fairness._count < 100
