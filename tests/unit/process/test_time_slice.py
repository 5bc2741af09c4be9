"""Work gives way to other tasks when its slice is over, not before."""

import asyncio

from scheduler.process.time_slice import TimeSlice


async def test_other_tasks_run_once_a_slice_is_over() -> None:
    now = 0.0
    time_slice = TimeSlice(0.5, lambda: now)
    ran = asyncio.Event()
    asyncio.get_running_loop().call_soon(ran.set)

    now = 0.5
    await time_slice.give_way()
    assert not ran.is_set()

    now = 0.6
    await time_slice.give_way()
    assert ran.is_set()
    assert not time_slice.is_over, "another one has begun"
