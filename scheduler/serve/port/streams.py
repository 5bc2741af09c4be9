"""Answers that go on for as long as their reader wants: few at once, and none of them outlives its reader.

    asked ──no place is free──► 429
      │
      └─► SENDING ──the source ends, the server stops, the reader may no longer see it──► ended: its end is said
            ├─── a chunk is not taken in time, or too many wait ──► aborted: the reader sees that something is missing
            └─── the reader has gone ──► the source is closed

The source makes the next chunk when the connection has taken the one before; an endless one has to say something every
15 s, if only an empty chunk, since rights are checked again before something is sent.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Final, TypeAlias

from aiohttp import web

from scheduler.serve.port.answers import Answer
from scheduler.serve.port.connection import Connection
from scheduler.serve.port.feed import TooSlow
from scheduler.serve.port.limits import Limits

TOO_MANY: Final = Answer(429, b"too many streams are open; try again later\n")

FINISH_SECONDS: Final = 1.0
"""For the ends of streams to be sent when the server stops."""

log = logging.getLogger(__name__)

Body: TypeAlias = AsyncGenerator[bytes, None]

May: TypeAlias = Callable[[], Awaitable[bool]]
"""Whether the reader may still see an answer."""


class Streams:
    """The streams that are being sent."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: set[Connection] = set()
        self._none = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether no other may begin."""
        return len(self._open) >= self._limits.streams

    async def send(
        self, connection: Connection, request: web.BaseRequest, response: web.StreamResponse, body: Body, may: May
    ) -> None:
        """Send it to its end. A place has to be free."""
        self._open.add(connection)
        try:
            async with aclosing(body), connection.lasting():
                await self._send(connection, request, response, body, may)
            with suppress(ConnectionError):
                await response.write_eof()
        finally:
            self._open.discard(connection)
            if not self._open:
                self._none.set()

    async def finish(self) -> None:
        """End them all, as the server stops."""
        self._none.clear()
        for connection in tuple(self._open):
            connection.finish()
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                while self._open:
                    await self._none.wait()

    async def _send(
        self, connection: Connection, request: web.BaseRequest, response: web.StreamResponse, body: Body, may: May
    ) -> None:
        loop = asyncio.get_running_loop()
        looked = loop.time()
        try:
            await response.prepare(request)
            async for chunk in body:
                if loop.time() - looked >= self._limits.rights_seconds:
                    if not await may():
                        return
                    looked = loop.time()
                if chunk:
                    with connection.taking():
                        await response.write(chunk)
        except TooSlow:
            connection.end("slow")
        except ConnectionError:  # the peer has gone: aiohttp notices by itself
            pass
        except Exception:
            log.exception("A stream failed", extra={"peer": connection.address})
            connection.end("failed")
