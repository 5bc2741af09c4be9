"""Kinds of calls to the API server, each with a limit of how many are in flight."""

import asyncio
from dataclasses import dataclass
from typing import Final

MAX_PAUSE_SECONDS: Final = 30.0
"""The longest Retry-After that is respected, in seconds: a server could ask for years."""


class CallLimit:
    """Limits the calls of one kind in flight. A 429 holds all of them back for as long as the server asks."""

    def __init__(self, limit: int, max_pause: float = MAX_PAUSE_SECONDS) -> None:
        """`max_pause`: seconds that a Retry-After counts at most."""
        self._max_pause = max_pause
        self._slots = asyncio.Semaphore(limit)
        self._paused_until = 0.0
        self.in_use = 0
        """Calls in flight, or waiting for the end of a pause."""

    async def __aenter__(self) -> None:
        await self._slots.acquire()
        self.in_use += 1
        loop = asyncio.get_running_loop()
        try:
            while (wait := self._paused_until - loop.time()) > 0:  # noqa: ASYNC110  a later 429 may prolong it
                await asyncio.sleep(wait)
        except asyncio.CancelledError:
            self._release()
            raise

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        self._release()

    def _release(self) -> None:
        self.in_use -= 1
        self._slots.release()

    def pause(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + min(seconds, self._max_pause)
        self._paused_until = max(self._paused_until, until)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A kind of call: created once, used for all its calls."""

    verb: str
    """HTTP's: GET, POST, PATCH, DELETE."""

    resource: str
    """Its label in metrics, like `pods/binding`."""

    limit: CallLimit

    timeout: float = 10.0
    """Seconds for one call, without the wait for its turn."""

    content_type: str | None = None
    """None for JSON."""

    fenced: bool = True
    """Whether a write is sent only while we lead; reads always are."""
