"""How long pods run, by what they say."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from scheduler import framework as fw
from scheduler.api.objects import GroupAnnotations
from scheduler.framework.groups.pod_groups import NO_POD_GROUPS, PodGroup
from scheduler.groups.reservations.run_times import EVICTED_SECONDS, FAR, NEVER, RunTimes
from scheduler.testing import a_pod
from tests.unit.cycle.fakes import newer
from tests.unit.groups.reservations.stage import Stage

NOW = 1_700_000_000.0

TRUSTING = RunTimes(NO_POD_GROUPS, trusts_promises=True)


def a_pod_that_runs(deadline: int | None, promise: str, started: float | None = 0.0, **fields: Any) -> fw.Pod:
    """`started`: seconds before now."""
    annotations = {"loadmaster.dev/expected-seconds": promise} if promise else None
    pod = newer(a_pod(node_name="n", annotations=annotations), active_deadline_seconds=deadline, **fields)
    start_time = None if started is None else datetime.fromtimestamp(NOW - started, UTC)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, start_time=start_time))


@pytest.mark.parametrize(
    ("deadline", "promise", "started", "left", "is_late"),
    [
        pytest.param(None, "", 10.0, NEVER, False, id="says nothing"),
        pytest.param(100, "", 10.0, 90.0, False, id="deadline"),
        pytest.param(None, "100", 10.0, 90.0, False, id="promise"),
        pytest.param(100, "50", 10.0, 40.0, False, id="the earlier counts"),
        pytest.param(None, "100", None, 100.0, False, id="not started"),
        pytest.param(None, "100", 101.0, NEVER, True, id="past its promise"),
        pytest.param(500, "100", 101.0, 399.0, True, id="past its promise, with a deadline"),
        pytest.param(100, "", 101.0, EVICTED_SECONDS, False, id="past its deadline"),
        pytest.param(int(FAR) + 20, "", 10.0, NEVER, False, id="far ahead"),
        pytest.param(0, "", 10.0, NEVER, False, id="no deadline"),
        pytest.param(-5, "", 10.0, NEVER, False, id="odd deadline"),
        pytest.param(None, "100", -50.0, 100.0, False, id="a clock that is ahead"),
    ],
)
def test_the_end_of_a_pod(
    deadline: int | None, promise: str, started: float | None, left: float, is_late: bool
) -> None:
    end = TRUSTING.end(a_pod_that_runs(deadline, promise, started), NOW)

    assert (end.seconds, end.is_late) == (left, is_late)


def test_promises_count_only_if_they_are_trusted() -> None:
    distrusting = RunTimes(NO_POD_GROUPS, trusts_promises=False)

    assert distrusting.longest(a_pod_that_runs(None, "100")) == NEVER
    assert distrusting.longest(a_pod_that_runs(200, "100")) == 200
    assert TRUSTING.longest(a_pod_that_runs(200, "100")) == 100


def test_a_pod_that_is_being_deleted_is_gone_after_its_grace_period() -> None:
    pod = a_pod_that_runs(None, "", deletion_timestamp="2023-11-14T22:13:20Z")

    assert TRUSTING.end(pod, NOW).seconds == EVICTED_SECONDS


def test_the_promise_of_a_podgroup_is_that_of_its_pods() -> None:
    stage = Stage()
    stage.create(annotations=GroupAnnotations(expected_seconds="300"))
    (pod,) = stage.pods(1)
    group = stage.engine.group_parts.groups.of(pod)

    assert isinstance(group, PodGroup)
    assert RunTimes(stage.engine.group_parts.groups, trusts_promises=True).longest(pod) == 300
