"""Tasks that their starter awaits: what they raise, it raises. All others are started by scheduler.process.tasks."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def child(name: str, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start a task of the caller, which awaits it, or cancels it before it ends itself."""
    return asyncio.get_running_loop().create_task(work, name=name)


async def together(*works: Coroutine[Any, Any, T]) -> list[T]:
    """Do these at once and return what they return, in order.

    The first that fails cancels the others; its error is raised once they have ended.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def first_of(*waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of them ends, raising what it raised; the others are cancelled."""
    tasks = [child("one of several", wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for error in [task.exception() for task in done if not task.cancelled()]:
        if error is not None:
            raise error
