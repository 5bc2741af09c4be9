"""Tasks that their starter awaits."""

import asyncio

import pytest

from scheduler.framework.awaited import first_of, together
from tests.fakes import settle


async def give(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def fail() -> int:
    raise LookupError("a bug")


class Waiting:
    ended = False

    async def __call__(self) -> int:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            self.ended = True
        return 0


async def test_works_are_done_together_and_answers_come_in_order() -> None:
    assert await together(give(1), give(2), give(3)) == [1, 2, 3]


async def test_the_first_failure_ends_the_others_and_is_raised() -> None:
    waiting = Waiting()
    with pytest.raises(LookupError, match="a bug"):
        await together(waiting(), fail())

    assert waiting.ended


async def test_a_cancelled_caller_takes_its_works_with_it() -> None:
    waiting = Waiting()
    caller = asyncio.ensure_future(together(waiting(), waiting()))
    await settle()
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)

    assert (caller.cancelled(), waiting.ended) == (True, True)


async def test_a_caller_that_is_cancelled_while_a_work_fails_is_cancelled() -> None:
    waiting = Waiting()
    caller = asyncio.ensure_future(together(waiting(), fail()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)

    assert (caller.cancelled(), waiting.ended) == (True, True)


async def test_the_first_to_end_ends_the_others() -> None:
    waiting = Waiting()
    await first_of(waiting(), give(1))

    assert waiting.ended


async def test_the_first_to_fail_ends_the_others_and_is_raised() -> None:
    waiting = Waiting()
    with pytest.raises(LookupError, match="a bug"):
        await first_of(waiting(), fail(), fail())

    assert waiting.ended
