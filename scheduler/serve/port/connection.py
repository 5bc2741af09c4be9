"""One connection of the port: aiohttp reads and writes HTTP on it, this ends it when its time is over.

    SILENT ──first byte──► HANDSHAKE ──done──► HEAD ──whole head──► BUSY ──answered──► IDLE ──whole head──► BUSY …
       │                       │                │                    │                  │
       │                       │                │                    │ ▲                │
       │                       │                │                    ▼ └──its end       │
       │                       │                │                  LASTING              │
       └───────────────────────┴────────────────┴──time is over──────┴──────────────────┴──evicted, lost──► closed

LASTING is BUSY with an answer that goes on: it has a time for each chunk instead of one for all.

The time of a state does not begin again with each byte. Those of SILENT and HANDSHAKE are kept by the listener, that of
TLS's end by the event loop. What aiohttp answers by itself (a head that is no HTTP) is written in HEAD or IDLE, within
their times.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from scheduler.serve.port.limits import MAX_FIELDS, MAX_HEAD_LINE, Limits

MAX_UNSENT: Final = 64 * 1024
"""Bytes of an answer that goes on, in the transport, before the source has to wait."""

HTTP_LOG: Final = logging.getLogger(f"{__name__}.http")
"""aiohttp's, without malformed requests: anyone may send them at any rate, and their senders get a 400."""

HTTP_LOG.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError)))

Handler = Callable[["Connection", web.BaseRequest], Awaitable[web.StreamResponse]]


class Connection(asyncio.Protocol):
    """The protocol of a transport. It delegates to aiohttp's protocol, and enforces the time limits."""

    def __init__(
        self, address: str, handler: Handler, limits: Limits, gone: Callable[["Connection", str], None]
    ) -> None:
        """`gone`: called once, with the reason, when the connection has ended."""
        self._loop = asyncio.get_running_loop()
        self.address = address
        """The result of `peer_of`."""
        self.has_spoken = False
        """Whether a byte has come."""
        self.quiet_since: float | None = self._loop.time()
        """None while a request is under way."""
        self.plain: socket.socket | None = None
        """The socket, while it is silent or shakes hands."""
        self.ended_by = ""
        """Why we ended it; empty if the peer did, or it has not ended."""
        self._handler = handler
        self._limits = limits
        self._gone = gone
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lasting: asyncio.Timeout | None = None
        """Of the answer that goes on, if there is one: it ends early by this."""
        self._http: RequestHandler
        """Of aiohttp; there is one once hands are shaken."""

    @property
    def client_certificate(self) -> bytes | None:
        """The client's certificate, in DER; TLS has verified it."""
        tls = self._transport and self._transport.get_extra_info("ssl_object")
        return cast("bytes | None", tls.getpeercert(binary_form=True)) if tls else None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While a request is under way."""
        self.quiet_since = None
        self._end_after(self._limits.request_seconds, "request")
        try:
            yield
        finally:
            self.quiet_since = self._loop.time()
            self._end_after(self._limits.idle_seconds, "idle")

    @asynccontextmanager
    async def lasting(self) -> AsyncIterator[None]:
        """While an answer goes on, within `busy`. The block is left when the connection ends, or by `finish`."""
        self._stop_timer()
        over = asyncio.timeout(None)
        try:
            async with over:
                self._lasting = over
                if self._transport is None:
                    self.finish()
                else:
                    self._transport.set_write_buffer_limits(MAX_UNSENT)
                    self._give_up_unacknowledged(self._transport)
                yield
        except TimeoutError:
            if not over.expired():
                raise
        finally:
            self._lasting = None
        self._end_after(self._limits.chunk_seconds, "slow")  # for what is left

    @contextmanager
    def taking(self) -> Iterator[None]:
        """While the reader has to take a chunk of an answer that goes on."""
        self._end_after(self._limits.chunk_seconds, "slow")
        try:
            yield
        finally:
            self._stop_timer()

    def finish(self) -> None:
        """Have the answer that goes on end; nothing, if there is none."""
        if self._lasting is not None and not self._lasting.expired():
            self._lasting.reschedule(self._loop.time())

    def end(self, why: str) -> None:
        """End it at once. `why`: for the metric."""
        self.ended_by = self.ended_by or why
        if self._transport is not None:
            self._transport.abort()
        elif self.plain is not None:
            with suppress(OSError):  # the peer has gone already
                self.plain.shutdown(socket.SHUT_RDWR)

    def _give_up_unacknowledged(self, transport: asyncio.Transport) -> None:
        """A peer that vanished without a word is noticed by what it does not acknowledge; by default in 15 minutes."""
        plain = transport.get_extra_info("socket")
        option = getattr(socket, "TCP_USER_TIMEOUT", None)
        if plain is not None and option is not None:
            with suppress(OSError):
                plain.setsockopt(socket.IPPROTO_TCP, option, int(self._limits.chunk_seconds * 1000))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_after(self, seconds: float, state: str) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self.end, state) if self._transport else None

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # A server of its own, as that is how aiohttp's protocol gets a handler that knows the connection.
        self._http = web.Server(
            lambda request: self._handler(self, request),
            access_log=None,
            logger=HTTP_LOG,
            keepalive_timeout=2 * self._limits.idle_seconds,  # our timer is first
            lingering_time=0,
            max_line_size=MAX_HEAD_LINE,
            max_field_size=MAX_HEAD_LINE,
            max_headers=MAX_FIELDS,
            auto_decompress=False,
        )()
        self._http.connection_made(transport)
        self._end_after(self._limits.head_seconds, "head")

    def data_received(self, data: bytes) -> None:
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        self._http.eof_received()
        return None

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._stop_timer()
        self.finish()
        self._http.connection_lost(error)
        self._gone(self, self.ended_by)
