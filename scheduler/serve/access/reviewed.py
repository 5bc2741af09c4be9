"""Answers of the API server to questions of one kind: each is kept for a while, and few are asked at once."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from scheduler.framework.errors import ClusterError

MAX_KEPT: Final = 1024
"""Answers; beyond, what was used least recently is forgotten."""

MAX_IN_FLIGHT: Final = 4
"""Questions at once: a client that sends random tokens delays only itself."""

MAX_SECONDS: Final = 10.0
"""For an answer, with the wait for its turn and all repetitions; as kube-scheduler's client."""

V = TypeVar("V")


class Reviewed(Generic[V]):
    """The answers by keys. Who waits for one is bounded by the number of connections."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._kept: OrderedDict[bytes, tuple[V, float]] = OrderedDict()
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)

    def __len__(self) -> int:
        return len(self._kept)

    async def answer(self, key: bytes, ask: Callable[[], Awaitable[V]], seconds: Callable[[V], float]) -> V:
        """Return the answer that is kept, or else ask. `seconds`: for which an answer is kept; 0: not at all.

        Raises ClusterError if none comes in time, and whatever `ask` raises.
        """
        known = self._find(key)
        if known is not None:
            return known
        try:
            async with asyncio.timeout(MAX_SECONDS), self._slots:
                known = self._find(key)  # perhaps found while this one waited
                if known is None:
                    known = await ask()
                    self._keep(key, known, seconds(known))
        except TimeoutError as error:
            raise ClusterError(f"no answer within {MAX_SECONDS:g} s") from error
        return known

    def _find(self, key: bytes) -> V | None:
        value, until = self._kept.get(key, (None, 0.0))
        if value is None:
            return None
        if self._now() >= until:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return value

    def _keep(self, key: bytes, value: V, seconds: float) -> None:
        if seconds <= 0:
            return
        self._kept[key] = value, self._now() + seconds
        self._kept.move_to_end(key)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
