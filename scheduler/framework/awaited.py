"""Tasks that their starter awaits, and that raise there. All others are started by scheduler.process.tasks."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def child(name: str, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start a task of the caller, which awaits it, or cancels it before it ends itself."""
    return asyncio.get_running_loop().create_task(work, name=name)


async def together(*works: Coroutine[Any, Any, T]) -> list[T]:
    """Do these at once and return what they return, in order.

    The first that fails cancels the others; its error is raised once they have ended.
    """
    return [task.result() for task in await _ended(asyncio.FIRST_EXCEPTION, works)]


async def first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of them ends, raising what it raised; the others are cancelled."""
    await _ended(asyncio.FIRST_COMPLETED, waits)


async def _ended(when: str, works: Sequence[Coroutine[Any, Any, T]]) -> "list[asyncio.Task[T]]":
    """Tasks that have all ended, those under way by cancellation; raises what the first has raised.

    Not a TaskGroup: before Python 3.13 one hides that the caller is cancelled where a task fails at the same time.
    """
    tasks = [child("one of several", work) for work in works]
    if not tasks:
        return []
    try:
        done, _ = await asyncio.wait(tasks, return_when=when)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for error in [task.exception() for task in done if not task.cancelled()]:
        if error is not None:
            raise error
    return tasks
