"""An event loop whose time passes only when nothing is left to do: hours take no time, and repeat exactly."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

BEGIN = 1_000.0


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` jumps to the next timer when every task waits. Without a timer it would wait for ever: an error."""

    def __init__(self) -> None:
        self.now = BEGIN
        super().__init__(_Selector(self._pass_time))

    def time(self) -> float:
        return self.now

    def _pass_time(self, seconds: float | None) -> None:
        if seconds is None:
            raise RuntimeError("every task waits, and no timer is set")
        # A little more, as a sum of floats may be less than the time of the timer.
        self.now += seconds + 1e-9 if seconds > 0 else 0


class _Selector(selectors.SelectSelector):
    def __init__(self, pass_time: Callable[[float | None], None]) -> None:
        super().__init__()
        self._pass_time = pass_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            self._pass_time(timeout)
        return ready


def run_virtually(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
