"""A watch's stream, reduced to what kopf needs: the objects go straight to `Intake`.

kopf opens the watch, continues from the last version that it has seen, lists again after 410 Gone, and opens it again
when it breaks or is silent. For that it must see versions, errors and signs of life, but not the objects, each of which
would cost it ten times what it costs us. So after each chunk of the stream, a bookmark takes the place of the events,
with the version up to which they were taken in:

    API server    ADDED 7   MODIFIED 8   DELETED 9   BOOKMARK 12   ERROR 410
    Intake            7          8           9
    kopf                                 BOOKMARK 9  BOOKMARK 12   ERROR 410

Nothing more is read before kopf has the bookmark, so wherever the stream breaks, kopf continues with the first event
that was not taken in.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Self

import aiohttp
import msgspec

from scheduler.process.time_slice import TimeSlice

Take = Callable[[bytes | bytearray], str | None]
"""Takes in a line of a watch. Returns the version up to which events are taken in now, empty if unknown; None if the
line is for kopf."""


class WatchResponse:
    """Stands in for aiohttp's response to a watch, and for its content; an asynchronous context manager."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        take: Take,
        progress: Callable[[], None],
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`response`: must not be an error. `progress` is called for every chunk of the stream."""
        self._response = response
        self._take = take
        self._progress = progress
        self._time_slice = TimeSlice(now=now)
        self.status = response.status
        self.headers = response.headers

    @property
    def closed(self) -> bool:
        return self._response.closed

    @property
    def content(self) -> Self:
        return self

    def close(self) -> None:
        """Close the stream; its reader gets an aiohttp.ClientConnectionError."""
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

        An unterminated last line is not taken in: it is half an event, as the API server terminates all of them, and
        kopf, unaware of it, asks for it again.
        """
        rest = bytearray()
        async for chunk in self._response.content.iter_any():
            self._progress()
            rest += chunk
            if b"\n" not in chunk:
                continue
            *whole, rest = rest.split(b"\n")
            lines = deque(filter(None, whole))
            while lines:
                if for_kopf := self._take_in(lines):
                    yield for_kopf
                if lines:
                    await asyncio.sleep(0)

    def _take_in(self, lines: deque[bytearray]) -> bytes:
        """Take in lines in order, for one time slice; return what kopf is to read instead.

        Meanwhile nothing is read from the socket: TCP's backpressure.
        """
        for_kopf, version_taken = bytearray(), ""
        self._time_slice.renew()
        while lines:
            line = lines.popleft()
            version = self._take(line)
            if version is None:
                for_kopf += (_bookmark(version_taken) if version_taken else b"") + line + b"\n"
                version_taken = ""
            else:
                version_taken = version or version_taken
            if self._time_slice.is_over:
                break
        return bytes(for_kopf + _bookmark(version_taken) if version_taken else for_kopf)


def _bookmark(version: str) -> bytes:
    """The line by which an API server reports a version."""
    return b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":%b}}}\n' % msgspec.json.encode(version)
