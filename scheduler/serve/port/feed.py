"""Messages for one reader of a stream, until the connection takes them: bounded in bytes.

push ──► waiting bytes ──chunks──► connection
           │
           └─more than may wait──► TooSlow: the reader is disconnected, and sees that it has missed something
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

CHUNK: Final = 64 * 1024
"""Bytes handed out at once, about: what waits is joined up to here."""

MAX_BYTES: Final = 1 << 20

BEAT_SECONDS: Final = 15.0
"""Between two signs of life where there is nothing to say: proxies end connections that are silent."""


class TooSlow(Exception):
    """A reader takes less than is pushed to it."""


class Feed:
    """The bytes that wait for one reader."""

    def __init__(self, beat: bytes = b"", max_bytes: int = MAX_BYTES, beat_seconds: float = BEAT_SECONDS) -> None:
        """`beat`: what to send when there is nothing to say; empty: nothing, but the reader's rights are looked at."""
        self._beat, self._max_bytes, self._beat_seconds = beat, max_bytes, beat_seconds
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        self._has_ended = False
        self.is_over = False
        """Whether nothing will be read any more: its owner may drop it."""

    def push(self, chunk: bytes) -> None:
        """Have it sent after all that was pushed before. It costs nothing once the feed is over."""
        if self.is_over or self._has_ended:
            return
        if self._bytes + len(chunk) > self._max_bytes:
            self._waiting.clear()
            self._bytes = 0
            self.is_over = True
        else:
            self._waiting.append(chunk)
            self._bytes += len(chunk)
        self._more.set()

    def end(self) -> None:
        """Nothing more comes; what waits is sent."""
        self._has_ended = True
        self._more.set()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body of an answer. Raises TooSlow."""
        try:
            while True:
                if self.is_over:
                    raise TooSlow(f"more than {self._max_bytes} bytes wait")
                if self._waiting:
                    yield self._next()
                elif self._has_ended:
                    return
                else:
                    self._more.clear()
                    try:
                        async with asyncio.timeout(self._beat_seconds):
                            await self._more.wait()
                    except TimeoutError:
                        yield self._beat
        finally:
            self.is_over = True
            self._waiting.clear()

    def _next(self) -> bytes:
        parts, size = [], 0
        while self._waiting and size < CHUNK:
            part = self._waiting.popleft()
            parts.append(part)
            size += len(part)
        self._bytes -= size
        return b"".join(parts)
