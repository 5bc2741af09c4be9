"""A bound on the questions that are asked of the API server at once, and on how long one may take."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from scheduler.framework.errors import ClusterError

MAX_SECONDS: Final = 10.0
"""For an answer, with the wait for its turn and all repetitions; as kube-scheduler's client."""


class Reviewing:
    """Questions of one kind. Who waits is bounded by the number of connections."""

    def __init__(self, limit: int) -> None:
        self._slots = asyncio.Semaphore(limit)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, then ask within it. Raises ClusterError if the time is over first."""
        try:
            async with asyncio.timeout(MAX_SECONDS), self._slots:
                yield
        except TimeoutError as error:
            raise ClusterError(f"no answer within {MAX_SECONDS:g} s") from error
