import asyncio

import pytest

from scheduler.framework.errors import SchedulerError
from scheduler.runtime.pre_binding import PodsInPreBind
from tests.fakes import settle


async def ends(answer: str) -> str:
    await asyncio.sleep(0)
    return answer


async def test_the_plugins_answer_is_handed_on() -> None:
    assert (await PodsInPreBind().run("uid", ends("done"))) == "done"


async def test_a_pod_that_is_not_there_cannot_be_called_off() -> None:
    pods = PodsInPreBind()
    await pods.run("uid", ends("done"))

    assert [pods.cancel("uid", "too late"), pods.cancel("other", "never there")] == [False, False]


async def test_calling_off_ends_the_work_with_the_first_reason() -> None:
    pods = PodsInPreBind()
    work = asyncio.ensure_future(pods.run("uid", asyncio.sleep(1000)))
    await settle()
    called = [pods.cancel("uid", "preempted"), pods.cancel("uid", "again")]
    with pytest.raises(SchedulerError, match=r"^preempted$"):
        await work

    assert called == [True, True]


async def test_work_that_does_not_stop_is_called_off_all_the_same() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            return "done"
        return "never"

    pods = PodsInPreBind()
    work = asyncio.ensure_future(pods.run("uid", stubborn()))
    await settle()
    pods.cancel("uid", "preempted")

    with pytest.raises(SchedulerError, match=r"^preempted$"):
        await work


async def test_the_end_of_the_program_is_not_taken_for_a_preemption() -> None:
    pods = PodsInPreBind()
    work = asyncio.ensure_future(pods.run("uid", asyncio.sleep(1000)))
    await settle()
    work.cancel()
    await asyncio.wait([work])

    assert work.cancelled()


async def test_what_the_plugins_raise_is_handed_on() -> None:
    async def broken() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await PodsInPreBind().run("uid", broken())
