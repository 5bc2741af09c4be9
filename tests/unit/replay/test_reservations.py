"""Nodes that are reserved for a group: what was decided under a reservation is decided again to the same result."""

from datetime import UTC, datetime
from typing import Any, Final

from scheduler.cycle.steps import in_one_go
from tests.fakes import settle
from tests.unit.replay.stage import Stage, enabled
from tests.unit.replay.traces import RecordedTrace

START: Final = 1_700_000_000.0


def a_pod(stage: Stage, name: str, cpu: str, **spec: Any) -> None:
    stage.pod(name, {"container": {"resources": {"requests": {"cpu": cpu}}}, **spec})


async def a_group_waits(stage: Stage) -> None:
    """Two nodes of four cores are half full for a time that is known, and a group wants all of both."""
    reservations = stage.engine.group_parts.reservations
    assert reservations is not None
    reservations.wall_clock = lambda: START + stage.clock()
    for number in range(2):
        stage.node(f"n{number}", cpu="4")
        started = {"nodeName": f"n{number}", "activeDeadlineSeconds": 2_000}
        before = stage.pod(f"before-{number}", {"container": {"resources": {"requests": {"cpu": "2"}}}, **started})
        at = datetime.fromtimestamp(START + stage.clock(), UTC)
        stage.engine.handlers.pod_changed(stage.newer(before, start_time=at))
    annotations = {"loadmaster.dev/pod-group": "large", "loadmaster.dev/pod-group-min-available": "2"}
    for number in range(2):
        container = {"resources": {"requests": {"cpu": "4"}}}
        stage.pod(f"large-{number}", {"container": container}, annotations=annotations)
    await stage.schedule()
    stage.clock.advance(700.0)
    in_one_go(reservations.look())
    assert stage.engine.group_parts.reserved.reservation is not None


async def small_pods_come(stage: Stage) -> None:
    a_pod(stage, "long", "1")
    a_pod(stage, "short", "1", activeDeadlineSeconds=600)
    await stage.schedule()
    for number in range(2):
        stage.engine.handlers.pod_deleted(stage.engine.pods[f"before-{number}"])
    stage.engine.handlers.pod_deleted(stage.engine.pods["short"])
    stage.clock.advance(20.0)
    stage.engine.queue.flush_backoff_completed()
    await stage.schedule()
    a_pod(stage, "later", "1")
    await stage.schedule()
    await settle()


async def both(stage: Stage) -> None:
    await a_group_waits(stage)
    await small_pods_come(stage)


def test_decisions_under_a_reservation_are_made_again_to_the_same_result(trace: RecordedTrace) -> None:
    trace.record(both, nodes=0, profile=enabled("Coscheduling"))

    trace.decided_again()
    assert {"reserve", "no reservation"} <= set(trace.kinds())


def test_a_recording_that_begins_under_a_reservation_knows_it(trace: RecordedTrace) -> None:
    trace.record(small_pods_come, before=a_group_waits, nodes=0, profile=enabled("Coscheduling"))

    trace.decided_again()
    assert trace.kinds().index("reserve") < trace.kinds().index("begin")
