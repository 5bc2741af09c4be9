"""The resources to compare with the API server, and the times: requested by the watch, by failures, and by time.

(nothing) ──request──► REQUESTED ──take──► (nothing)
    └──request_later──► waits, longer after each failure ──► REQUESTED
"""

import asyncio
from typing import Final

from scheduler.kube.http.retries import RetryPolicy

RETRIES: Final = RetryPolicy(first=1.0, limit=60.0)
"""Between a failure and the next comparison."""

CALM_SECONDS: Final = 300.0
"""After this time without a failure, waits start over."""


class ComparisonSchedule:
    """Resources by the names of `ApiResource`. Used within one event loop."""

    def __init__(self, retries: RetryPolicy = RETRIES) -> None:
        self._retries = retries
        self._requested: set[str] = set()
        self._changed = asyncio.Event()
        self._scheduled: set[str] = set()
        self._failures = 0
        self._failed_at = -CALM_SECONDS

    def request(self, resource: str) -> None:
        """Compare soon."""
        self._requested.add(resource)
        self._changed.set()

    def request_later(self, resource: str) -> None:
        """Compare after a failure: soon at first, later if failures persist."""
        if resource in self._scheduled:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._failed_at > CALM_SECONDS:
            self._failures = 0
        wait = self._retries.wait(self._failures)
        if now - self._failed_at > wait / 2:  # simultaneous failures count once
            self._failures += 1
        self._failed_at = now
        self._scheduled.add(resource)
        loop.call_later(wait, self._request_scheduled, resource)

    def wake(self) -> None:
        """Wake the waiter without requesting a comparison."""
        self._changed.set()

    async def wait(self) -> None:
        """Wait for a request or a `wake`. All who wait are woken."""
        await self._changed.wait()
        self._changed.clear()

    def __contains__(self, resource: str) -> bool:
        return resource in self._requested

    def take(self, resource: str) -> bool:
        """Return whether a resource is requested; it is so no longer."""
        if resource not in self._requested:
            return False
        self._requested.discard(resource)
        return True

    def _request_scheduled(self, resource: str) -> None:
        self._scheduled.discard(resource)
        self.request(resource)
