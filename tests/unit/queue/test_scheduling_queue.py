"""Where a pod goes, by what happens to it. Popping and time are in test_pop.py, updates in test_updates.py."""

from collections.abc import Callable

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.framework.events import ClusterEvent, ClusterEventWithHint
from scheduler.framework.status import Status, unresolvable
from tests.unit.queue.fakes import (
    CLAIM_ADD,
    FIT,
    GATE,
    NODE_ADD,
    PROFILE,
    VOLUME_ADD,
    VOLUMES,
    Gate,
    QueueUnderTest,
    a_waiting_pod,
)


class Closed(Gate):
    """Refuses all pods until a test opens it."""

    is_open = False

    def pre_enqueue(self, pod: Pod) -> Status | None:
        self.asked.append(pod.uid)
        return None if self.is_open else unresolvable("closed")


@pytest.fixture
def queue() -> QueueUnderTest:
    return QueueUnderTest(Gate())


def test_a_new_pod_is_active(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a", nominated="n1"))

    assert queue.where("a") == "active"
    assert queue.incoming("active", "UnscheduledPodAdd") == 1
    assert queue.nominator.node_of("a") == "n1"


def test_adding_a_pod_twice_is_adding_it_once(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    queue.add(a_waiting_pod("a", version=2))

    queue.check_invariants()
    assert queue.pop_one().pod.metadata.resource_version == "2"
    assert queue.pop_nowait() is None


def test_a_gated_pod_waits_with_the_refused_ones(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a", gates=("x",), nominated="n1"))

    assert queue.where("a") == "gated"
    assert queue.incoming("unschedulable", "UnscheduledPodAdd") == 1
    assert queue.unschedulable_counts() == {(GATE, PROFILE): 1}
    assert queue.nominator.node_of("a") == "n1"


def test_an_attempt_is_counted_when_the_pod_is_popped(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    queue.clock.advance(3)

    queued = queue.pop_one()

    assert (queued.attempts, queued.initial_attempt_timestamp, queued.timestamp) == (1, 1000.25, 1000.25)
    assert queue.where("a") == "in flight"


def test_a_refused_pod_waits_for_an_event(queue: QueueUnderTest) -> None:
    queued = queue.refused(a_waiting_pod("a"), FIT)

    assert queue.where("a") == "unschedulable"
    assert queue.incoming("unschedulable", "ScheduleAttemptFailure") == 1
    assert queue.unschedulable_counts() == {(FIT, PROFILE): 1}
    assert (queued.unschedulable_count, queued.consecutive_errors_count) == (1, 0)


def test_a_pod_whose_attempt_ended_in_an_error_backs_off(queue: QueueUnderTest) -> None:
    queued = queue.refused(a_waiting_pod("a"))

    assert queue.where("a") == "backoff"
    assert queue.incoming("backoff", "ScheduleAttemptFailure") == 1
    assert (queued.unschedulable_count, queued.consecutive_errors_count) == (0, 1)


def test_a_refusal_ends_a_row_of_errors(queue: QueueUnderTest) -> None:
    queued = queue.refused(a_waiting_pod("a"))
    queue.clock.advance(2)
    queue.flush_backoff_completed()

    queue.fail(queue.pop_one(), FIT)

    assert (queued.unschedulable_count, queued.consecutive_errors_count) == (1, 0)


def test_a_refused_pod_waits_from_its_return_on(queue: QueueUnderTest) -> None:
    queued = queue.popped(a_waiting_pod("a"))
    queued.was_flushed = True
    queue.clock.advance(5)

    queue.fail(queued, FIT)

    assert (queued.timestamp, queued.was_flushed) == (1005.25, False)


@pytest.mark.parametrize(
    ("event", "seconds", "place"),
    [
        pytest.param(NODE_ADD, 0, "backoff", id="helps, but it has to wait"),
        pytest.param(NODE_ADD, 3, "active", id="helps, and it has waited"),
        pytest.param(VOLUME_ADD, 3, "unschedulable", id="helps others"),
        pytest.param(CLAIM_ADD, 3, "unschedulable", id="helps no pod"),
    ],
)
def test_an_event_moves_the_pods_it_may_help(
    queue: QueueUnderTest, event: ClusterEvent, seconds: float, place: str
) -> None:
    queue.refused(a_waiting_pod("a"), FIT)
    queue.clock.advance(seconds)

    queue.move_all(event, None, None)

    assert queue.where("a") == place
    assert queue.incoming(place, event.label) == (place != "unschedulable")


def test_the_event_that_a_pending_pod_waits_for_spares_it_the_backoff(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"), pending=(VOLUMES,))

    queue.move_all(VOLUME_ADD, None, None)

    assert queue.where("a") == "active"


def test_a_pre_check_leaves_pods_where_they_are(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"), FIT)
    queue.refused(a_waiting_pod("b"), FIT)
    queue.clock.advance(3)

    queue.move_all(NODE_ADD, None, None, lambda pod: pod.uid == "b")

    assert (queue.where("a"), queue.where("b")) == ("unschedulable", "active")


def test_an_event_while_the_pod_is_in_flight_brings_it_back_into_the_queue(queue: QueueUnderTest) -> None:
    queued = queue.popped(a_waiting_pod("a"))

    queue.move_all(NODE_ADD, None, None)
    queue.fail(queued, FIT)

    assert queue.where("a") == "backoff"
    assert queue.incoming("backoff", "ScheduleAttemptFailure") == 1


@pytest.mark.parametrize(
    "event", [pytest.param(VOLUME_ADD, id="for other pods"), pytest.param(CLAIM_ADD, id="for no pod")]
)
def test_other_events_while_the_pod_is_in_flight_do_not(queue: QueueUnderTest, event: ClusterEvent) -> None:
    queued = queue.popped(a_waiting_pod("a"))

    queue.move_all(event, None, None)
    queue.fail(queued, FIT)

    assert queue.where("a") == "unschedulable"


def test_an_event_before_the_pod_was_popped_is_not_news_to_it(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    first = queue.popped(a_waiting_pod("b"))
    queue.move_all(NODE_ADD, None, None)
    second = queue.pop_one()

    queue.fail(first, FIT)
    queue.fail(second, FIT)

    assert (queue.where("a"), queue.where("b")) == ("backoff", "unschedulable")


def test_a_gated_pod_stays_when_nodes_come_and_when_time_passes(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a", gates=("x",)))
    queue.clock.advance(1000)

    queue.move_all(NODE_ADD, None, None)
    queue.flush_unschedulable_leftover()

    assert queue.where("a") == "gated"


def test_a_pod_whose_gate_stays_closed_is_asked_at_each_event_until_it_opens() -> None:
    gate = Closed()
    queue = QueueUnderTest(gate, events={PROFILE: {GATE: [ClusterEventWithHint(NODE_ADD)]}})
    queue.add(a_waiting_pod("a"))
    queue.move_all(NODE_ADD, None, None)
    queue.check_invariants()
    places = [queue.where("a")]
    gate.is_open = True

    queue.move_all(NODE_ADD, None, None)

    assert [*places, queue.where("a")] == ["gated", "active"]
    assert gate.asked == ["a"] * 3


def test_a_gate_that_opened_without_an_event_is_found_open_in_time() -> None:
    gate = Closed()
    queue = QueueUnderTest(gate)
    queue.add(a_waiting_pod("a"))
    places = []
    for seconds, opens in ((301, False), (299, True), (2, True)):
        gate.is_open = opens
        queue.clock.advance(seconds)
        queue.flush_unschedulable_leftover()
        queue.check_invariants()
        places.append(queue.where("a"))

    assert places == ["gated", "gated", "active"]
    assert gate.asked == ["a"] * 3, "five minutes after it was asked last"
    assert queue.pop_one().was_flushed


def test_a_pod_that_stays_gated_at_the_flush_does_not_count_as_flushed() -> None:
    gate = Closed()
    queue = QueueUnderTest(gate, events={PROFILE: {GATE: [ClusterEventWithHint(NODE_ADD)]}})
    queue.add(a_waiting_pod("a"))
    queue.clock.advance(301)
    queue.flush_unschedulable_leftover()
    gate.is_open = True

    queue.move_all(NODE_ADD, None, None)

    assert not queue.pop_one().was_flushed


def test_a_pod_gated_on_its_return_waits_behind_the_gate() -> None:
    gate = Gate()
    queue = QueueUnderTest(gate)
    queued = queue.popped(a_waiting_pod("a"))
    queue.update(None, a_waiting_pod("a", gates=("x",)))

    queue.fail(queued)

    assert queue.where("a") == "gated"
    assert queue.unschedulable_counts() == {(GATE, PROFILE): 1}


def test_a_failing_gate_refuses_the_pod_without_gating_it(
    queue: QueueUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    queue.add(a_waiting_pod("a", labels={"broken": ""}))
    queue.add(a_waiting_pod("b"))

    assert (queue.where("a"), queue.where("b")) == ("unschedulable", "active")
    assert queue.unschedulable_counts() == {(GATE, PROFILE): 1}
    assert [record.__dict__["pod"] for record in caplog.records] == ["default/pod-a", "default/pod-a"]


def test_a_pod_that_met_a_failing_gate_comes_back_in_time(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a", labels={"broken": ""}))
    queue.update(None, a_waiting_pod("a"))  # no plugin registered for labels
    queue.clock.advance(301)

    queue.flush_unschedulable_leftover()

    assert queue.where("a") == "active"


def test_activation_skips_backoff_but_not_the_gates(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("refused"), FIT)
    queue.refused(a_waiting_pod("backing off"))
    queue.add(a_waiting_pod("gated", gates=("x",)))

    queue.activate(["refused", "backing off", "gated", "unknown"])

    queue.check_invariants()
    places = [queue.where(uid) for uid in ("refused", "backing off", "gated", "unknown")]
    assert places == ["active", "active", "gated", ""]
    assert queue.incoming("active", "ForceActivate") == 2


def test_a_pod_that_leaves_backoff_has_passed_the_gates_already() -> None:
    gate = Gate()
    queue = QueueUnderTest(gate)
    queue.refused(a_waiting_pod("a"))
    gate.asked.clear()

    queue.activate(["a"])

    assert (queue.where("a"), gate.asked) == ("active", [])


def test_activating_a_pod_in_flight_brings_it_and_no_other_back(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    queue.add(a_waiting_pod("b"))
    first, second = queue.pop_one(), queue.pop_one()

    queue.activate(["a"])
    queue.fail(first, FIT)
    queue.fail(second, FIT)

    assert (queue.where("a"), queue.where("b")) == ("backoff", "unschedulable")


def prepare_active(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))


def prepare_backoff(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"))


def prepare_unschedulable(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"), FIT)


def prepare_gated(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a", gates=("x",)))


def prepare_in_flight(queue: QueueUnderTest) -> None:
    queue.add(a_waiting_pod("a"))
    queue.pop_one()


def prepare_unknown(queue: QueueUnderTest) -> None:
    pass


EVERYWHERE = [prepare_active, prepare_backoff, prepare_unschedulable, prepare_gated, prepare_in_flight, prepare_unknown]


@pytest.mark.parametrize("prepare", EVERYWHERE)
@pytest.mark.parametrize("given", [a_waiting_pod("a"), "a"], ids=["pod", "uid"])
def test_a_deleted_pod_is_gone_wherever_it_was(
    queue: QueueUnderTest, prepare: Callable[[QueueUnderTest], None], given: Pod | str
) -> None:
    prepare(queue)
    queue.nominator.add(a_waiting_pod("a"), "n1")

    queue.delete(given)

    assert "a" not in queue
    assert queue.unschedulable_counts() == {}
    assert queue.nominator.node_of("a") == ""


@pytest.mark.parametrize("plugins", [(), (FIT,)], ids=["error", "refused"])
def test_a_pod_that_was_deleted_in_flight_does_not_come_back(queue: QueueUnderTest, plugins: tuple[str, ...]) -> None:
    queued = queue.popped(a_waiting_pod("a"))

    queue.delete("a")
    queue.fail(queued, *plugins)

    assert queue.where("a") == ""
    assert queue.unschedulable_counts() == {}


def test_a_nomination_made_after_the_deletion_does_not_outlive_the_attempt(queue: QueueUnderTest) -> None:
    queued = queue.popped(a_waiting_pod("a"))
    queue.delete("a")
    queue.nominator.add(queued.pod, "n1")

    queue.done("a")

    assert queue.nominator.node_of("a") == ""


def test_a_pod_that_is_done_is_gone(queue: QueueUnderTest) -> None:
    prepare_in_flight(queue)

    queue.done("a")
    queue.done("a")

    assert queue.where("a") == ""


def test_a_pod_whose_binding_failed_after_it_was_done_backs_off(queue: QueueUnderTest) -> None:
    queued = queue.popped(a_waiting_pod("a"))
    queue.done("a")

    queue.fail(queued)

    assert queue.where("a") == "backoff"


def test_a_pod_that_comes_back_twice_is_there_once(queue: QueueUnderTest, caplog: pytest.LogCaptureFixture) -> None:
    queued = queue.refused(a_waiting_pod("a"), FIT)

    queue.fail(queued, FIT)

    assert queue.where("a") == "unschedulable"
    assert queued.unschedulable_count == 1
    assert len(caplog.records) == 1


def test_a_stale_return_does_not_end_the_present_attempt(queue: QueueUnderTest) -> None:
    stale = queue.popped(a_waiting_pod("a"))
    queue.done("a")
    present = queue.popped(a_waiting_pod("a", version=2))

    queue.fail(stale, FIT)

    assert queue.in_flight_pods() == (present,)


def test_counts_and_lists_agree(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"), FIT)
    queue.refused(a_waiting_pod("b"))
    queue.add(a_waiting_pod("c", gates=("x",)))
    queue.add(a_waiting_pod("d"))
    queue.add(a_waiting_pod("e"))
    queue.pop_one()

    places = {"active": 1, "backoff": 1, "unschedulable": 1, "gated": 1, "incomplete": 0, "pending": 0}
    assert queue.pending_counts() == places
    assert {name: len(pods) for name, pods in queue.pending_pods().items()} == queue.pending_counts()
    assert [queued.pod.uid for queued in queue.in_flight_pods()] == ["d"]


def test_the_oldest_pod_of_each_queue_counts_since_it_came_and_not_since_it_was_tried(queue: QueueUnderTest) -> None:
    for uid in ("old", "young"):
        queue.add(a_waiting_pod(uid))
        queue.clock.advance(10)
    queue.fail(queue.pop_one(), FIT)
    queue.fail(queue.pop_one(), FIT)
    queue.add(a_waiting_pod("new"))
    queue.clock.advance(0.5)

    ages = {name: age for (name,), age in queue.oldest_ages() if age}

    assert ages == {"unschedulable": 20.5, "active": 0.5}


def test_a_pod_counts_once_for_each_plugin_that_refused_it_until_it_is_tried_again(queue: QueueUnderTest) -> None:
    queue.refused(a_waiting_pod("a"), FIT, pending=(VOLUMES,))
    queue.refused(a_waiting_pod("b"), FIT)
    assert queue.unschedulable_counts() == {(FIT, PROFILE): 2, (VOLUMES, PROFILE): 1}

    queue.activate(["a"])
    assert queue.unschedulable_counts() == {(FIT, PROFILE): 2, (VOLUMES, PROFILE): 1}

    queue.pop_one()
    assert queue.unschedulable_counts() == {(FIT, PROFILE): 1}
