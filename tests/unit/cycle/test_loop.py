"""The loop itself: its turns, its limits and its end."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.api.pods.pod import Pod
from scheduler.cycle import loop as loop_module
from scheduler.framework.errors import BindRejected
from scheduler.testing import a_pod
from tests.fakes import sample, settle
from tests.unit.cycle.harness import PROFILE, Scheduler, holding


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await settle()


async def test_the_loop_schedules_what_comes_until_it_is_closed() -> None:
    scheduler = Scheduler(nodes=[f"n{number}" for number in range(30)])
    task = asyncio.create_task(scheduler.loop.run())
    await settle()
    for number in range(30):
        scheduler.handlers.pod_changed(a_pod(f"p{number}"))
    await until(lambda: len(scheduler.world.bound) == 30)
    scheduler.queue.close()
    await task

    assert len(set(scheduler.world.bound.values())) == 30


async def test_a_full_queue_does_not_starve_other_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SLICE_SECONDS", 0.0)
    scheduler = Scheduler(nodes=[f"n{number}" for number in range(50)])
    for number in range(50):
        scheduler.handlers.pod_changed(a_pod(f"p{number}"))
    task = asyncio.create_task(scheduler.loop.run())
    await settle()

    assert 0 < scheduler.queue.pending_counts()["active"] < 50
    scheduler.queue.close()
    await task


async def test_the_loop_waits_while_too_many_bindings_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "MAX_BINDINGS", 3)
    scheduler = Scheduler(nodes=[f"n{number}" for number in range(10)])
    scheduler.world.hangs = True
    for number in range(10):
        scheduler.handlers.pod_changed(a_pod(f"p{number}"))
    task = asyncio.create_task(scheduler.loop.run())
    await settle()
    assert scheduler.loop.bindings == 3
    scheduler.world.answer_bindings()
    await until(lambda: len(scheduler.world.bound) == 10)
    scheduler.queue.close()
    await task


async def test_pods_on_hold_do_not_keep_the_loop_from_those_they_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "MAX_BINDINGS", 3)
    scheduler = Scheduler(holding(), nodes=[f"n{number}" for number in range(10)])
    for number in range(10):
        scheduler.handlers.pod_changed(a_pod(f"p{number}"))
    task = asyncio.create_task(scheduler.loop.run())
    await settle()
    assert len(list(scheduler.waiting)) == 10
    for waiting in scheduler.waiting:
        waiting.allow("Hold")
    await until(lambda: len(scheduler.world.bound) == 10)
    scheduler.queue.close()
    await task


async def test_finish_waits_for_bindings_under_way_but_not_for_ever() -> None:
    scheduler = Scheduler(nodes=("a", "b"))
    assert await scheduler.loop.finish(0) == 0
    scheduler.world.hangs = True
    await scheduler.schedule(a_pod("one"))
    asyncio.get_running_loop().call_soon(scheduler.world.answer_bindings)
    assert await scheduler.loop.finish(1) == 0

    scheduler.world.hangs = True
    await scheduler.schedule(a_pod("two"))
    assert await scheduler.loop.finish(0) == 1
    assert list(scheduler.world.bound) == ["default/one"]
    assert scheduler.loop.bindings == 0


async def test_a_pod_tried_again_at_once_is_known_to_be_binding() -> None:
    scheduler, pod = Scheduler(), a_pod()
    scheduler.world.refusal = BindRejected("no")
    scheduler.handlers.pod_changed(pod)
    task = asyncio.create_task(scheduler.loop.run())
    first = True
    gate = asyncio.Event()
    original = scheduler.world.bind

    async def bind(tried: Pod, node: str, check: Callable[[], None]) -> str:
        nonlocal first
        if first:
            first = False
            scheduler.queue.activate([tried.uid])
            asyncio.get_running_loop().call_soon(lambda: scheduler.queue.activate([tried.uid]))
            await original(tried, node, check)
        await gate.wait()
        return ""

    scheduler.world.bind = bind  # type: ignore[method-assign,assignment]
    await settle()
    scheduler.queue.activate([pod.uid])
    await settle()

    assert scheduler.where(pod) == "assumed"
    assert scheduler.loop.is_binding(pod.uid)
    gate.set()
    await settle()
    assert not scheduler.loop.is_binding(pod.uid)
    scheduler.queue.close()
    await task


async def test_metrics_are_those_of_the_profile() -> None:
    scheduler = Scheduler()
    await scheduler.schedule(a_pod())

    assert sample(scheduler.metrics, "scheduler_scheduling_algorithm_duration_seconds_count") == 1
    labels = {"result": "scheduled", "profile": PROFILE}
    assert sample(scheduler.metrics, "scheduler_scheduling_attempt_duration_seconds_count", **labels) == 1
    assert sample(scheduler.metrics, "scheduler_pod_scheduling_attempts_count") == 1


# --- what fails where nothing should ---


def broken_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, but the first time it fails."""
    failures = iter([RuntimeError("a bug")])

    def broken(*args: Any, **kwargs: Any) -> Any:
        for failure in failures:
            raise failure
        return call(*args, **kwargs)

    return broken


async def test_an_attempt_that_fails_unexpectedly_costs_that_pod_a_retry_and_not_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scheduler, hapless, other = Scheduler(nodes=("a", "b")), a_pod("hapless"), a_pod("other")
    scheduler.handlers.pod_changed(hapless)
    scheduler.handlers.pod_changed(other)
    monkeypatch.setattr(scheduler.nominator, "delete", broken_once(scheduler.nominator.delete))  # once it is assumed
    task = asyncio.create_task(scheduler.loop.run())
    await settle()

    assert scheduler.where(hapless) == "backoff"
    assert scheduler.cache.get(hapless.uid) is None
    assert list(scheduler.world.bound) == [other.uid]
    assert sample(scheduler.metrics, "loadmaster_task_failures_total", operation="scheduling") == 1
    scheduler.check()
    scheduler.queue.close()
    await task


@pytest.mark.parametrize("step", ["unreserve", "move", "event", "status"])
async def test_a_refused_binding_that_cannot_be_reported_still_brings_the_pod_back(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler, pod = Scheduler(), a_pod()
    scheduler.world.refusal = BindRejected("no")
    holder, name = {
        "unreserve": (scheduler.cache, "forget"),
        "move": (scheduler.queue, "move_all"),
        "event": (scheduler.world, "event"),
        "status": (scheduler.world, "unschedulable"),
    }[step]
    monkeypatch.setattr(holder, name, broken_once(getattr(holder, name)))
    await scheduler.schedule(pod)

    assert scheduler.where(pod) == "backoff"
    assert scheduler.cache.get(pod.uid) is None
    assert scheduler.loop.bindings == 0
    assert sample(scheduler.metrics, "loadmaster_task_failures_total", operation="binding") == 1


async def test_a_bound_pod_stays_assumed_whatever_fails_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, pod = Scheduler(), a_pod()
    monkeypatch.setattr(scheduler.world, "event", broken_once(scheduler.world.event))
    await scheduler.schedule(pod)

    assert scheduler.world.bound == {pod.uid: "a"}
    assert scheduler.where(pod) == "assumed"
    assert sample(scheduler.metrics, "loadmaster_task_failures_total", operation="binding") == 1


@pytest.mark.parametrize("began", [False, True])
@pytest.mark.parametrize("held", [False, True])
async def test_a_binding_that_somebody_else_cancels_brings_the_pod_back(*, held: bool, began: bool) -> None:
    scheduler, pod = Scheduler(*([holding()] if held else [])), a_pod()
    scheduler.world.hangs = True
    before = asyncio.all_tasks()
    scheduler.handlers.pod_changed(pod)
    scheduler.loop.schedule_one(scheduler.pop())
    if began:
        await settle()
    for task in asyncio.all_tasks() - before:
        task.cancel()
    await settle()

    assert scheduler.where(pod) == "backoff"
    assert scheduler.cache.get(pod.uid) is None
    assert (scheduler.loop.bindings, list(scheduler.waiting)) == (0, [])


async def test_no_decision_is_made_while_the_loop_is_held() -> None:
    scheduler = Scheduler(nodes=["a", "b"])
    task = asyncio.create_task(scheduler.loop.run())
    await settle()
    with scheduler.engine.pauses.hold():
        with scheduler.engine.pauses.hold():
            scheduler.handlers.pod_changed(a_pod("first"))
            await settle()
        scheduler.handlers.pod_changed(a_pod("second"))
        await settle()
        while_held = dict(scheduler.world.bound)
    await until(lambda: len(scheduler.world.bound) == 2)
    scheduler.queue.close()
    await task

    assert while_held == {}


async def test_a_what_if_that_failed_half_way_is_put_right_before_the_next_decision() -> None:
    scheduler = Scheduler(nodes=["a"])
    scheduler.handlers.pod_changed(a_pod("runs", node_name="a", requests={"cpu": "1"}))
    table = scheduler.cache.table
    row = table.row_of("a")
    assert row is not None
    table._amounts.requested["cpu"].values[row] = 7
    table.is_broken = True

    await scheduler.schedule(a_pod("waits", requests={"cpu": "1"}))

    assert sample(scheduler.metrics, "loadmaster_table_rebuilds_total") == 1
