"""The task in which a plugin runs is the scheduler's: a plugin that cancels it fails, and nothing else happens.

    a plugin cancels the task in which it is awaited ─┐
    a plugin raises CancelledError or GeneratorExit   ├──► PluginsOwn, with what it raised
    the scheduler cancels, or closes, that task ──────┴──► CancelledError, GeneratorExit, as it should be

A plugin has the event loop for itself from one await to the next, so who cancels is known by when it happens. While a
plugin is called that is not awaited, there is no current task.
"""

import asyncio
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PluginsOwn(Exception):
    """A plugin has ended the task that awaits it."""

    def __init__(self, error: BaseException) -> None:
        """`error`: what it raised, or what stands for it."""
        super().__init__(error)
        self.error = error


async def awaited(awaitable: Awaitable[T]) -> T:
    """Await what a plugin has answered. Raises PluginsOwn."""
    watched = _Watched(awaitable)
    try:
        result = await watched
    except GeneratorExit as error:
        if watched.is_closed:
            raise
        raise PluginsOwn(error) from error
    except asyncio.CancelledError as error:
        if watched.take_back():
            raise
        raise PluginsOwn(error) from error
    except BaseException:
        await watched.settle()
        raise
    if await watched.settle():
        raise PluginsOwn(asyncio.CancelledError("it has cancelled the task in which it is awaited"))
    return result


def is_cancelled_by_others() -> bool:
    """Return whether the current task is to end, rather than something that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def without_task(call: Callable[..., T], *arguments: Any) -> T:
    """Call a method of a plugin that is not awaited, while nothing that it could cancel is the current task."""
    loop = asyncio._get_running_loop()
    task = None if loop is None else asyncio.current_task(loop)
    if loop is None or task is None:
        return call(*arguments)
    _leave_task(loop, task)
    try:
        return call(*arguments)
    finally:
        _enter_task(loop, task)


class _Watched(Generic[T]):
    """Goes step by step through a plugin's coroutine, and notes what it does to the task meanwhile."""

    __slots__ = ("_awaitable", "_task", "cancels", "is_closed")

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._awaitable = awaitable
        self._task: asyncio.Task[Any] | None = asyncio.current_task()
        self.cancels = 0
        """How often the plugin itself has asked the task to end."""
        self.is_closed = False
        """Whether the task is given up, as when its event loop is closed."""

    def __await__(self) -> Generator[Any, None, T]:
        steps: Any = self._awaitable.__await__()
        thrown: BaseException | None = None
        while True:
            before = self._cancelling
            try:
                waits_for = next(steps) if thrown is None else steps.throw(thrown)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            finally:
                self.cancels = max(0, self.cancels + self._cancelling - before)
            thrown = None
            try:
                yield waits_for
            except GeneratorExit:
                self.is_closed = True
                steps.close()
                raise
            except BaseException as error:  # noqa: BLE001 - the plugin gets it
                thrown = error

    async def settle(self) -> bool:
        """Take back what the plugin has asked for, if nothing has come of it yet; say whether there was such a thing.

        Raises CancelledError if others have asked the task to end.
        """
        if not self.cancels:
            return False
        was_to_come = False
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            was_to_come = True
        if self.take_back():
            raise asyncio.CancelledError
        return was_to_come

    def take_back(self) -> bool:
        """Take back what the plugin has asked for; say whether others have asked the task to end."""
        while self.cancels and self._task is not None:
            self.cancels -= 1
            self._task.uncancel()
        return self._cancelling > 0

    @property
    def _cancelling(self) -> int:
        return 0 if self._task is None else self._task.cancelling()
