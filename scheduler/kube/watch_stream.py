"""A watch's stream, of which kopf sees no more than it needs: the objects go straight to `Intake`.

kopf opens the watch, goes on from the last version that it has seen, lists anew after 410 Gone, and opens it again when
it breaks or when nothing comes. For that it must see versions, errors and that something comes, but not the objects,
of which each would cost it ten times what they cost us. So after each piece of the stream it is told, in place of the
events, the version up to which they were taken in:

    API server    ADDED 7   MODIFIED 8   DELETED 9   BOOKMARK 12   ERROR 410
    Intake            7          8           9
    kopf                                 BOOKMARK 9  BOOKMARK 12   ERROR 410

Nothing is read on before kopf is told, so wherever the stream breaks, kopf goes on with the first event that was not
taken in.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Final, Self

import aiohttp
import msgspec

MAX_SECONDS_AT_A_STRETCH: Final = 0.002
"""How long events are taken in before other tasks get their turn. Meanwhile nothing is read, and TCP slows the API
server down."""

Take = Callable[[bytes | bytearray], str | None]
"""Takes in a line of a watch. Returns up to which version events are taken in now, empty if that is not known; None if
it is not for us but for kopf."""


class WatchResponse:
    """What kopf takes for aiohttp's response to a watch, and for its content; an asynchronous context manager."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        take: Take,
        progress: Callable[[], None],
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`response`: one that is no error. `progress` is called for each piece of the stream."""
        self._response = response
        self._take = take
        self._progress = progress
        self._now = now
        self.status = response.status
        self.headers = response.headers

    @property
    def closed(self) -> bool:
        return self._response.closed

    @property
    def content(self) -> Self:
        return self

    def close(self) -> None:
        """Break the stream off: whoever reads it gets an aiohttp.ClientConnectionError."""
        self._response.close()

    async def __aenter__(self) -> Self:
        await self._response.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._response.__aexit__(kind, error, trace)

    async def iter_chunked(self, _size: int) -> AsyncIterator[bytes]:
        """Take in the events; yield whole lines for kopf. Raises what aiohttp raises when the stream breaks.

        A last line without an end is not taken in: the API server ends each, so it is half an event, and kopf, not told
        of it, asks for it again.
        """
        rest = bytearray()
        async for piece in self._response.content.iter_any():
            self._progress()
            rest += piece
            if b"\n" not in piece:
                continue
            *whole, rest = rest.split(b"\n")
            lines = deque(filter(None, whole))
            while lines:
                if told := self._take_in(lines):
                    yield told
                if lines:
                    await asyncio.sleep(0)

    def _take_in(self, lines: deque[bytearray]) -> bytes:
        """Take in lines, first come first, for as long as a stretch may last; return what kopf is to read of them."""
        told, untold = bytearray(), ""
        until = self._now() + MAX_SECONDS_AT_A_STRETCH
        while lines:
            line = lines.popleft()
            version = self._take(line)
            if version is None:
                told += (_bookmark(untold) if untold else b"") + line + b"\n"
                untold = ""
            else:
                untold = version or untold
            if self._now() > until:
                break
        return bytes(told + _bookmark(untold) if untold else told)


def _bookmark(version: str) -> bytes:
    """The line with which an API server tells a version."""
    return b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":%b}}}\n' % msgspec.json.encode(version)
