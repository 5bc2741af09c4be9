from scheduler.api.objects import Toleration
from scheduler.framework.queued import QueuedPod
from scheduler.queue.in_flight import DROPPED, Flight, InFlightPods, ObservedEvent
from scheduler.testing import a_pod
from tests.unit.queue.fakes import NODE_ADD, NODE_LABEL, a_waiting_pod

ADD, LABEL = (ObservedEvent(event, None, None) for event in (NODE_ADD, NODE_LABEL))


def start(pods: InFlightPods, uid: str) -> Flight:
    pods.start(QueuedPod(a_waiting_pod(uid), 0.0))
    flight = pods.get(uid)
    assert flight is not None
    return flight


def test_events_are_kept_as_long_as_a_pod_may_need_them() -> None:
    pods = InFlightPods()
    start(pods, "a")
    pods.record(ADD)
    second = start(pods, "b")
    pods.record(LABEL)

    pods.finish("a")

    pods.check_invariants()
    assert pods.since(second) == [LABEL]
    assert list(pods._events) == [LABEL]

    pods.finish("b")

    pods.check_invariants()
    assert list(pods._events) == []


def test_a_pod_that_stays_in_flight_for_long_does_not_hold_all_that_happens_meanwhile() -> None:
    pods = InFlightPods()
    waits = start(pods, "waits for its volume")
    for number in range(1000):
        large = a_pod(f"large-{number}", tolerations=[Toleration(key="x" * 100_000)])
        pods.record(ObservedEvent(NODE_ADD, None, large))
        pods.check_invariants()
    late = start(pods, "late")
    pods.record(LABEL)

    assert len(pods._events) < 600
    assert DROPPED in pods.since(waits)
    assert pods.since(late) == [LABEL]
    pods.finish("waits for its volume")
    pods.check_invariants()
    assert list(pods._events) == [LABEL]


def test_small_events_are_not_dropped_however_many_there_are() -> None:
    pods = InFlightPods()
    first = start(pods, "a")

    for _ in range(5000):
        pods.record(LABEL)

    assert pods.since(first) == [LABEL] * 5000
