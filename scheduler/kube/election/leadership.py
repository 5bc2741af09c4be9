"""Whether this replica may write: the fence that every binding, eviction and patch has to pass.

    STANDBY ──the Lease is ours──► LEADING ──renewed──► LEADING
                                      │
                                      ├──its time is over, or another holds the Lease──► ENDED
                                      └──we stop, and are about to release the Lease───► ENDED

LEADING lasts until `renewDeadline` after the last renewal that succeeded was *sent*: whenever the API server carried it
out, it was later, and no other replica takes the Lease before `leaseDuration`, which is longer, has passed since then.
ENDED is for good: the program ends, and its next start lists the cluster again.

`is_held` is asked directly before the bytes of a request are written (`connections.py`), not when the work begins: a
process that was stopped, or a machine that slept, may wake up anywhere. For the same reason the time is the kernel's
CLOCK_BOOTTIME: it cannot be set, and, unlike CLOCK_MONOTONIC, it runs on while the machine sleeps. A virtual machine
whose clocks stand still while it is paused cannot know: see docs/operations/high-availability.md.
"""

import asyncio
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the former is Linux's alone

boot_time: Final[Callable[[], float]] = partial(time.clock_gettime, _CLOCK)
"""Seconds on a clock that cannot be set, and that does not stop while the machine sleeps."""


class Leadership:
    """A belief with an end. The lock changes it, the client asks it."""

    def __init__(self, now: Callable[[], float] = boot_time) -> None:
        self.began = asyncio.Event()
        """Set when we lead for the first time; it stays set."""
        self.ended = asyncio.Event()
        """Set when we do not lead any more, and never will."""
        self._now = now
        self._until = -math.inf

    def is_held(self) -> bool:
        """Return whether we lead, now. Cheap: each write asks."""
        return self._now() < self._until

    def seconds_left(self) -> float:
        """For how long we lead without a further renewal; 0 or less if we do not."""
        return self._until - self._now()

    def extend(self, until: float) -> bool:
        """Lead until then, in the time of the clock; False if that comes too late.

        A renewal whose answer comes after the end of the one before does not count: in between we did not lead.
        """
        if self.began.is_set() and not self.is_held():
            self.end()
        if self.ended.is_set() or until <= self._now():
            return False
        self._until = until
        self.began.set()
        return True

    def end(self) -> None:
        """Lead no more: from here on no fenced call is sent."""
        self._until = -math.inf
        self.ended.set()
