"""An event loop whose time passes only when nothing is left to do: hours take no time, and repeat exactly.

something is ready ──► it runs; no time passes
a thread is at work ─► it is waited for; no time passes
all tasks wait ──┬───► `at_rest` is awaited: it returns
                 └───► else time jumps to the next timer
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

BEGIN = 1_000.0

BUSY_SECONDS: Final = 20.0
"""Of real time, after which tasks that never wait are given up."""

THREAD_SECONDS: Final = 5.0
"""Of real time that a loop waits in vain for threads, in all."""


class NeverAtRest(Exception):
    """Some task is always ready to go on."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` jumps to the next timer when every task waits. Without a timer it would wait for ever: an error."""

    def __init__(self) -> None:
        self.now = BEGIN
        self._rest: asyncio.Future[float | None] | None = None
        self._rest_awaited = 0.0
        """Since when, in seconds of time.monotonic."""
        self._in_threads: set[asyncio.Future[Any]] = set()
        self._patience = THREAD_SECONDS
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    async def at_rest(self) -> float | None:
        """Return when all other tasks wait, before any time passes: the seconds to the next timer, None without one.

        One caller at a time. Raises NeverAtRest.
        """
        self._rest_awaited = time.monotonic()
        self._rest = self.create_future()
        try:
            return await self._rest
        finally:
            self._rest = None

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        future = super().run_in_executor(executor, func, *args)
        self._in_threads.add(future)
        future.add_done_callback(self._in_threads.discard)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the base's
        """Wait for no thread: `close` gives the executor up."""

    def before_blocking(self, seconds: float | None) -> float:
        """Decide what happens when no task is ready for so many seconds, or None: until something outside happens.

        Return for how many seconds of real time threads are waited for; 0 if something is ready now.
        """
        rest = None if self._rest is None or self._rest.done() else self._rest
        if seconds is not None and seconds <= 0:
            if rest is not None and time.monotonic() - self._rest_awaited > BUSY_SECONDS:
                rest.set_exception(NeverAtRest())
        elif self._in_threads and self._patience > 0:
            return self._patience
        elif rest is not None:
            rest.set_result(seconds)
        elif seconds is None:
            raise RuntimeError("every task waits, and no timer is set")
        else:
            # A little more, as a sum of floats may be less than the time of the timer.
            self.now += seconds + 1e-9
        return 0.0

    def no_thread_ended(self, seconds: float) -> None:
        """Threads were waited for in vain: less time is left for them."""
        self._patience -= seconds


class _Selector(selectors.SelectSelector):
    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        seconds = 0.0 if ready else self.loop.before_blocking(timeout)
        if seconds:
            ready = super().select(seconds)
            if not ready:
                self.loop.no_thread_ended(seconds)
        return ready


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
