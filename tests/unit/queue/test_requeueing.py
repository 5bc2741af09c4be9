from collections.abc import Callable
from typing import Any

import pytest

from scheduler.framework.events import (
    ALL_EVENTS,
    ANY,
    NODE,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
)
from scheduler.framework.queued import QueuedPod
from scheduler.process.metrics import Metrics
from scheduler.queue.in_flight import ObservedEvent
from scheduler.queue.requeueing import Requeue, RequeueRules
from tests.unit.queue.fakes import (
    FIT,
    GATE,
    NODE_ADD,
    NODE_LABEL,
    PROFILE,
    REJECTOR_EVENTS,
    VOLUME_ADD,
    VOLUMES,
    a_waiting_pod,
)

SKIP, AFTER_BACKOFF, IMMEDIATELY = Requeue.SKIP, Requeue.AFTER_BACKOFF, Requeue.IMMEDIATELY
WILDCARD = ClusterEvent(ANY, Action.ALL, "WildCardEvent")


def a_refused_pod(*plugins: str, pending: tuple[str, ...] = (), gate: str = "", profile: str = PROFILE) -> QueuedPod:
    return QueuedPod(
        a_waiting_pod(profile=profile),
        0.0,
        unschedulable_plugins=set(plugins),
        pending_plugins=set(pending),
        gating_plugin=gate,
    )


def rules_with_hint(hint: Callable[[Any, Any, Any], QueueingHint] | None) -> RequeueRules:
    return RequeueRules({PROFILE: {FIT: [ClusterEventWithHint(ClusterEvent(NODE, Action.ADD), hint)]}}, Metrics())


@pytest.mark.parametrize(
    ("queued", "event", "decision"),
    [
        pytest.param(a_refused_pod(FIT), NODE_ADD, AFTER_BACKOFF, id="registered"),
        pytest.param(a_refused_pod(FIT), NODE_LABEL, SKIP, id="registered for another action"),
        pytest.param(a_refused_pod(FIT), VOLUME_ADD, SKIP, id="registered by another plugin"),
        pytest.param(a_refused_pod(FIT, VOLUMES), VOLUME_ADD, AFTER_BACKOFF, id="one of two plugins"),
        pytest.param(a_refused_pod("Unheard"), NODE_ADD, SKIP, id="plugin that registered nothing"),
        pytest.param(a_refused_pod(FIT), WILDCARD, AFTER_BACKOFF, id="wildcard"),
        pytest.param(a_refused_pod(), NODE_LABEL, AFTER_BACKOFF, id="refused by no plugin"),
        pytest.param(a_refused_pod(FIT, profile="other"), NODE_LABEL, AFTER_BACKOFF, id="unknown profile"),
        pytest.param(a_refused_pod(pending=(VOLUMES,)), VOLUME_ADD, IMMEDIATELY, id="what was waited for"),
        pytest.param(a_refused_pod(FIT, pending=(VOLUMES,)), NODE_ADD, AFTER_BACKOFF, id="waits for another"),
        pytest.param(a_refused_pod(GATE, gate=GATE), WILDCARD, SKIP, id="no wildcard opens a gate"),
        pytest.param(a_refused_pod(GATE, FIT, gate=GATE), NODE_ADD, SKIP, id="gated: others are not asked"),
        pytest.param(a_refused_pod(FIT, gate=FIT), NODE_ADD, AFTER_BACKOFF, id="event of the gating plugin"),
    ],
)
def test_the_plugins_that_refused_a_pod_say_what_helps_it(
    queued: QueuedPod, event: ClusterEvent, decision: Requeue
) -> None:
    assert RequeueRules(REJECTOR_EVENTS, Metrics()).decide_all(queued, [ObservedEvent(event, None, None)]) is decision


def test_a_plugin_that_registered_for_everything_hears_of_everything() -> None:
    rules = RequeueRules({PROFILE: {FIT: [ClusterEventWithHint(ALL_EVENTS)]}}, Metrics())

    assert rules.decide_all(a_refused_pod(FIT), [ObservedEvent(VOLUME_ADD, None, None)]) is AFTER_BACKOFF


@pytest.mark.parametrize(
    ("event", "is_of_interest"),
    [(NODE_ADD, True), (NODE_LABEL, False), (WILDCARD, True), (ClusterEvent("Lease", Action.ADD), False)],
)
def test_an_event_that_no_plugin_registered_for_is_of_no_interest(event: ClusterEvent, is_of_interest: bool) -> None:
    assert RequeueRules(REJECTOR_EVENTS, Metrics()).is_of_interest(event) is is_of_interest


@pytest.mark.parametrize(("hint", "decision"), [(QueueingHint.QUEUE, AFTER_BACKOFF), (QueueingHint.SKIP, SKIP)])
def test_a_hint_function_has_the_last_word(hint: QueueingHint, decision: Requeue) -> None:
    asked = []

    def ask(*arguments: Any) -> QueueingHint:
        asked.append(arguments)
        return hint

    queued = a_refused_pod(FIT)

    assert rules_with_hint(ask).decide_all(queued, [ObservedEvent(NODE_ADD, "old", "new")]) is decision
    assert asked == [(queued.pod, "old", "new")]


def test_a_hint_function_that_fails_queues_the_pod_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> QueueingHint:
        raise RuntimeError("no answer")

    assert rules_with_hint(fail).decide_all(a_refused_pod(FIT), [ObservedEvent(NODE_ADD, None, None)]) is AFTER_BACKOFF
    (record,) = caplog.records
    assert record.getMessage().startswith("A plugin failed")
    assert record.__dict__["extensionPoint"] == "QueueingHint"


@pytest.mark.parametrize("answer", [False, None, "Skip"])
@pytest.mark.parametrize("event_number", [1, 10], ids=["not timed", "timed"])
def test_an_answer_that_is_no_hint_queues_the_pod_and_is_logged(
    answer: Any, event_number: int, caplog: pytest.LogCaptureFixture
) -> None:
    rules = rules_with_hint(lambda *_: answer)

    for _ in range(event_number):
        decision = rules.decide_all(a_refused_pod(FIT), [ObservedEvent(NODE_ADD, None, None)])

    assert decision is AFTER_BACKOFF
    (record,) = caplog.records
    assert "expected a QueueingHint" in record.__dict__["err"]


@pytest.mark.parametrize(
    ("queued", "events", "decision"),
    [
        pytest.param(a_refused_pod(FIT), [], SKIP, id="nothing happened"),
        pytest.param(a_refused_pod(), [], AFTER_BACKOFF, id="an error needs no event"),
        pytest.param(a_refused_pod(FIT), [NODE_LABEL, NODE_ADD], AFTER_BACKOFF, id="one of them helps"),
        pytest.param(a_refused_pod(FIT), [NODE_LABEL, VOLUME_ADD], SKIP, id="none of them helps"),
        pytest.param(a_refused_pod(FIT, pending=(VOLUMES,)), [NODE_ADD, VOLUME_ADD], IMMEDIATELY, id="the best counts"),
        pytest.param(a_refused_pod(FIT, pending=(VOLUMES,)), [NODE_ADD], AFTER_BACKOFF, id="the other plugin's"),
    ],
)
def test_of_several_events_the_most_helpful_counts(
    queued: QueuedPod, events: list[ClusterEvent], decision: Requeue
) -> None:
    observed = [ObservedEvent(event, None, None) for event in events]

    assert RequeueRules(REJECTOR_EVENTS, Metrics()).decide_all(queued, observed) is decision
