"""The time of a trace: plugins' timers fire when they would have, however fast the trace is replayed."""

import asyncio
from typing import Final

TURNS: Final = 8
"""Turns of the event loop after which each task waits again."""


class TraceClock:
    """The present time of a replay."""

    def __init__(self, recorded_at: float) -> None:
        """`recorded_at`: when the recording began, in seconds since 1970."""
        self._recorded_at = recorded_at
        self.milliseconds = 0

    def now(self) -> float:
        """Seconds since the recording began."""
        return self.milliseconds / 1000

    def wall(self) -> float:
        """Seconds since 1970."""
        return self._recorded_at + self.now()


class TraceTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that goes by a trace's clock. Its tasks must wait for nothing but `turns`."""

    def __init__(self, clock: TraceClock) -> None:
        self._trace_clock = clock
        super().__init__()

    def time(self) -> float:
        return self._trace_clock.now()


async def turns() -> None:
    """Let all tasks run until they wait for time or answers."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
