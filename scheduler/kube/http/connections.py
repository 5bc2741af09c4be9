"""Kept-alive connections to the API server: one request at a time on each, and no doubt about what was sent.

aiohttp's session is right for streams, proxies and anything unusual. But it takes 110 µs of CPU per call, and a pod
takes two calls. With this, a binding takes 102 µs instead of 181, most of it in TLS and the kernel.

    (none) ──connect──► idle ──ask──► busy ──whole answer, kept open──► idle
       │                 │             └──timeout, cancelled, broken, unreadable, closing──► closed
       └─CannotConnect   └──end of stream, unrequested bytes, too old, retired──► closed

Nothing is ever sent twice: callers settle what a lost answer means.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import aiohappyeyeballs

from scheduler.kube.http.http1 import Answer, AnswerReader, BadAnswer, is_plain
from scheduler.kube.http.sockets import loops_socket

CONNECT_SECONDS: Final = 5.0
"""For names, TCP and TLS together; a part of the call's own timeout."""

KEEPALIVE_SECONDS: Final = 55.0
"""Idle connections are closed after this: before load balancers do (60 s and more), which would lose an answer."""

NEXT_ADDRESS_SECONDS: Final = 0.25
"""After this, the name's next address is tried alongside the previous one (RFC 8305)."""

CLOSE_SECONDS: Final = 1.0
"""How long `close` waits for the connections to end."""


class CannotConnect(Exception):
    """No connection could be made: nothing was sent."""


class Target(NamedTuple):
    """The target of a connection, which is never used for another one."""

    server: str
    """A URL, perhaps with a path."""
    server_hostname: str | None
    """The name that the server's certificate must carry, if not the host's."""
    certificates: object
    """Equal while our client certificate is the same."""


class Connections:
    """A pool of connections to one target, for one event loop."""

    def __init__(self, target: Target, tls: ssl.SSLContext, keepalive: float = KEEPALIVE_SECONDS) -> None:
        """`keepalive`: seconds for which an idle connection is kept.

        Raises ValueError if the target is no address.
        """
        url = urlsplit(target.server)
        if url.scheme not in ("http", "https") or not url.hostname or not is_plain(url.path or "/"):
            raise ValueError(f"not the URL of a server: {target.server!r}")
        self._host = url.hostname
        self._tls = tls if url.scheme == "https" else None
        self._port = url.port or (443 if self._tls else 80)
        self._server_hostname = (target.server_hostname or self._host) if self._tls else None
        self.host = url.netloc.rpartition("@")[2]
        """The Host header."""
        self.prefix = url.path
        """Prepended to every path."""
        self._keepalive = keepalive
        self._loop = asyncio.get_running_loop()
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []
        """The most recently used is at the end, and is used next, so that surplus ones expire."""
        self._retired = False
        self._sweeping: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    def trust(self, tls: ssl.SSLContext) -> None:
        """Make further connections with this."""
        if self._tls is not None:
            self._tls = tls

    @property
    def open(self) -> int:
        """How many connections there are, idle or busy."""
        return len(self._open)

    async def ask(self, request: bytes, seconds: float, may_send: Callable[[], bool] | None = None) -> Answer:
        """Send a request and return its answer, whatever it is.

        `may_send` is asked right before the bytes are written. Raises CannotConnect if nothing was sent; TimeoutError
        after `seconds`, another OSError or BadAnswer if the answer is lost.
        """
        connection = self._take()
        if connection is None:
            started = self._loop.time()
            connection = await self._connect(min(seconds, CONNECT_SECONDS))
            seconds -= self._loop.time() - started
        # No await between this and the system call that writes: `_Connection.ask` begins with it, and both event loops
        # write at once what fits into the socket's buffer, as one request on a connection does.
        if may_send is not None and not may_send():
            self._keep(connection)
            raise CannotConnect("this replica does not lead")
        answer = await connection.ask(request, seconds)
        if self._retired or not answer.reusable or answer.status == 401:  # 401: perhaps for an old certificate
            connection.close()
        else:
            self._keep(connection)
        return answer

    def retire(self) -> None:
        """Use no connection again; busy ones end with their answers."""
        self._retired = True
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """End all connections; answers under way are lost."""
        self.retire()
        if self._open:
            self._emptied = self._loop.create_future()
            for connection in tuple(self._open):
                connection.abort()
            await asyncio.wait([self._emptied], timeout=CLOSE_SECONDS)

    def _keep(self, connection: "_Connection") -> None:
        if self._retired:
            connection.close()
        if not connection.usable:
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(self._keepalive / 4, self._sweep)

    def _take(self) -> "_Connection | None":
        oldest = self._loop.time() - self._keepalive
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    def _sweep(self) -> None:
        """Close connections that have been idle for too long."""
        oldest = self._loop.time() - self._keepalive
        kept = []
        for connection in self._idle:
            if connection.usable and connection.idle_since > oldest:
                kept.append(connection)
            else:
                connection.close()
        self._idle = kept
        self._sweeping = self._loop.call_later(self._keepalive / 4, self._sweep) if kept else None

    async def _connect(self, seconds: float) -> "_Connection":
        try:
            async with asyncio.timeout(seconds):
                addresses = await self._loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                plain = await aiohappyeyeballs.start_connection(
                    addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS, interleave=1, socket_factory=loops_socket
                )
                return await self._wrap(plain)
        except OSError as error:  # also TimeoutError and ssl.SSLError
            text = str(error) or type(error).__name__
            raise CannotConnect(f"cannot connect to {self._host}:{self._port}: {text}") from error

    async def _wrap(self, plain: socket.socket) -> "_Connection":
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError:
            plain.close()
            raise
        # From here on the socket is the loop's, which closes it if TLS fails.
        _, connection = await self._loop.create_connection(
            lambda: _Connection(self._loop, self._open, self._gone),
            sock=plain,
            ssl=self._tls,
            server_hostname=self._server_hostname,
        )
        if not connection.usable:
            raise ConnectionResetError("the server closed the connection at once")
        return connection

    def _gone(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        if not self._open and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)


class _Connection(asyncio.Protocol):
    """One connection, idle or with one request under way."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, all_open: set["_Connection"], gone: Callable[["_Connection"], None]
    ) -> None:
        self._loop = loop
        self._all_open = all_open
        self._on_gone = gone
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._outcome: asyncio.Future[Answer | Exception] | None = None
        """Of the request under way. Errors are results, as an exception might never be retrieved."""
        self._ended = False
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        """Whether it can take another request."""
        return not self._ended and self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes, seconds: float) -> Answer:
        """Send a request and return its answer. Without an answer, close and raise OSError or BadAnswer."""
        assert self._transport is not None
        outcome = self._outcome = self._loop.create_future()
        self._reader = AnswerReader()
        deadline = self._loop.call_later(seconds, self._end, TimeoutError("no answer in time"))
        self._transport.write(request)
        try:
            answer: Answer | Exception = await outcome
        except BaseException:  # cancelled: the answer would come to the next request
            self.abort()
            raise
        finally:
            deadline.cancel()
            self._outcome = None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End it in order."""
        self._ended = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End it at once."""
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._all_open.add(self)

    def data_received(self, data: bytes) -> None:
        if self._outcome is None or self._outcome.done() or self._reader is None:
            self.abort()  # unrequested: it could be taken for the next request's answer
            return
        try:
            answer = self._reader.feed(data)
        except BadAnswer as error:
            self._end(error)
            return
        if answer is not None:
            self._outcome.set_result(answer)

    def eof_received(self) -> None:
        self._end(ConnectionResetError("the server closed the connection before the whole answer had come"))

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._end(error or ConnectionResetError("the connection was closed before the whole answer had come"))
        self._on_gone(self)

    def _end(self, error: Exception) -> None:
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(error)
        self.abort()
