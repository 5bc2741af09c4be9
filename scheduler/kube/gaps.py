"""Gaps in the watches, for decisions that must not be based on an older state.

    CURRENT ──a watch is interrupted, or lists again──► BEHIND
       ▲                                                  │ all watches are accepted again
       └── nothing of that since ◄── all compared again ◄─┘

After an outage the watches resume one after the other, and what a new list brings is taken in in the list's order: a
pod may be shown on a node that is not known yet, or before a pod that was placed earlier. A scheduler decides all the
same; a comparison of decisions would be wrong.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


class Gaps:
    """By the names of `ApiResource`. Used within one event loop."""

    def __init__(self, settle: float) -> None:
        """`settle`: seconds between the opening of the last watch and the comparison.

        A watch from too old a version may be accepted, end after that, and begin from a new list.
        """
        self._settle = settle
        self._listed: set[str] = set()
        self._interrupted: set[str] = set()
        self._count = 0
        """How often something may have been missed."""
        self._closed = 0
        """That count as it was before the latest comparison of everything."""
        self._changed = asyncio.Event()

    @property
    def is_current(self) -> bool:
        """Whether nothing may have been missed that no comparison has made up for."""
        return self._count == self._closed

    def listed(self, resource: str) -> None:
        """Note that a watch begins from a new list; what happened before is a gap, except the first time."""
        if resource in self._listed:
            self._begin()
        self._listed.add(resource)

    def interrupted(self, resource: str) -> None:
        """Note that a watch cannot be opened."""
        self._interrupted.add(resource)
        self._begin()

    def opened(self, resource: str) -> None:
        """Note that a watch was accepted."""
        self._interrupted.discard(resource)
        self._changed.set()

    def absent(self, resource: str) -> None:
        """Note that there is nothing to watch; a list would bring what is new since."""
        self._listed.add(resource)
        self.opened(resource)

    async def close_forever(self, compare_again: Callable[[], Awaitable[None]]) -> None:
        """Make up for each gap: compare everything again once all watches are open, until no gap began meanwhile."""
        while True:
            while self._interrupted or self.is_current:
                self._changed.clear()
                await self._changed.wait()
            await asyncio.sleep(self._settle)
            if self._interrupted:
                continue
            count = self._count
            await compare_again()
            self._closed = count
            if count == self._count:
                log.info("What may have been missed is made up for")

    def _begin(self) -> None:
        self._count += 1
        self._changed.set()
