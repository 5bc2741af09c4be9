"""A proxy between one replica and the API server that makes the network's trouble.

It ends TLS with a certificate of its own and passes requests, with their tokens, on to the API server, over one
connection for each of the replica's. It never repeats anything.

    client ──TLS──► read a request ──► treat it ──► API server ──► answer, in parts as they come ──► client
"""

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final

from tests.chaos.record import Post, Record
from tests.chaos.trouble import Share, Treatment, Trouble
from tests.chaos.wire import EXPIRED, HEAD_LIMIT, Head, Request, chunk, read_body, read_head, read_request, refusal

PACE_SECONDS: Final = 0.02
"""Between the parts of an answer that is slowed down."""

END_SECONDS: Final = 5.0
"""For connections to end after a reset."""

BROKEN: Final = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)
"""How either side of a connection can end (`ssl.SSLError` is an OSError, `IncompleteReadError` an EOFError)."""

REFUSALS: Final = {Treatment.THROTTLE: 429, Treatment.INTERNAL: 500, Treatment.UNAVAILABLE: 503, Treatment.DENY: 403}


class Proxy:
    """One listener, for one replica; an async context manager. Methods that make trouble act at once."""

    def __init__(
        self,
        port: int,
        upstream_port: int,
        tls: ssl.SSLContext | None,
        upstream_tls: ssl.SSLContext | None,
        trouble: Trouble,
    ) -> None:
        """`tls` is the proxy's own, `upstream_tls` that of a client of the API server; None: without."""
        self.port = port
        self.trouble = trouble
        self.record = Record()
        self.incarnation = ""
        """Of the process that uses it now."""
        self.treated: Counter[str] = Counter()
        """How many requests were treated other than well."""
        self.renewed = 0.0
        """When the API server took a Lease from it for the last time: of several, the last one leads."""
        self._upstream_port = upstream_port
        self._tls = tls
        self._upstream_tls = upstream_tls
        self._listening: socket.socket | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._connections: set[_Connection] = set()

    async def __aenter__(self) -> "Proxy":
        self.accept()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        self.trouble.clear()
        self.reset()
        if self._serving:
            await asyncio.wait(self._serving, timeout=END_SECONDS)

    @property
    def open(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    def accept(self) -> None:
        """Take connections again."""
        if self._listening is None:
            self._listening = socket.create_server(("127.0.0.1", self.port), backlog=512)
            self._listening.setblocking(False)
            asyncio.get_running_loop().add_reader(self._listening, self._accept, self._listening)

    def refuse(self) -> None:
        """Refuse new connections; those that exist stay."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    def _accept(self, listening: socket.socket) -> None:
        # Not asyncio.start_server: closed in the middle of an accept, that of Python 3.11 loses the connection.
        with contextlib.suppress(OSError):  # it has gone again
            plain, _ = listening.accept()
            task = asyncio.create_task(self._serve(plain))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    def reset(self) -> None:
        """End all connections with a reset."""
        for connection in tuple(self._connections):
            connection.abort()

    def strand(self) -> None:
        """Leave all connections half open: they stay, and nothing goes over them any more."""
        for connection in self._connections:
            connection.stranded = True

    def cut_watches(self, ending: str) -> None:
        """End each watch in the middle of its next line: by `reset`, `close`, or a well-formed `end` of the answer."""
        for connection in self._connections:
            connection.cut = ending

    def expire_watches(self) -> None:
        """Tell each watch that its version is too old (410), as after a compaction."""
        for connection in self._connections:
            connection.expired.set()

    def close_idle(self) -> None:
        """Close the connections that wait for a request, as servers do."""
        for connection in tuple(self._connections):
            if connection.is_idle:
                connection.close()

    def heal(self) -> None:
        """End all trouble. Connections that were stranded or are hung get the reset that a living network sends."""
        self.trouble.clear()
        for connection in tuple(self._connections):
            if connection.stranded:
                connection.abort()
            connection.cut = ""
        self.accept()

    async def _serve(self, plain: socket.socket) -> None:
        loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=HEAD_LIMIT)
        protocol = asyncio.StreamReaderProtocol(reader)
        plain.setblocking(False)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, plain, ssl=self._tls)
        except BROKEN:
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        connection = _Connection(self, reader, writer, self.incarnation)
        self._connections.add(connection)
        try:
            await connection.run()
        except BROKEN:
            connection.abort()
        finally:
            connection.close()
            self._connections.remove(connection)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the API server. Raises OSError."""
        return await asyncio.open_connection("127.0.0.1", self._upstream_port, ssl=self._upstream_tls, limit=HEAD_LIMIT)


class _Connection:
    """One connection of the replica, and the one to the API server that belongs to it."""

    def __init__(
        self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, incarnation: str
    ) -> None:
        self.stranded = False
        self.cut = ""
        self.expired = asyncio.Event()
        self.is_idle = True
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._incarnation = incarnation
        self._upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._aborted = asyncio.Event()

    async def run(self) -> None:
        """Serve requests until one side ends. Raises what is in BROKEN."""
        while request := await read_request(self._reader):
            self.is_idle = False
            post = self._proxy.record.post(request, self._incarnation) if request.is_binding else None
            await self._pass()
            treatment = self._proxy.trouble.choose(request)
            if treatment.treatment is not Treatment.FORWARD:
                self._proxy.treated[treatment.treatment.value] += 1
            if post is not None:
                post.treatment = treatment.treatment.value
            if not await self._treat(request, treatment, post):
                return
            self.is_idle = True

    def abort(self) -> None:
        """End it with a reset."""
        self._aborted.set()
        if (plain := self._writer.get_extra_info("socket")) is not None:
            with contextlib.suppress(OSError):  # it has ended
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
        self._close_upstream()

    def close(self) -> None:
        """End it in order."""
        self._writer.close()
        self._close_upstream()

    def _close_upstream(self) -> None:
        if self._upstream is not None:
            self._upstream[1].transport.abort()

    async def _treat(self, request: Request, share: Share, post: Post | None) -> bool:
        """Answer a request in one way or another; return whether the connection goes on."""
        if share.treatment in REFUSALS:
            await self._send(refusal(REFUSALS[share.treatment], share.retry_after))
            return True
        reader, head = await self._ask(request, post)
        if post is not None:
            post.status = head.status
        if request.is_renewal and head.status == 200:
            self._proxy.renewed = time.monotonic()
        match share.treatment:
            case Treatment.FORWARD if request.is_watch and head.status == 200:
                return await self._stream(reader, head)
            case Treatment.FORWARD:
                await self._answer(request, head, await whole(read_body(reader, head)))
                return True
            case Treatment.BROKEN:
                await whole(read_body(reader, head))
                await self._send(refusal(504))
                return True
            case Treatment.CUT if not request.is_watch:
                body = framed(head, await whole(read_body(reader, head)))
                await self._send(head.raw + body[: len(body) // 2])
                self.abort()
                return False
            case Treatment.HANG:
                self.stranded = True
                await self._aborted.wait()
                return False
            case _:  # LOSE, and a watch that is cut before its first line
                self.abort()
                return False

    async def _ask(self, request: Request, post: Post | None) -> tuple[asyncio.StreamReader, Head]:
        if self._upstream is None:
            self._upstream = await self._proxy.connect()
        reader, writer = self._upstream
        writer.write(request.raw)
        await writer.drain()
        if post is not None:
            post.forwarded = True
        return reader, await read_head(reader)

    async def _answer(self, request: Request, head: Head, body: bytes) -> None:
        await self._send(head.raw + framed(head, body))
        if request.method == "GET" and request.path in ("/api/v1/pods", "/api/v1/nodes") and head.status == 200:
            self._proxy.record.list_told(self._incarnation, body, gzipped=head.gzipped)
        elif pod := request.pod_read:
            self._proxy.record.read(pod, self._incarnation)

    async def _stream(self, reader: asyncio.StreamReader, head: Head) -> bool:
        """Pass a watch on until one side ends it; return whether the connection can be used again."""
        await self._send(head.raw)
        following = asyncio.create_task(self._follow(reader, head))
        gone = asyncio.create_task(self._gone())
        expired = asyncio.create_task(self.expired.wait())
        try:
            await asyncio.wait((following, gone, expired), return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                return following.result()
            if expired.done():
                await ended(following)
                await self._send(chunk(EXPIRED) + chunk(b""))
            return False
        finally:
            await ended(following, gone, expired)

    async def _follow(self, reader: asyncio.StreamReader, head: Head) -> bool:
        rest = b""
        async for part in read_body(reader, head):
            if self.cut:
                return await self._cut(part)
            await self._send(chunk(part))
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                self._proxy.record.line_told(self._incarnation, line)
        await self._send(chunk(b""))
        return True

    async def _cut(self, part: bytes) -> bool:
        half = part[: len(part) // 2]
        if self.cut == "end":
            await self._send(chunk(half) + chunk(b""))
            self.close()
        else:
            await self._send(b"%x\r\n%b" % (len(part), half))
            if self.cut == "reset":
                self.abort()
            else:
                self.close()
        return False

    async def _gone(self) -> None:
        """Return when the client has gone away from a watch."""
        with contextlib.suppress(OSError):
            await self._reader.read(1)

    async def _pass(self) -> None:
        """Wait while nothing moves."""
        if self.stranded:
            await self._aborted.wait()
            raise ConnectionResetError("half open")
        await self._proxy.trouble.thawed.wait()

    async def _send(self, data: bytes) -> None:
        rate = self._proxy.trouble.bytes_per_second
        size = max(1, int(rate * PACE_SECONDS)) if rate else len(data)
        for start in range(0, len(data), size or 1):
            await self._pass()
            self._writer.write(data[start : start + size])
            await self._writer.drain()
            if rate and self._proxy.trouble.bytes_per_second:
                await asyncio.sleep(PACE_SECONDS)


def framed(head: Head, body: bytes) -> bytes:
    """The body as the head announces it: in chunks, or as it is."""
    return body if head.length is not None else (chunk(body) if body else b"") + chunk(b"")


async def whole(parts: AsyncIterator[bytes]) -> bytes:
    """All parts of a body."""
    return b"".join([part async for part in parts])


async def ended(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
