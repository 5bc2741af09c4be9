"""Long work on the event loop in slices of a few milliseconds: other tasks run between them."""

import asyncio
import time
from collections.abc import Callable


class TimeSlice:
    """The time that work may go on before other tasks run."""

    __slots__ = ("_now", "_seconds", "end")

    def __init__(self, seconds: float = 0.002, now: Callable[[], float] | None = None) -> None:
        self._seconds = seconds
        self._now = now or time.perf_counter
        self.renew()

    def renew(self) -> None:
        """Begin another slice: other tasks have just run."""
        self.end = self._now() + self._seconds

    @property
    def is_over(self) -> bool:
        return self._now() > self.end

    async def give_way(self) -> None:
        """Let other tasks run if the slice is over."""
        if self.is_over:
            await asyncio.sleep(0)
            self.renew()
