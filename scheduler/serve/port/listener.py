"""The port itself: accepts connections within the limits and shakes hands.

We accept by ourselves, since asyncio's servers accept everything: a connection is counted from here on, before TLS, and
a client without a place costs an accept and a close.
"""

import asyncio
import errno
import ipaddress
import logging
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final

from scheduler.framework.errors import ConfigError
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.serve.port.connection import Connection, Handler
from scheduler.serve.port.limits import Limits
from scheduler.serve.port.places import Places, peer_of

BACKLOG: Final = 128

CLOSE_SECONDS: Final = 1.0
"""For handshakes under way when the port is left."""

PAUSE_SECONDS: Final = 1.0
"""After an accept that failed for want of descriptors or memory."""

log = logging.getLogger(__name__)


class Listener:
    """Serves from `open` to `close`."""

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext | None],
        handler: Handler,
        limits: Limits,
        metrics: Metrics,
        tasks: Tasks,
    ) -> None:
        """`context`: what the next handshake uses; None for HTTP without TLS, whose handshake is the first byte."""
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._handler = handler
        self._limits = limits
        self._ended = metrics.serving_connections_ended
        self.places = Places(limits, self._loop.time)
        self._socket: socket.socket | None = None
        # Far more than one may take: they end by their own limit.
        self._handshakes = tasks.jobs("TLS handshake", 3 * limits.handshake_seconds)

    @property
    def port(self) -> int:
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    def open(self, address: str, port: int) -> None:
        """Take the port; 0: any free one. Raises ConfigError."""
        try:
            self._socket = _listening_socket(address, port)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise ConfigError([f"cannot listen on {address}:{port}: {reason}"]) from error

    async def accept(self) -> None:
        """Take connections for ever."""
        assert self._socket is not None
        while True:
            try:
                plain, peer = await self._loop.sock_accept(self._socket)
            except OSError as error:
                await self._recover(error)
                continue
            self._begin(plain, peer[0])
            await asyncio.sleep(self._limits.accept_pause_seconds)

    async def close(self) -> None:
        """End all connections and leave the port."""
        if self._socket is not None:
            self._socket.close()
        self.places.evict_where(lambda _: True)
        await self._handshakes.finish(CLOSE_SECONDS)
        await asyncio.sleep(0)  # the transports call their protocols

    def evict_identified(self) -> None:
        """End the connections whose client has shown a certificate."""
        self.places.evict_where(lambda connection: connection.client_certificate is not None)

    async def _recover(self, error: OSError) -> None:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
            log.warning("A connection cannot be accepted", extra={"err": str(error)})
            self.places.evict_quietest()
            await asyncio.sleep(PAUSE_SECONDS)
        # Otherwise the peer has gone before it was accepted.

    def _begin(self, plain: socket.socket, host: str) -> None:
        connection = Connection(peer_of(host), self._handler, self._limits, self._gone)
        if not self.places.admit(connection):
            self._ended.labels("refused").inc()
            plain.close()
            return
        plain.setblocking(False)
        connection.plain = plain
        self._handshakes.start(f"TLS handshake with {connection.address}", self._shake_hands(plain, connection))

    async def _shake_hands(self, plain: socket.socket, connection: Connection) -> None:
        try:
            try:
                await self._hear(plain, connection)
            except BaseException:
                plain.close()  # from here on the event loop does
                raise
            context = self._context()
            await self._loop.connect_accepted_socket(
                lambda: connection,
                plain,
                ssl=context,
                ssl_handshake_timeout=self._limits.handshake_seconds if context else None,
                ssl_shutdown_timeout=self._limits.close_seconds if context else None,
            )
        except OSError as error:  # also ssl.SSLError and TimeoutError
            log.debug("TLS handshake failed", extra={"peer": connection.address, "err": str(error)})
            self._gone(connection, connection.ended_by or "handshake")
        finally:
            connection.plain = None

    async def _hear(self, plain: socket.socket, connection: Connection) -> None:
        """Wait for the first byte, without reading it: until then a connection costs next to nothing.

        Raises OSError if there shall be no handshake.
        """
        arrived = asyncio.Event()
        self._loop.add_reader(plain, arrived.set)
        try:
            async with asyncio.timeout(self._limits.handshake_seconds):
                await arrived.wait()
        finally:
            self._loop.remove_reader(plain)
        if not connection.ended_by and not self.places.may_shake_hands(connection.address):
            connection.ended_by = "rate"
        if connection.ended_by:
            raise ConnectionAbortedError(connection.ended_by)
        connection.has_spoken = True

    def _gone(self, connection: Connection, why: str) -> None:
        self.places.release(connection)
        if why:
            self._ended.labels(why).inc()


def _listening_socket(address: str, port: int) -> socket.socket:
    ip = ipaddress.ip_address(address)
    if ip.is_unspecified and socket.has_dualstack_ipv6():
        listening = socket.create_server(("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    else:
        family = socket.AF_INET6 if ip.version == 6 else socket.AF_INET
        listening = socket.create_server((address, port), family=family, backlog=BACKLOG)
    listening.setblocking(False)
    return listening
