import asyncio
import itertools
import time

import pytest

from scheduler.process import virtual_time
from scheduler.process.virtual_time import NeverAtRest, VirtualTimeLoop, run_virtually


def virtual_loop() -> VirtualTimeLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    return loop


def test_hours_take_no_time() -> None:
    async def sleep() -> float:
        await asyncio.sleep(3 * 3600)
        return virtual_loop().time()

    began = time.monotonic()

    assert run_virtually(sleep()) == pytest.approx(virtual_time.BEGIN + 3 * 3600)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("seconds", [5.0, None])
def test_a_loop_at_rest_says_when_the_next_timer_is_due_and_no_time_has_passed(seconds: float | None) -> None:
    async def rest() -> tuple[float | None, float, list[int]]:
        steps: list[int] = []

        async def work() -> None:
            for step in range(20):
                await asyncio.sleep(0)
                steps.append(step)

        task = asyncio.create_task(work())
        if seconds is not None:
            virtual_loop().call_later(seconds, steps.clear)
        due = await virtual_loop().at_rest()
        assert task.done()
        return due, virtual_loop().time(), steps

    assert run_virtually(rest()) == (seconds, virtual_time.BEGIN, list(range(20)))


def test_a_loop_that_never_rests_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def rest() -> None:
        async def spin() -> None:
            for _ in itertools.count():
                await asyncio.sleep(0)

        task = asyncio.create_task(spin())
        try:
            await virtual_loop().at_rest()
        finally:
            task.cancel()

    monkeypatch.setattr(virtual_time, "BUSY_SECONDS", 0.05)

    with pytest.raises(NeverAtRest):
        run_virtually(rest())


def test_a_thread_is_waited_for_before_time_passes() -> None:
    async def rest() -> tuple[bool, float]:
        task = asyncio.create_task(asyncio.to_thread(time.sleep, 0.05))
        virtual_loop().call_later(1, task.cancel)
        await virtual_loop().at_rest()
        return task.done() and not task.cancelled(), virtual_loop().time()

    assert run_virtually(rest()) == (True, virtual_time.BEGIN)


def test_a_thread_that_does_not_end_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def rest() -> bool:
        task = asyncio.create_task(asyncio.to_thread(time.sleep, 0.5))
        await virtual_loop().at_rest()
        await virtual_loop().at_rest()
        return task.done()

    monkeypatch.setattr(virtual_time, "THREAD_SECONDS", 0.05)

    assert not run_virtually(rest())
