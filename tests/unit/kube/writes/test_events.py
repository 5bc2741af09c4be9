"""Events: what is sent, what is counted, what is dropped."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler.api.wording.text import in_bytes
from scheduler.framework.events import COSCHEDULING_POD_GROUP
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.groups.apis.annotations import AnnotatedGroups
from scheduler.kube.http.operations import Operation
from scheduler.kube.writes.events import MAX_IN_FLIGHT, MIN_IN_FLIGHT, PATIENCE, Events
from scheduler.kube.writes.recorder import MAX_NOTE, Recorder
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.testing import a_pod
from tests.fakes import sample
from tests.unit.kube.fake_api import LOST, Answer, FakeApi, fake_client, until

EVENTS = "POST /apis/events.k8s.io/v1/namespaces/shop/events"
NOW = 1_700_000_000.25
TIME = "2023-11-14T22:13:20.250000Z"
NAME = f"web.{1_700_000_000_250_000_000:x}"
SERIES = f"PATCH /apis/events.k8s.io/v1/namespaces/shop/events/{NAME}"
POD = a_pod("web", namespace="shop", uid="uid-web")
WAITING = ("Warning", "FailedScheduling", "Scheduling", "0/3 nodes are available")


class Setup:
    def __init__(self, api: FakeApi, client: Any, max_waiting: int) -> None:
        self.api = api
        self.client = client
        self.time = NOW
        self.metrics = Metrics()
        self.is_binding: Callable[[], bool] = lambda: False
        self.events = Events(
            client,
            self.metrics,
            Tasks(self.metrics),
            lambda: self.is_binding(),
            lambda: self.time,
            hostname="host-1",
            max_waiting=max_waiting,
        )
        self.recorder = Recorder(self.events, ["loadmaster"])

    def dropped(self, reason: str) -> float:
        return sample(self.metrics, "loadmaster_events_dropped_total", reason=reason)


@asynccontextmanager
async def a_setup(directory: Path, *answers: Answer, max_waiting: int = 100) -> AsyncIterator[Setup]:
    """What is recorded is sent on leaving."""
    api = FakeApi().on(EVENTS, *(answers or (Answer(201),)))
    api.on(SERIES, Answer())
    async with fake_client(directory, api) as client:
        setup = Setup(api, client, max_waiting)
        setup.events.start()
        try:
            yield setup
        finally:
            await setup.events.close(grace=15.0)


async def test_an_event_names_the_pod_and_us(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.recorder.event(POD, "Normal", "Scheduled", "Binding", 'bound to "n1" \u2713')

    (request,) = setup.api.requests

    assert request.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": NAME, "namespace": "shop"},
        "eventTime": TIME,
        "reportingController": "loadmaster",
        "reportingInstance": "loadmaster-host-1",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "shop",
            "name": "web",
            "uid": "uid-web",
            "resourceVersion": POD.metadata.resource_version,
        },
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": 'bound to "n1" \u2713',
    }


async def test_an_event_of_a_group_is_about_its_object_or_about_a_pod_of_it(tmp_path: Path) -> None:
    group = PodGroup("shop", "training", "uid-g", COSCHEDULING_POD_GROUP)
    async with a_setup(tmp_path) as setup:
        setup.recorder.group_event(group, POD, *WAITING)
        setup.recorder.group_event(group, POD, *WAITING)

    created = setup.api.seen(EVENTS)[0].body
    assert created["metadata"]["name"].startswith("training.")
    assert created["regarding"] == {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "namespace": "shop",
        "name": "training",
        "uid": "uid-g",
        "resourceVersion": "",
    }
    assert created["note"] == WAITING[3]
    assert {request.body["metadata"]["name"] for request in setup.api.seen(EVENTS)} == {created["metadata"]["name"]}
    annotations = {"loadmaster.dev/pod-group": "training", "loadmaster.dev/pod-group-min-available": "2"}
    pod = a_pod("web", namespace="shop", annotations=annotations)
    without_object = AnnotatedGroups().find("shop", "training", pod, pod.group_annotations)
    async with a_setup(tmp_path) as setup:
        setup.recorder.group_event(without_object, POD, *WAITING)
    assert [request.body["regarding"]["name"] for request in setup.api.requests] == ["web"]


async def test_repetitions_become_a_series(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.recorder.event(POD, *WAITING)
        setup.recorder.event(POD, *WAITING)
        await until(lambda: len(setup.api.requests) == 2)
        setup.recorder.event(POD, *WAITING)
        assert len(setup.api.requests) == 2
    series = [request.body["series"] for request in setup.api.seen(SERIES)]
    assert series == [{"count": 2, "lastObservedTime": TIME}, {"count": 3, "lastObservedTime": TIME}]


@pytest.mark.parametrize(("seconds", "note"), [(0, "0/4 nodes are available"), (361, WAITING[3])])
async def test_another_note_or_six_minutes_make_another_event(tmp_path: Path, seconds: float, note: str) -> None:
    async with a_setup(tmp_path) as setup:
        setup.recorder.event(POD, *WAITING)
        setup.time += seconds
        setup.recorder.event(POD, *WAITING[:3], note)

    assert [request.method for request in setup.api.requests] == ["POST", "POST"]


async def test_the_last_count_is_told_when_a_series_ends(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        for _ in range(5):
            setup.recorder.event(POD, *WAITING)
        setup.time += 361
        setup.events.end_series()

    assert setup.api.seen(SERIES)[-1].body["series"]["count"] == 5


async def test_a_series_of_an_event_that_expired_is_created_anew(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.api.on(SERIES, Answer(404))
        setup.recorder.event(POD, *WAITING)
        await until(lambda: setup.api.requests)
        setup.recorder.event(POD, *WAITING)

    assert setup.api.seen(EVENTS)[-1].body["series"]["count"] == 2


async def test_events_are_dropped_when_too_many_wait(tmp_path: Path) -> None:
    async with a_setup(tmp_path, max_waiting=2) as setup:
        for number in range(MAX_IN_FLIGHT + 5):
            setup.recorder.event(POD, "Normal", "Scheduled", "Binding", str(number))

    assert setup.dropped("queue_full") == 3
    assert len(setup.api.requests) == MAX_IN_FLIGHT + 2


async def test_events_go_a_few_at_a_time(tmp_path: Path) -> None:
    async with a_setup(tmp_path, max_waiting=10_000) as setup:
        setup.api.held.clear()
        for number in range(50):
            setup.recorder.event(POD, "Normal", "Scheduled", "Binding", str(number))
        await until(lambda: setup.api.busy == MIN_IN_FLIGHT)
        most = setup.api.most_at_once
        setup.api.held.set()
        await until(lambda: len(setup.api.requests) == 50)

    assert (most, setup.api.most_at_once) == (MIN_IN_FLIGHT, MIN_IN_FLIGHT)


async def test_events_wait_while_pods_are_being_bound_and_go_when_they_are(tmp_path: Path) -> None:
    binding, asked = [True], []

    def is_binding() -> bool:
        asked.append(len(setup.api.requests))
        return binding[0]

    async with a_setup(tmp_path) as setup:
        setup.is_binding = is_binding
        setup.recorder.event(POD, "Normal", "Scheduled", "Binding", "bound")
        await until(lambda: len(asked) >= 3)
        binding[0] = False
        await until(lambda: setup.api.requests)

    assert asked[:3] == [0, 0, 0]


async def test_the_longer_events_have_waited_the_more_are_sent_at_once(tmp_path: Path) -> None:
    async with a_setup(tmp_path, max_waiting=10_000) as setup:
        setup.is_binding = lambda: True
        setup.api.held.clear()
        for number in range(500):
            setup.recorder.event(POD, "Normal", "Scheduled", "Binding", str(number))
        at_once = [setup.api.busy]
        for waited, expected in ((PATIENCE * 1.5, 54), (PATIENCE * 2, MAX_IN_FLIGHT), (60.0, MAX_IN_FLIGHT)):
            setup.time = NOW + waited
            await until(lambda expected=expected: setup.api.busy >= expected)
            at_once.append(setup.api.busy)
        setup.api.held.set()

    assert at_once == [0, 54, 100, 100]


async def test_what_waits_for_bindings_is_sent_before_the_end(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        setup.is_binding = lambda: True
        setup.recorder.event(POD, "Normal", "Scheduled", "Binding", "bound")

    assert len(setup.api.requests) == 1


@pytest.mark.parametrize("failure", [LOST, Answer(500), Answer(429, headers={"Retry-After": "0.01"})])
async def test_what_may_pass_is_sent_again(tmp_path: Path, failure: Answer) -> None:
    async with a_setup(tmp_path, failure, Answer(409)) as setup:
        setup.recorder.event(POD, *WAITING)
    first, second = setup.api.requests

    assert first.body == second.body
    assert setup.dropped("refused") == 0


async def test_a_refused_event_is_dropped(tmp_path: Path) -> None:
    async with a_setup(tmp_path, Answer(403)) as setup:
        setup.recorder.event(POD, *WAITING)

    assert setup.dropped("refused") == 1


@pytest.mark.parametrize(
    ("note", "sent"),
    [
        ("short", "short"),
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("\u20ac" * 400, "\u20ac" * 340 + " ..."),
        ("half \ud800", "half \ufffd"),
    ],
    ids=["short", "at the limit", "long", "long in bytes", "not a character"],
)
def test_a_note_has_at_most_1024_bytes(note: str, sent: str) -> None:
    assert in_bytes(note, MAX_NOTE) == sent


async def test_an_event_that_fails_unexpectedly_is_counted_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_setup(tmp_path) as setup:
        attempt = setup.client.attempt

        async def broken(operation: Operation, path: str, body: bytes) -> Any:
            if b"broken" in body:
                raise RuntimeError("a bug")
            return await attempt(operation, path, body)

        monkeypatch.setattr(setup.client, "attempt", broken)
        for number in range(2 * MIN_IN_FLIGHT):
            setup.recorder.event(POD, "Normal", "X", "Y", f"broken {number}")
        setup.recorder.event(POD, "Normal", "X", "Y", "fine")
        await until(lambda: setup.api.requests)

        assert setup.dropped("failed") == 2 * MIN_IN_FLIGHT
    assert [request.body["note"] for request in setup.api.requests] == ["fine"]


async def test_texts_are_as_long_as_the_api_server_takes_and_what_utf8_can_carry(tmp_path: Path) -> None:
    async with a_setup(tmp_path) as setup:
        text = "\u20ac\x00\x1b" + "x" * 10_000_000
        setup.recorder.event(POD, text, text, text, text)
        setup.recorder.event(POD, "Normal", "Odd\ud800", "Odd\udfff", "half a pair: \udcff.")

    sent = ([each.body[key] for key in ("type", "reason", "action", "note")] for each in setup.api.requests)
    odd, long = sorted(sent, key=lambda texts: len(texts[0]))
    assert [len(text.encode()) for text in long] == [128, 128, 128, 1024]
    assert odd == ["Normal", "Odd\ufffd", "Odd\ufffd", "half a pair: \ufffd."]
