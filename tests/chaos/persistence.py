"""Calls of the tests themselves, which the faults hit too: they are repeated until they have an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import orjson

from tests.controlplane import ApiError, ApiUnreachable

T = TypeVar("T")

PAUSE_SECONDS: Final = 0.1
SECONDS: Final = 60.0
"""Longer than any fault."""

SETTLED: Final = (404, 409, 410, 422)
"""It is gone, exists already, or has changed: somebody else was faster, or our own call before this one."""

FORBIDDEN: Final = 403
"""Of these calls, which may do everything: an admission plugin of a restarted API server has not seen its objects yet,
such as the PriorityClass of a pod."""


async def insist(call: Callable[[], Awaitable[T]]) -> T | None:
    """Call until there is an answer; None if it says that there is nothing to do. Raises TimeoutError."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await call()
            except ApiUnreachable:
                await asyncio.sleep(PAUSE_SECONDS)
            except orjson.JSONDecodeError:
                return None  # carried out, but the answer has a hostile object that is too odd to read
            except ApiError as error:
                if error.status in SETTLED:
                    return None
                if error.status < 500 and error.status != FORBIDDEN:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)


async def insist_on_all(calls: list[Callable[[], Awaitable[object]]], concurrency: int = 16) -> None:
    """The same for several calls, some at a time."""
    waiting = iter(calls)

    async def work() -> None:
        for call in waiting:
            await insist(call)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
