"""The parts that the loop, the watch's handlers and the wings share, for as long as the program runs."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Algorithm
from scheduler.cycle.failure import FailureHandler
from scheduler.cycle.listeners import PodListeners
from scheduler.cycle.resizes import NO_RESIZES, Resizes
from scheduler.cycle.writers import Writers
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.event_stream import EventStream
from scheduler.runtime.framework import Framework
from scheduler.state.cache import Cache
from scheduler.state.nominator import Nominator
from scheduler.state.objects import ObjectStore
from scheduler.state.preemptions import Preemptions


class Pauses:
    """Times without decisions: while the state is replaced step by step, and within a decision about a group.

    The loop respects them, and so do readers of the tables outside of a decision.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.holds = 0
        """How many `hold` blocks are open."""
        self._released = asyncio.Event()
        self._group_decided = asyncio.Event()
        self._group_decided.set()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Make no decision within a `with` block, which replaces the state of the cluster step by step."""
        self.holds += 1
        self._released.clear()
        try:
            yield
        finally:
            self.holds -= 1
            if not self.holds:
                self._released.set()

    def begin_steps(self) -> None:
        """Keep other tasks from reading the tables until `end_steps`: they run between the steps of a decision."""
        self._group_decided.clear()

    def end_steps(self) -> None:
        """The decision is made."""
        self._group_decided.set()

    async def released(self) -> None:
        """Return when no `hold` block is open."""
        while self.holds:
            await self._released.wait()

    async def ready(self) -> None:
        """Return when decisions may be made, on repaired tables. Raises errors of the repair."""
        while self.holds or not self._group_decided.is_set():
            await (self._released if self.holds else self._group_decided).wait()
        self._cache.mend()


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """The scheduler's state, and those who decide about it and write of it."""

    frameworks: Mapping[str, Framework]
    """The profiles at work by name."""

    pods: dict[str, Pod]
    """UID → newest version that the watch has shown, of every pod that has not ended."""

    objects: ObjectStore
    cache: Cache
    nominator: Nominator
    preemptions: Preemptions
    queue: SchedulingQueue
    algorithm: Algorithm
    failure: FailureHandler
    listeners: PodListeners
    pauses: Pauses
    writers: Writers
    metrics: Metrics
    stream: EventStream
    tasks: Tasks
    now: Callable[[], float]
    """The queue's clock, in seconds, monotonic."""

    resizes: Resizes = NO_RESIZES
