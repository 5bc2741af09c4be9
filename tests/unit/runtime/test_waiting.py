import asyncio

import pytest

from scheduler.api.wording.text import MAX_REASON
from scheduler.framework.plugin import PermitWait
from scheduler.framework.status import Status, unschedulable
from scheduler.runtime.waiting import WaitingPod, WaitingPods
from scheduler.testing import a_pod

LONG = 1000.0


def held(*plugins: str) -> WaitingPod:
    return WaitingPod(a_pod(), {plugin: PermitWait(LONG) for plugin in plugins})


async def outcome_of(waiting: WaitingPod) -> Status | None:
    """The end must be decided already, or nearly: a test does not wait."""
    return await asyncio.wait_for(waiting.outcome(), 5)


def timers() -> set[asyncio.TimerHandle]:
    """The calls that the running event loop still has to make at some time."""
    scheduled: list[asyncio.TimerHandle] = getattr(asyncio.get_running_loop(), "_scheduled")  # noqa: B009
    return {timer for timer in scheduled if not timer.cancelled()}


async def test_a_pod_is_free_when_every_plugin_allowed_it() -> None:
    before, waiting = timers(), held("A", "B")

    waiting.allow("A")
    assert waiting.pending_plugins == ("B",)
    waiting.allow("B")

    assert timers() == before
    assert await outcome_of(waiting) is None


async def test_a_plugin_that_does_not_hold_the_pod_cannot_free_it() -> None:
    waiting = held("A")

    waiting.allow("B")

    assert waiting.pending_plugins == ("A",)
    waiting.allow("A")
    await outcome_of(waiting)


async def test_one_plugin_can_reject_the_pod_for_all() -> None:
    before, waiting = timers(), held("A", "B")

    assert waiting.reject("B", "no quota")

    assert timers() == before
    assert await outcome_of(waiting) == unschedulable("no quota").by("B")


async def test_what_a_plugin_says_of_a_rejection_is_cut() -> None:
    waiting = held("A")

    waiting.reject("A", "\ud800" + "x" * 10_000_000)

    outcome = await outcome_of(waiting)
    assert outcome is not None
    assert outcome.message == "\ufffd" + "x" * (MAX_REASON - 1) + "…"


async def test_the_first_outcome_stands() -> None:
    rejected, allowed = held("A"), held("A")

    rejected.reject("A", "first")
    assert not rejected.reject("A", "second")
    rejected.allow("A")
    allowed.allow("A")
    assert not allowed.reject("A", "too late")

    assert await outcome_of(rejected) == unschedulable("first").by("A")
    assert await outcome_of(allowed) is None


@pytest.mark.parametrize(("seconds", "spelled"), [(0.002, "2ms"), (0.0, "0s"), (-1.0, "-1s")])
async def test_a_timeout_rejects_the_pod_and_says_how_long_it_took(seconds: float, spelled: str) -> None:
    waiting = WaitingPod(a_pod(), {"A": PermitWait(LONG), "B": PermitWait(seconds)})

    message = f"rejected due to timeout after waiting {spelled} at plugin B"
    assert await outcome_of(waiting) == unschedulable(message).by("B")


async def test_no_plugin_waits_longer_than_fifteen_minutes() -> None:
    before, waiting = timers(), WaitingPod(a_pod(), {"A": PermitWait(3600.0)})

    (timer,) = timers() - before
    waiting.allow("A")

    assert 890 < timer.when() - asyncio.get_running_loop().time() <= 900


async def test_pods_on_hold_are_found_by_uid_until_they_are_removed() -> None:
    pods = WaitingPods()
    waiting = pods.add(a_pod(uid="u"), {"A": PermitWait(LONG)})

    assert pods.get("u") is waiting
    assert list(pods) == [waiting]

    pods.remove("u")
    pods.remove("u")

    assert pods.get("u") is None
    assert list(pods) == []


async def test_a_pod_that_is_removed_from_the_cluster_is_rejected() -> None:
    pods = WaitingPods()
    waiting = pods.add(a_pod(uid="u"), {"A": PermitWait(LONG)})

    assert pods.reject("u")

    assert await outcome_of(waiting) == unschedulable("removed")
    assert not pods.reject("u")


def test_a_pod_that_is_not_on_hold_cannot_be_rejected() -> None:
    assert not WaitingPods().reject("u")


async def test_pods_may_be_removed_while_one_looks_at_all_of_them() -> None:
    pods = WaitingPods()
    for uid in ("u", "v"):
        pods.add(a_pod(uid=uid), {"A": PermitWait(LONG)})

    for waiting in pods:
        waiting.reject("A", "over")
        pods.remove(waiting.pod.uid)

    assert list(pods) == []


async def test_many_pods_that_are_let_go_at_once_go_on_a_few_in_each_turn_in_their_order() -> None:
    pods, went_on, turns = WaitingPods(), list[str](), list[int]()

    async def wait(pod: WaitingPod) -> None:
        await pod.outcome()
        went_on.append(pod.pod.name)

    waiting = [pods.add(a_pod(f"p{number}"), {"A": PermitWait(LONG)}) for number in range(120)]
    tasks = [asyncio.create_task(wait(pod)) for pod in waiting]
    await asyncio.sleep(0)
    for pod in waiting:
        pod.allow("A")
    while not all(task.done() for task in tasks):
        before = len(went_on)
        await asyncio.sleep(0)
        turns.append(len(went_on) - before)

    assert went_on == [f"p{number}" for number in range(120)]
    assert max(turns) <= 50


async def test_a_pod_that_was_let_go_cannot_be_refused_before_it_goes_on() -> None:
    pods = WaitingPods()
    waiting = [pods.add(a_pod(f"p{number}"), {"A": PermitWait(LONG)}) for number in range(120)]
    for pod in waiting:
        pod.allow("A")

    assert not pods.reject(waiting[-1].pod.uid)
    assert await outcome_of(waiting[-1]) is None
