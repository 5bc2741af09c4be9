"""What happens to a pod between its decision and its binding."""

from typing import Any

import pytest

from scheduler.api.objects import PodMeta
from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import BindRejected
from scheduler.framework.plugin import (
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
)
from scheduler.testing import a_pod
from tests.fakes import Forgotten, Nomination, Unschedulable, fail, nominated_node, plugin, sample, settle
from tests.unit.cycle.harness import Reserving, Scheduler, failed, holding


def deleting(pod: Pod) -> Pod:
    meta = PodMeta(
        name=pod.name, namespace=pod.namespace, uid=pod.uid, resource_version="9", deletion_timestamp="2026-01-01"
    )
    return Pod(metadata=meta, spec=pod.spec, status=pod.status)


async def test_a_pod_on_hold_is_bound_once_it_is_allowed() -> None:
    scheduler, pod = Scheduler(holding()), a_pod()
    await scheduler.schedule(pod)

    assert scheduler.world.bound == {}
    assert scheduler.world.writes == [Nomination("default/pod", "a")]
    waiting = scheduler.waiting.get(pod.uid)
    assert waiting is not None
    assert waiting.pending_plugins == ("Hold",)

    waiting.allow("Hold")
    await settle()
    assert scheduler.world.bound == {pod.uid: "a"}
    assert scheduler.world.writes[1] == Forgotten("default/pod"), "a nomination that is not sent yet is dropped"
    assert list(scheduler.waiting) == []
    assert sample(scheduler.metrics, "scheduler_permit_wait_duration_seconds_count", result="Success") == 1


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        pytest.param(600.0, "not today", id="rejected"),
        pytest.param(0.0, "rejected due to timeout after waiting 0s at plugin Hold", id="timed out"),
    ],
)
async def test_a_pod_on_hold_that_is_not_allowed_goes_back(seconds: float, message: str) -> None:
    reserving = Reserving()
    scheduler, pod = Scheduler(reserving, holding(seconds)), a_pod()
    await scheduler.schedule(pod)
    if waiting := scheduler.waiting.get(pod.uid):
        waiting.reject("Hold", message)
    await settle()

    assert scheduler.where(pod) == "unschedulable"
    assert scheduler.world.events == [failed(f"0/1 nodes are available: 1 {message}.")]
    assert (reserving.held, list(scheduler.waiting)) == ([], [])
    assert sample(scheduler.metrics, "scheduler_permit_wait_duration_seconds_count", result="Unschedulable") == 1


async def test_a_pod_that_fails_while_on_hold_holds_no_longer() -> None:
    scheduler, pod = Scheduler(holding(), plugin(PreBindPlugin, "Bad", pre_bind_pre_flight=fail)), a_pod()
    await scheduler.schedule(pod)

    assert list(scheduler.waiting) == []
    assert scheduler.where(pod) == "backoff"


async def test_plugins_with_work_before_binding_have_the_node_nominated() -> None:
    async def nothing(*_: Any) -> None:
        """Works."""

    scheduler = Scheduler(plugin(PreBindPlugin, "Works", pre_bind=nothing))
    await scheduler.schedule(a_pod())

    assert scheduler.world.writes == [Nomination("default/pod", "a"), Forgotten("default/pod")]


async def test_a_pod_deleted_during_its_binding_frees_its_room_at_once_and_never_comes_back() -> None:
    reserving = Reserving()
    scheduler, pod, other = Scheduler(reserving), a_pod(), a_pod("other")
    scheduler.world.hangs = True
    await scheduler.schedule(pod)
    await scheduler.schedule(other)
    scheduler.handlers.pod_deleted(pod)

    assert scheduler.where(pod) == ""
    assert scheduler.where(other) == "backoff"
    assert reserving.held == ["pod"], "until its binding ends"

    scheduler.world.answer_bindings(BindRejected("not found"))
    await settle()
    assert scheduler.where(pod) == ""
    assert reserving.held == []


@pytest.mark.parametrize("gone", [True, False], ids=["deleted", "deletion requested"])
async def test_a_pod_deleted_while_on_hold_is_let_go(gone: bool) -> None:
    reserving = Reserving()
    scheduler, pod, other = Scheduler(reserving, holding()), a_pod(), a_pod("other")
    await scheduler.schedule(pod)
    await scheduler.schedule(other)
    if gone:
        scheduler.handlers.pod_deleted(pod)
    else:
        scheduler.handlers.pod_changed(deleting(pod))
    await settle()

    assert scheduler.cache.get(pod.uid) is None
    assert scheduler.where(other) == "backoff"
    assert reserving.held == []
    assert scheduler.where(pod) == ("" if gone else "backoff")


async def test_a_pod_that_another_scheduler_bound_meanwhile_is_counted_where_it_is() -> None:
    scheduler, pod = Scheduler(nodes=("a", "b")), a_pod()
    scheduler.world.hangs = True
    await scheduler.schedule(pod)
    assumed = scheduler.cache.get(pod.uid)
    assert assumed is not None
    other = "b" if assumed.node_name == "a" else "a"
    scheduler.handlers.pod_changed(pod.bound_to(other))
    scheduler.world.answer_bindings(BindRejected("already bound"))
    await settle()

    assert scheduler.where(pod) == "bound"
    assert [each.name for each in scheduler.cache.table.pods_on(other)] == ["pod"]
    assert scheduler.world.events == []


async def test_an_assumption_that_was_confirmed_before_the_answer_came_stays() -> None:
    scheduler, pod = Scheduler(ttl=30.0), a_pod()
    scheduler.world.hangs = True
    await scheduler.schedule(pod)
    scheduler.handlers.pod_changed(pod.bound_to("a"))
    scheduler.world.answer_bindings()
    await settle()
    scheduler.clock.advance(60)

    assert scheduler.cache.expire() == []
    assert scheduler.where(pod) == "bound"


async def test_a_pod_that_is_being_deleted_is_skipped_with_an_event() -> None:
    scheduler, pod = Scheduler(), deleting(a_pod())
    await scheduler.schedule(pod)

    assert scheduler.world.events == [failed("skip schedule deleting pod: default/pod")]
    assert (scheduler.world.bound, scheduler.where(pod)) == ({}, "")


async def test_an_assumed_pod_that_is_queued_again_is_skipped() -> None:
    scheduler, pod = Scheduler(nodes=("a", "b")), a_pod()
    await scheduler.schedule(pod)
    scheduler.queue.add(pod)
    await scheduler.schedule()

    assert len(scheduler.world.bound) == 1
    assert scheduler.world.events[1:] == []


async def test_a_pod_of_an_unknown_profile_is_let_go() -> None:
    scheduler, pod = Scheduler(), a_pod(scheduler_name="nobody")
    scheduler.queue.add(pod)
    await scheduler.schedule()

    assert (scheduler.where(pod), scheduler.world.events) == ("", [])


async def test_a_nominated_pod_that_is_placed_needs_its_promise_no_more() -> None:
    scheduler, pod = Scheduler(), a_pod()
    scheduler.handlers.pod_changed(pod)
    scheduler.nominator.add(pod, "a")
    await scheduler.schedule()

    assert nominated_node(scheduler.nominator, pod.uid) == ""


async def test_a_nomination_is_remembered_and_written() -> None:
    post = plugin(PostFilterPlugin, "Post", post_filter=lambda *_: (PostFilterResult("a"), None))
    scheduler, pod = Scheduler(post), a_pod()
    scheduler.cache.confirm(a_pod("there", node_name="a"))
    await scheduler.schedule(pod)

    assert nominated_node(scheduler.nominator, pod.uid) == "a"
    assert scheduler.world.written(Unschedulable)[-1].nominated == "a"
