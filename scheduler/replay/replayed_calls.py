"""Calls of plugins in a replay: each gets the recorded answer when the trace has it.

call ──► WAITING ──its answer comes in the trace──► the plugin goes on
answer ──► KEPT ──the plugin calls a little later than it did then──► the plugin goes on
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from scheduler.cycle.api_calls import Calls
from scheduler.cycle.cycle_events import Call
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import ApiWriter, Reader

T = TypeVar("T")

MAX_KEPT: Final = 1_000
"""Answers to one call that have not been asked for."""

TRYING: Final[ContextVar[bool]] = ContextVar("trying", default=False)
"""Set while another decision than the recorded one is made: the recorded answers are not for its calls."""


class ReplayedCalls(Calls):
    def __init__(self, wall: Callable[[], float]) -> None:
        """`wall`: the time of the trace, in seconds since 1970."""
        self._wall = wall
        self._waiting: defaultdict[Call, deque[asyncio.Future[Any]]] = defaultdict(deque)
        self._kept: defaultdict[Call, deque[Any]] = defaultdict(deque)

    def answer(self, call: Call, answer: Any | ApiError) -> None:
        """Give an answer to the call that waits for it, or keep it."""
        waiting = self._waiting.get(call)
        while waiting:
            future = waiting.popleft()
            if not future.done():
                _settle(future, answer)
                return
        kept = self._kept[call]
        kept.append(answer)
        if len(kept) > MAX_KEPT:
            kept.popleft()

    async def answered(self, call: Call, send: Callable[[ApiWriter, Reader], Awaitable[T]]) -> T:
        if TRYING.get():
            raise ApiError(0, "nothing is asked while other decisions are tried")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        kept = self._kept.get(call)
        if kept:
            _settle(future, kept.popleft())
        else:
            self._waiting[call].append(future)
        return await future

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), UTC)


def _settle(future: asyncio.Future[Any], answer: Any | ApiError) -> None:
    if isinstance(answer, ApiError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
