"""Times without decisions: while the state is replaced step by step, and within a decision about a group."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from scheduler.state.cache import Cache


class Pauses:
    """The loop respects them, and so do readers of the tables outside of a decision."""

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
