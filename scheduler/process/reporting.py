"""When to report things that change often: a moment after a change, and each thing once."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K")


class Due:
    """Has a part of the program go on a moment after something has changed, once for all that changes meanwhile."""

    def __init__(self, pause: float) -> None:
        """`pause`: that moment, in seconds."""
        self._pause = pause
        self._is_due = asyncio.Event()

    def soon(self) -> None:
        self._is_due.set()

    async def wait(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep, most: float | None = None) -> None:
        """Return then; if nothing changes for `most` seconds, after these."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_due.wait(), most)
        await sleep(self._pause)
        self._is_due.clear()


class Said(Generic[K]):
    """The last report about each thing."""

    def __init__(self, most: float = inf) -> None:
        """`most`: of how many it is known; of those beyond, the one that was reported first is forgotten."""
        self._said: dict[K, str] = {}
        self._most = most

    def is_new(self, key: K, text: str) -> bool:
        """Return whether this is another report than the last one, and keep it; empty if there is nothing to report."""
        before = self._said.pop(key, "")
        if text:
            self._said[key] = text
        if len(self._said) > self._most:
            del self._said[next(iter(self._said))]
        return bool(text) and text != before

    def keep(self, keys: Collection[K]) -> None:
        """Forget all others."""
        for key in self._said.keys() - keys:
            del self._said[key]
