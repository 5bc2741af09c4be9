"""One round: the leader goes, the other takes over, the first comes back and stands by."""

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tests.cluster.replicas import Replicas, Timing, leads
from tests.controlplane import Component
from tests.failover.load import Load

How: TypeAlias = Literal["SIGTERM", "SIGKILL"]

CALM_SECONDS: Final = 2.0
"""Of steady bindings before a round begins."""

CALM_SHARE: Final = 0.7
"""Of the rate that is to be reached for that."""

MOST_SECONDS: Final = 60.0
"""For anything to happen."""

CLEAN_STOP_SECONDS: Final = 1.0
KILL_SECONDS: Final = 2.0
"""On top of the lease duration."""


@dataclass(frozen=True, slots=True)
class Round:
    """What was measured."""

    number: int
    how: How
    lease: float
    gap: float
    """The longest time without a binding, in seconds."""
    exit_code: int
    again: float
    """Seconds until the bindings were as many as before."""

    @property
    def allowed(self) -> float:
        """The longest gap that is right."""
        return CLEAN_STOP_SECONDS if self.how == "SIGTERM" else self.lease + KILL_SECONDS

    @property
    def is_right(self) -> bool:
        return self.gap <= self.allowed and self.exit_code == (0 if self.how == "SIGTERM" else -signal.SIGKILL)


class Failover:
    """Plays rounds under load."""

    def __init__(self, replicas: Replicas, load: Load, timing: Timing, rate: float) -> None:
        self._replicas = replicas
        self._load = load
        self._timing = timing
        self._rate = rate

    async def play(self, number: int, how: How) -> Round:
        """Raises TimeoutError if the load does not come to rest, before or after."""
        await self._calm()
        leader = await asyncio.to_thread(self._replicas.leader)
        began = time.monotonic()
        leader.send_signal(signal.Signals[how])
        exit_code = await self._end_of(leader)
        back = asyncio.create_task(asyncio.to_thread(leader.start))
        await self._until(lambda: self._load.bindings.count(began + 0.05, time.monotonic()) > 0 and self._led(leader))
        taken_over = time.monotonic()
        await back
        await self._calm()
        gap = self._load.bindings.longest_gap(began, taken_over)
        return Round(number, how, self._timing.lease, gap, exit_code, time.monotonic() - began)

    def _led(self, gone: Component) -> bool:
        """Whether the other leads: the last bindings of the one that is gone may still come in."""
        return leads(self._replicas.other(gone))

    async def _end_of(self, replica: Component) -> int:
        ended: list[int] = []

        def has_ended() -> bool:
            code = replica.exit_code
            if code is not None:
                ended.append(code)
            return bool(ended)

        await self._until(has_ended)
        return ended[0]

    async def _calm(self) -> None:
        """Wait until all pods are bound as they come, and both replicas run."""

        def is_calm() -> bool:
            now = time.monotonic()
            if not self._load.is_running:
                raise RuntimeError("the load has ended: the API server did not take a request")
            steady = self._load.bindings.count(now - CALM_SECONDS, now) >= CALM_SHARE * self._rate * CALM_SECONDS
            return steady and len(self._load.bindings.unbound) < self._rate / 2

        await self._until(is_calm)

    async def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + MOST_SECONDS
        while not await asyncio.to_thread(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not after {MOST_SECONDS:.0f} s; {len(self._load.bindings.unbound)} pods wait")
            await asyncio.sleep(0.02)
