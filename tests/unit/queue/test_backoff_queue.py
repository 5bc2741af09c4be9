import math

import pytest

from scheduler.framework.queued import QueuedPod
from scheduler.queue.backoff_queue import Backoff, BackoffQueue
from tests.fakes import FakeClock
from tests.unit.queue.fakes import FIT, a_waiting_pod


def a_failed_pod(uid: str, at: float, *, refusals: int = 0, errors: int = 0, priority: int = 0) -> QueuedPod:
    queued = QueuedPod(a_waiting_pod(uid, priority=priority), at)
    queued.unschedulable_count, queued.consecutive_errors_count = refusals, errors
    if not errors:
        queued.unschedulable_plugins = {FIT}
    return queued


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(100.0)


@pytest.fixture
def queue(clock: FakeClock) -> BackoffQueue:
    return BackoffQueue(Backoff(), lambda queued: (-queued.priority, queued.timestamp), clock)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)]
)
def test_each_failure_doubles_the_backoff_up_to_the_limit(failures: int, seconds: float) -> None:
    assert Backoff().duration(failures) == seconds


@pytest.mark.parametrize(("initial", "limit"), [(0, 10), (-1, 10), (2, 1), (1, math.inf), (math.nan, 10)])
def test_a_backoff_that_makes_no_sense_is_refused(initial: float, limit: float) -> None:
    with pytest.raises(ValueError, match="need 0 < initial <= limit"):
        Backoff(initial, limit)


@pytest.mark.parametrize(
    ("refusals", "errors", "expiration"),
    [
        pytest.param(0, 0, -math.inf, id="no failure, no backoff"),
        pytest.param(3, 0, 104.0, id="refusals count"),
        pytest.param(0, 2, 102.0, id="errors count"),
        pytest.param(4, 1, 101.0, id="after an error only errors count"),
    ],
)
def test_errors_and_refusals_have_backoffs_of_their_own(
    queue: BackoffQueue, refusals: int, errors: int, expiration: float
) -> None:
    assert queue.expiration(a_failed_pod("a", 100.75, refusals=refusals, errors=errors)) == expiration


def test_whole_windows_leave_at_once(queue: BackoffQueue, clock: FakeClock) -> None:
    queue.add(a_failed_pod("late", 102.0, refusals=1))
    queue.add(a_failed_pod("early", 100.9, refusals=1))
    queue.add(a_failed_pod("first", 100.1, refusals=1))
    queue.add(a_failed_pod("error", 100.5, errors=1))

    clock.time = 102.0
    completed = [queued.pod.uid for queued in queue.pop_completed()]

    assert completed == ["first", "early", "error"]
    assert [queued.pod.uid for queued in queue] == ["late"]


def test_within_a_window_priority_decides_which_pod_leaves_early(queue: BackoffQueue) -> None:
    queue.add(a_failed_pod("low", 100.1, refusals=1))
    queue.add(a_failed_pod("high", 100.8, refusals=1, priority=5))
    queue.add(a_failed_pod("higher but later", 101.0, refusals=1, priority=9))

    early = [queue.pop_early(), queue.pop_early(), queue.pop_early()]

    assert [queued.pod.uid for queued in early if queued is not None] == ["high", "low", "higher but later"]
