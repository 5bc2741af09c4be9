"""Waiting for pods, and what time brings."""

import asyncio
from collections.abc import Callable

import pytest

from tests.fakes import settle
from tests.unit.queue.fakes import FIT, NODE_ADD, QueueUnderTest, a_waiting_pod


@pytest.fixture
def queue() -> QueueUnderTest:
    return QueueUnderTest()


def add(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("new"))


def activate(queue: QueueUnderTest) -> None:
    queue.activate(["refused"])


def event(queue: QueueUnderTest) -> None:
    queue.clock.advance(3)
    queue.move_all(NODE_ADD, None, None)


def event_during_backoff(queue: QueueUnderTest) -> None:
    queue.move_all(NODE_ADD, None, None)


def flush(queue: QueueUnderTest) -> None:
    queue.clock.advance(301)
    queue.flush_unschedulable_leftover()


def end_of_backoff(queue: QueueUnderTest) -> None:
    queue.clock.advance(3)
    queue.flush_backoff_completed()


@pytest.mark.parametrize(
    ("happens", "uid"),
    [
        (add, "new"),
        (activate, "refused"),
        (event, "refused"),
        (event_during_backoff, "refused"),
        (flush, "refused"),
        (end_of_backoff, "error"),
    ],
)
async def test_whatever_makes_a_pod_active_ends_the_wait(
    queue: QueueUnderTest, happens: Callable[[QueueUnderTest], None], uid: str
) -> None:
    queue.refused(a_waiting_pod("refused"), FIT)
    queue.refused(a_waiting_pod("error"))

    waiting = asyncio.create_task(queue.pop())
    await settle()
    assert not waiting.done()
    happens(queue)
    queued = await waiting
    assert queued is not None

    assert queued.pod.uid == uid


async def test_two_that_wait_get_a_pod_each(queue: QueueUnderTest) -> None:
    first, second = asyncio.create_task(queue.pop()), asyncio.create_task(queue.pop())
    await settle()
    queue.add(a_waiting_pod("a"))
    await settle()
    queue.add(a_waiting_pod("b"))

    assert {queued.pod.uid for queued in (await first, await second) if queued is not None} == {"a", "b"}


async def test_closing_ends_the_wait_and_all_popping(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("in flight"))
    queue.pop_one()

    waiting = asyncio.create_task(queue.pop())
    await settle()
    queue.close()
    assert await waiting is None
    queue.add(a_waiting_pod("a"))
    assert await queue.pop() is None
    queue.check_invariants()
    assert queue.pop_nowait() is None
    assert queue.in_flight_pods() == ()


def test_a_refused_pod_is_popped_from_backoff_when_nothing_else_is_there(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"), FIT)
    queue.move_all(NODE_ADD, None, None)
    assert queue.where("a") == "backoff"

    queued = queue.pop_one()

    assert (queued.pod.uid, queued.attempts) == ("a", 2)
    assert queue.incoming("active", "PopFromBackoffQ") == 1


def test_active_pods_go_before_those_that_back_off(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a", priority=9), FIT)
    queue.move_all(NODE_ADD, None, None)
    queue.add(a_waiting_pod("b"))

    assert [queue.pop_one().pod.uid, queue.pop_one().pod.uid] == ["b", "a"]


def test_a_pod_whose_attempt_ended_in_an_error_waits_to_the_end(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"))  # at 1000.25, so until 1001.25, the window of which ends at 1002

    queue.clock.time = 1001.99
    queue.flush_backoff_completed()
    assert queue.pop_nowait() is None

    queue.clock.time = 1002.0
    queue.flush_backoff_completed()
    assert queue.pop_one().pod.uid == "a"
    assert queue.incoming("active", "BackoffComplete") == 1


def test_errors_in_a_row_wait_longer_and_longer(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    waits = []
    for _ in range(6):
        queue.fail(queue.pop_one())
        failed_at = queue.clock.time
        while queue.where("a") == "backoff":
            queue.clock.advance(0.25)
            queue.flush_backoff_completed()
        waits.append(queue.clock.time - failed_at)

    assert waits == [1.75, 3.0, 5.0, 9.0, 11.0, 11.0]


@pytest.mark.parametrize(("seconds", "place"), [(300.0, "unschedulable"), (300.5, "active")])
def test_a_pod_refused_for_five_minutes_is_tried_again(queue: QueueUnderTest, seconds: float, place: str) -> None:
    queued = queue.refused(a_waiting_pod("a"), FIT)
    queue.clock.advance(seconds)

    queue.flush_unschedulable_leftover()

    assert queue.where("a") == place
    assert queued.was_flushed is (place == "active")
    assert queue.incoming("active", "UnschedulableTimeout") == (place == "active")


async def test_the_flushers_run_at_the_start_of_every_window_until_the_queue_is_closed(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("refused"), FIT)
    queue.refused(a_waiting_pod("error"))
    naps: list[float] = []
    active_at: dict[str, float] = {}

    async def sleep(seconds: float) -> None:
        for uid in ("refused", "error"):
            if queue.where(uid) == "active":
                active_at.setdefault(uid, queue.clock.time)
        if len(naps) == 400:
            queue.close()
        naps.append(seconds)
        queue.clock.advance(seconds)

    await queue.run_flushers(sleep)

    assert naps[:3] == [0.75, 1.0, 1.0]
    assert active_at == {"error": 1002.0, "refused": 1301.0}
