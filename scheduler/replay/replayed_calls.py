"""What plugins ask of the API server in a replay: answered as the trace says, when it says so.

call ──► WAITING ──its answer comes in the trace──► the plugin goes on
answer ──► KEPT ──the plugin calls, a little later than then──► the plugin goes on
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

from scheduler.cycle.api_calls import creation, posting
from scheduler.cycle.cycle_events import Call
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NO_CREDENTIALS, Access

MAX_KEPT: Final = 1_000
"""Answers to one call that nobody waits for."""

TRYING: Final[ContextVar[bool]] = ContextVar("trying", default=False)
"""Set while something else is decided than what was recorded: the answers are not for its calls."""


class ReplayedCalls:
    """Implements framework.handle.ApiWriter and Reader."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """`wall`: when what is replayed happened, in seconds since 1970."""
        self._wall = wall
        self._waiting: defaultdict[Call, deque[asyncio.Future[Any]]] = defaultdict(deque)
        self._kept: defaultdict[Call, deque[Any]] = defaultdict(deque)

    def answer(self, call: Call, answer: Any | ApiError) -> None:
        """Give the answer to whoever waits for it, or keep it."""
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

    async def _answered(self, call: Call) -> Any:
        if TRYING.get():
            raise ApiError(0, "nothing is asked while other decisions are tried")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        kept = self._kept.get(call)
        if kept:
            _settle(future, kept.popleft())
        else:
            self._waiting[call].append(future)
        return await future

    async def create(self, resource: str, content: Mapping[str, Any]) -> Any:
        return await self._answered(creation(resource, content))

    async def delete(self, resource: str, name: str, namespace: str, uid: str) -> None:
        await self._answered(Call("delete", resource, namespace, name))

    async def update(self, resource: str, content: Mapping[str, Any], subresource: str = "") -> Any:
        meta = content.get("metadata", {})
        return await self._answered(
            Call("update", resource, meta.get("namespace", ""), meta.get("name", ""), subresource)
        )

    async def patch(
        self, resource: str, name: str, namespace: str, patch: Mapping[str, Any], subresource: str = ""
    ) -> Any:
        return await self._answered(Call("patch", resource, namespace, name, subresource))

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        content: bytes = await self._answered(Call("read", "", "", url))
        return content

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        content: bytes = await self._answered(posting(url, body))
        return content

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), UTC)


def _settle(future: asyncio.Future[Any], answer: Any | ApiError) -> None:
    if isinstance(answer, ApiError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
