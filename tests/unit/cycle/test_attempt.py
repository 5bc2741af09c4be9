"""One attempt of one pod, to whatever end it comes."""

from typing import Any

import pytest

from scheduler.framework.errors import BindRejected
from scheduler.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from scheduler.framework.status import unresolvable, unschedulable
from scheduler.testing import a_node, a_pod
from tests.fakes import Event, Forgotten, Unschedulable, fail, plugin, sample, settle
from tests.unit.cycle.harness import Reserving, Scheduler, fail_later, failed


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
    scheduler.check()


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
    scheduler.check()


BROKEN: dict[str, Plugin] = {
    "PreFilter": plugin(PreFilterPlugin, "Bad", pre_filter=fail),
    "Filter": plugin(FilterPlugin, "Bad", filter=fail),
    "PreScore": plugin(PreScorePlugin, "Bad", pre_score=fail),
    "Score": plugin(ScorePlugin, "Bad", score=fail),
    "Reserve": plugin(ReservePlugin, "Bad", reserve=fail),
    "Permit": plugin(PermitPlugin, "Bad", permit=fail),
    "Permit, no status": plugin(PermitPlugin, "Bad", permit=lambda *_: 7),
    "PreBindPreFlight": plugin(PreBindPlugin, "Bad", pre_bind_pre_flight=fail),
    "PreBind": plugin(PreBindPlugin, "Bad", pre_bind=fail_later),
    "Bind": plugin(BindPlugin, "Bad", bind=fail_later),
}


@pytest.mark.parametrize("bad", [pytest.param(each, id=point) for point, each in BROKEN.items()])
async def test_a_plugin_that_fails_costs_its_pod_one_attempt_and_no_other_pod(bad: Plugin) -> None:
    reserving, score = Reserving(), plugin(ScorePlugin, "Score", score=lambda *_: 0)
    scheduler, pod = Scheduler(reserving, bad, score, nodes=("a", "b")), a_pod()
    await scheduler.schedule(pod)

    assert scheduler.where(pod) == "backoff"
    assert scheduler.cache.get(pod.uid) is None
    assert reserving.held == []
    assert scheduler.world.bound == {}
    assert scheduler.attempts("error") == 1
    assert [(each.pod, each.reason) for each in scheduler.world.written(Unschedulable)] == [
        ("default/pod", "SchedulerError")
    ]
    assert scheduler.loop.bindings == 0
    scheduler.check()


async def test_a_failure_names_the_plugin_to_the_pods_owner() -> None:
    scheduler = Scheduler(BROKEN["Reserve"])
    await scheduler.schedule(a_pod())

    assert scheduler.world.events == [failed('running Reserve plugin "Bad": ValueError: broken')]


async def test_a_post_filter_that_fails_leaves_the_pod_unschedulable() -> None:
    bad = plugin(PostFilterPlugin, "Bad", post_filter=fail)
    scheduler, pod = Scheduler(bad), a_pod()
    scheduler.cache.confirm(a_pod("there", node_name="a"))
    await scheduler.schedule(pod)

    assert scheduler.where(pod) == "unschedulable"
    assert scheduler.world.events[-1].note == (
        '0/1 nodes are available: 1 taken. running PostFilter plugin "Bad": ValueError: broken'
    )


async def test_a_plugin_that_fails_after_binding_changes_nothing() -> None:
    scheduler, pod = Scheduler(plugin(PostBindPlugin, "Bad", post_bind=fail_later)), a_pod()
    await scheduler.schedule(pod)

    assert scheduler.where(pod) == "assumed"
    assert scheduler.attempts("scheduled") == 1


async def test_a_plugin_that_fails_to_unreserve_keeps_nothing_from_being_undone() -> None:
    reserving = Reserving()
    bad = plugin(ReservePlugin, "Bad", unreserve=fail)
    scheduler, pod = Scheduler(reserving, bad), a_pod()
    scheduler.world.refusal = BindRejected("no")
    await scheduler.schedule(pod)

    assert (reserving.held, scheduler.where(pod)) == ([], "backoff")


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
    scheduler.check()


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
    scheduler.check()
