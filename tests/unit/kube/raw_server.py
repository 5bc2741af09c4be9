"""An HTTP server that answers with given bytes, on a port of this machine."""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trustme

OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CLOSE: Final = b""
"""In an answer, after which nothing is read any more."""


class RawServer:
    """Answers each request by the next of `answers`, the last for ever: pieces that are sent one by one."""

    def __init__(self, *answers: tuple[bytes, ...]) -> None:
        self.answers = deque(answers or ((OK,),))
        self.connections = 0
        """All that there were."""
        self.open = 0
        """Connections that nobody has closed."""
        self.asked = asyncio.Event()
        """Set with each request."""
        self.requests: list[bytes] = []
        self.held = asyncio.Event()
        """While cleared, no answer is given."""
        self.held.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while await self._answer(reader, writer):
                continue
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # as the client likes
        finally:
            self.open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        self.requests.append(head + await reader.readexactly(length))
        self.asked.set()
        answer = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
        await self.held.wait()
        for piece in answer:
            if piece == CLOSE:
                return False
            writer.write(piece)
            await writer.drain()
        return True


def serving(authority: trustme.CA) -> ssl.SSLContext:
    """Return what a server of this machine shows, signed by an authority of the test's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context
