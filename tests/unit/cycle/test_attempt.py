"""One attempt of one pod, to whatever end it comes."""

from typing import Any

import pytest

from scheduler.framework.errors import BindRejected
from scheduler.framework.plugin import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from scheduler.framework.status import unresolvable, unschedulable
from scheduler.testing import a_node, a_pod
from tests.fakes import Event, Forgotten, Unschedulable, fail, plugin, sample, settle
from tests.unit.cycle.fakes import PROFILE
from tests.unit.cycle.harness import Reserving, Scheduler, failed


async def test_a_pod_that_fits_is_assumed_bound_and_announced() -> None:
    scheduler, pod = Scheduler(), a_pod()
    await scheduler.schedule(pod)

    assert scheduler.world.bound == {pod.uid: "a"}
    assert scheduler.where(pod) == "assumed"
    assert scheduler.world.events == [
        Event("default/pod", "Normal", "Scheduled", "Binding", "Successfully assigned default/pod to a")
    ]
    assert scheduler.world.writes == [Forgotten("default/pod")], "no nomination had to be written"
    assert scheduler.attempts("scheduled") == 1
    assert sample(scheduler.metrics, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 1

    scheduler.handlers.pod_changed(pod.bound_to("a"))
    assert scheduler.where(pod) == "bound"
    assert scheduler.loop.bindings == 0


async def test_a_pod_that_fits_nowhere_waits_and_the_reason_is_reported() -> None:
    scheduler, pod = Scheduler(nodes=()), a_pod()
    scheduler.handlers.node_changed(a_node("a"))
    scheduler.cache.confirm(a_pod("there", node_name="a"))
    await scheduler.schedule(pod)

    message = "0/1 nodes are available: 1 taken."
    assert scheduler.where(pod) == "unschedulable"
    assert scheduler.world.events == [failed(message)]
    assert scheduler.world.writes == [Unschedulable("default/pod", "Unschedulable", message, "")]
    assert scheduler.attempts("unschedulable") == 1
    labels = {"result": "unschedulable", "profile": PROFILE}
    assert sample(scheduler.metrics, "scheduler_scheduling_attempt_duration_seconds_count", **labels) == 1


async def test_a_post_filter_that_fails_leaves_the_pod_unschedulable() -> None:
    bad = plugin(PostFilterPlugin, "Bad", post_filter=fail)
    scheduler, pod = Scheduler(bad), a_pod()
    scheduler.cache.confirm(a_pod("there", node_name="a"))
    await scheduler.schedule(pod)

    assert scheduler.where(pod) == "unschedulable"
    assert scheduler.world.events[-1].note == (
        '0/1 nodes are available: 1 taken. running PostFilter plugin "Bad": ValueError: broken'
    )


async def deny_later(*_: Any) -> Any:
    return unschedulable("denied")


@pytest.mark.parametrize(
    ("denying", "place", "message"),
    [
        pytest.param(
            plugin(ReservePlugin, "No", reserve=lambda *_: unschedulable("denied")),
            "unschedulable",
            "0/1 nodes are available: 1 denied.",
            id="Reserve",
        ),
        pytest.param(
            plugin(PermitPlugin, "No", permit=lambda *_: unresolvable("denied")),
            "unschedulable",
            "0/1 nodes are available: 1 denied.",
            id="Permit",
        ),
        pytest.param(plugin(PreBindPlugin, "No", pre_bind=deny_later), "backoff", "denied", id="PreBind"),
        pytest.param(plugin(BindPlugin, "No", bind=deny_later), "backoff", "denied", id="Bind"),
    ],
)
async def test_a_refusal_after_the_decision_takes_everything_back(denying: Plugin, place: str, message: str) -> None:
    reserving = Reserving()
    scheduler, pod = Scheduler(reserving, denying), a_pod()
    await scheduler.schedule(pod)

    assert scheduler.where(pod) == place
    assert scheduler.world.events == [failed(message)]
    assert Unschedulable("default/pod", "Unschedulable", message, "") in scheduler.world.writes
    assert scheduler.cache.get(pod.uid) is None
    assert reserving.held == []


async def test_a_refused_binding_is_undone_and_its_room_wakes_others() -> None:
    scheduler, pod, other = Scheduler(), a_pod(), a_pod("other")
    scheduler.world.hangs = True
    await scheduler.schedule(pod)
    await scheduler.schedule(other)
    assert scheduler.where(other) == "unschedulable"
    scheduler.world.answer_bindings(BindRejected("no such pod"))
    await settle()

    assert scheduler.where(pod) == "backoff"
    assert scheduler.where(other) == "backoff"
    assert scheduler.attempts("error") == 1
