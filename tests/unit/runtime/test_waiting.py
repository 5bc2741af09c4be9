import asyncio

import pytest

from scheduler.api.wording.text import MAX_REASON
from scheduler.framework.plugin import PermitWait
from scheduler.framework.status import Status, unschedulable
from scheduler.runtime.waiting import WaitingPod, WaitingPods
from scheduler.testing import a_pod

run = asyncio.run  # not that of tests.fakes: its limit on time is a timer, and here timers are counted

LONG = 1000.0


async def outcome_of(waiting: WaitingPod) -> Status | None:
    """The end must be decided already, or nearly: a test does not wait."""
    return await asyncio.wait_for(waiting.outcome(), 5)


def timers_left() -> int:
    """How many calls the running event loop still has to make at some time."""
    scheduled: list[asyncio.TimerHandle] = getattr(asyncio.get_running_loop(), "_scheduled")  # noqa: B009
    return sum(not timer.cancelled() for timer in scheduled)


def test_a_pod_is_free_when_every_plugin_allowed_it() -> None:
    async def act() -> tuple[tuple[str, ...], Status | None, int]:
        waiting = WaitingPod(a_pod(), {"A": PermitWait(LONG), "B": PermitWait(LONG)})
        waiting.allow("A")
        pending = waiting.pending_plugins
        waiting.allow("B")
        timers = timers_left()
        return pending, await outcome_of(waiting), timers

    assert run(act()) == (("B",), None, 0)


def test_a_plugin_that_does_not_hold_the_pod_cannot_free_it() -> None:
    async def act() -> tuple[str, ...]:
        waiting = WaitingPod(a_pod(), {"A": PermitWait(LONG)})
        waiting.allow("B")
        pending = waiting.pending_plugins
        waiting.allow("A")
        await outcome_of(waiting)
        return pending

    assert run(act()) == ("A",)


def test_one_plugin_can_reject_the_pod_for_all() -> None:
    async def act() -> tuple[bool, Status | None, int]:
        waiting = WaitingPod(a_pod(), {"A": PermitWait(LONG), "B": PermitWait(LONG)})
        rejected = waiting.reject("B", "no quota")
        timers = timers_left()
        return rejected, await outcome_of(waiting), timers

    assert run(act()) == (True, unschedulable("no quota").by("B"), 0)


def test_what_a_plugin_says_of_a_rejection_is_cut() -> None:
    async def act() -> Status | None:
        waiting = WaitingPod(a_pod(), {"A": PermitWait(LONG)})
        waiting.reject("A", "\ud800" + "x" * 10_000_000)
        return await outcome_of(waiting)

    outcome = run(act())

    assert outcome is not None
    assert outcome.message == "\ufffd" + "x" * (MAX_REASON - 1) + "…"


def test_the_first_outcome_stands() -> None:
    async def act() -> tuple[bool, Status | None, bool, Status | None]:
        rejected, allowed = WaitingPod(a_pod(), {"A": PermitWait(LONG)}), WaitingPod(a_pod(), {"A": PermitWait(LONG)})
        rejected.reject("A", "first")
        again = rejected.reject("A", "second")
        rejected.allow("A")
        allowed.allow("A")
        late = allowed.reject("A", "too late")
        return again, await outcome_of(rejected), late, await outcome_of(allowed)

    assert run(act()) == (False, unschedulable("first").by("A"), False, None)


@pytest.mark.parametrize(("seconds", "spelled"), [(0.002, "2ms"), (0.0, "0s"), (-1.0, "-1s")])
def test_a_timeout_rejects_the_pod_and_says_how_long_it_took(seconds: float, spelled: str) -> None:
    async def act() -> Status | None:
        return await outcome_of(WaitingPod(a_pod(), {"A": PermitWait(LONG), "B": PermitWait(seconds)}))

    message = f"rejected due to timeout after waiting {spelled} at plugin B"
    assert run(act()) == unschedulable(message).by("B")


def test_no_plugin_waits_longer_than_fifteen_minutes() -> None:
    async def act() -> list[float]:
        loop = asyncio.get_running_loop()
        waiting = WaitingPod(a_pod(), {"A": PermitWait(3600.0)})
        scheduled: list[asyncio.TimerHandle] = getattr(loop, "_scheduled")  # noqa: B009
        due = [timer.when() - loop.time() for timer in scheduled]
        waiting.allow("A")
        return due

    (seconds,) = run(act())

    assert 890 < seconds <= 900


def test_pods_on_hold_are_found_by_uid_until_they_are_removed() -> None:
    async def act() -> None:
        pods = WaitingPods()
        waiting = pods.add(a_pod(uid="u"), {"A": PermitWait(LONG)})

        assert pods.get("u") is waiting
        assert list(pods) == [waiting]

        pods.remove("u")
        pods.remove("u")

        assert pods.get("u") is None
        assert list(pods) == []

    run(act())


def test_a_pod_that_is_removed_from_the_cluster_is_rejected() -> None:
    async def act() -> tuple[bool, Status | None, bool]:
        pods = WaitingPods()
        waiting = pods.add(a_pod(uid="u"), {"A": PermitWait(LONG)})
        rejected = pods.reject("u")
        return rejected, await outcome_of(waiting), pods.reject("u")

    assert run(act()) == (True, unschedulable("removed"), False)


def test_a_pod_that_is_not_on_hold_cannot_be_rejected() -> None:
    assert not WaitingPods().reject("u")


def test_pods_may_be_removed_while_one_looks_at_all_of_them() -> None:
    async def act() -> int:
        pods = WaitingPods()
        for uid in ("u", "v"):
            pods.add(a_pod(uid=uid), {"A": PermitWait(LONG)})
        for waiting in pods:
            waiting.reject("A", "over")
            pods.remove(waiting.pod.uid)
        return len(list(pods))

    assert run(act()) == 0


def test_many_pods_that_are_let_go_at_once_go_on_a_few_in_each_turn_in_their_order() -> None:
    async def act() -> tuple[list[str], list[int]]:
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
        return went_on, turns

    went_on, turns = run(act())

    assert went_on == [f"p{number}" for number in range(120)]
    assert max(turns) <= 50


def test_a_pod_that_was_let_go_cannot_be_refused_before_it_goes_on() -> None:
    async def act() -> tuple[bool, Status | None]:
        pods = WaitingPods()
        waiting = [pods.add(a_pod(f"p{number}"), {"A": PermitWait(LONG)}) for number in range(120)]
        for pod in waiting:
            pod.allow("A")
        refused = pods.reject(waiting[-1].pod.uid)
        return refused, await outcome_of(waiting[-1])

    assert run(act()) == (False, None)
