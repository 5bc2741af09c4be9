"""The age of the oldest pending pod of each queue."""

from scheduler.framework.queued import QueuedPod
from scheduler.queue.ages import oldest_ages
from scheduler.testing import a_pod


def created_at(*times: float) -> list[QueuedPod]:
    return [QueuedPod(a_pod(str(time)), time) for time in times]


def test_the_oldest_pod_of_each_queue_counts() -> None:
    pending = {"active": created_at(90.0, 70.0, 80.0), "gated": created_at(99.5)}

    assert dict(oldest_ages(pending, now=100.0)) == {"active": 30.0, "gated": 0.5}


def test_an_empty_queue_has_age_zero() -> None:
    assert dict(oldest_ages({"backoff": ()}, now=100.0)) == {"backoff": 0.0}


def test_a_failed_attempt_does_not_make_a_pod_younger() -> None:
    (queued,) = created_at(10.0)
    queued.timestamp = 60.0

    assert dict(oldest_ages({"unschedulable": [queued]}, now=100.0)) == {"unschedulable": 90.0}
