"""Requests to the API server at next to no cost: HTTP/1.1 on TLS connections that stay open, bodies encoded before.

The load generator shares the machine's cores with what is measured. aiohttp or kubernetes would take several times the
CPU of this for each request, and the pods would come too slowly for a quick scheduler.
"""

import re
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

TIMEOUT: Final = 60.0
"""Seconds for an answer."""

METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""As an answer to a write, it is half of the work for both sides."""

LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class WireError(Exception):
    """No answer came, or one that is not HTTP."""


class Refused(Exception):
    """The API server answered with an error; the text has its status and the message."""

    def __init__(self, request: "Request", answer: "Answer") -> None:
        super().__init__(
            f"{request.method} {request.path}: {answer.status} {answer.body[:500].decode(errors='replace')}"
        )
        self.status = answer.status


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    """With a leading slash, and with parameters."""
    what: str
    """The resource and subresource: `pods/binding`."""
    body: bytes = b""
    content_type: str = "application/json"
    whole: bool = False
    """Whether the answer is not to be metadata alone. With GET it never is, and for a list of objects it cannot be."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status < 400


class Server:
    """Where the API server is, and who asks."""

    def __init__(self, port: int, ca: Path, token: str, host: str = "127.0.0.1") -> None:
        self.port = port
        self.token = token
        self.host = host
        self._tls = ssl.create_default_context(cafile=str(ca))

    def connect(self) -> "Wire":
        """A new connection. Raises WireError."""
        try:
            plain = socket.create_connection((self.host, self.port), timeout=TIMEOUT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Wire(self._tls.wrap_socket(plain, server_hostname=self.host), self)
        except OSError as error:
            raise WireError(f"connecting to the API server: {error!r}") from error

    def encode(self, request: Request) -> bytes:
        """The bytes of a request."""
        accept = "application/json" if request.whole or request.method == "GET" else METADATA_ONLY
        head = (
            f"{request.method} {request.path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n"
            f"Accept: {accept}\r\nContent-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n\r\n"
        )
        return head.encode() + request.body


class Wire:
    """A connection with one request at a time. A context manager."""

    def __init__(self, connection: ssl.SSLSocket, server: Server) -> None:
        self._socket = connection
        self._server = server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def request(self, request: Request) -> Answer:
        """Send and wait for the answer, whatever it is. Raises WireError."""
        self.send(self._server.encode(request))
        return self.receive()

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise WireError(f"sending to the API server: {error!r}") from error

    def receive(self) -> Answer:
        """Read one answer, all of it. Raises WireError."""
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._read()
        head, body = data[:end], data[end + 4 :]
        try:
            status = int(head[9:12])
        except ValueError:
            raise WireError(f"not HTTP: {head[:100]!r}") from None
        if length := LENGTH.search(head):
            parts, missing = [body], int(length[1]) - len(body)
            while missing > 0:
                parts.append(self._read())
                missing -= len(parts[-1])
            return Answer(status, b"".join(parts))
        if not CHUNKED.search(head):
            return Answer(status, b"")
        return Answer(status, b"".join(self._chunks(body)))

    def _chunks(self, data: bytes) -> Iterator[bytes]:
        while True:
            while (end := data.find(b"\r\n")) < 0:
                data += self._read()
            size, data = int(data[:end], 16), data[end + 2 :]
            parts, have = [data], len(data)
            while have < size + 2:
                parts.append(self._read())
                have += len(parts[-1])
            data = b"".join(parts)
            if size == 0:
                return
            yield data[:size]
            data = data[size + 2 :]

    def _read(self) -> bytes:
        try:
            data = self._socket.recv(1 << 16)
        except OSError as error:
            raise WireError(f"reading from the API server: {error!r}") from error
        if not data:
            raise WireError("the API server closed the connection")
        return data


Job = Sequence[Request]
"""Requests that are sent one after the other, each when the one before was answered."""


def send_all(server: Server, jobs: Iterable[Job], connections: int, done: Callable[[int, float], None]) -> None:
    """Carry out jobs, `connections` at a time and in about their order.

    `done` is told the number of each, and when the last of its requests was sent (monotonic seconds).

    Raises Refused with the first answer that is an error, or WireError; what was sent until then stays.
    """
    waiting = enumerate(jobs)
    with selectors.DefaultSelector() as selector:
        wires: list[Wire] = []
        try:
            while len(wires) < connections and (job := next(waiting, None)):
                wires.append(wire := server.connect())
                running = Running(*job)
                running.send(wire, server)
                selector.register(wire, selectors.EVENT_READ, running)
            while selector.get_map():
                ready = selector.select(TIMEOUT)
                if not ready:
                    raise WireError(f"no answer of the API server in {TIMEOUT:.0f} s")
                for key, _ in ready:
                    step(server, selector, key, waiting, done)
        finally:
            for wire in wires:
                wire.close()


class Running:
    """A job under way."""

    def __init__(self, number: int, job: Job) -> None:
        self.number = number
        self._left = list(job)[::-1]
        self.sent = 0.0
        """When the latest request was sent."""

    @property
    def request(self) -> Request:
        """The one that is under way."""
        return self._left[-1]

    def send(self, wire: Wire, server: Server) -> None:
        """Send the next request."""
        self.sent = time.monotonic()
        wire.send(server.encode(self.request))

    def advance(self) -> bool:
        """Go to the next request; False if that was the last."""
        self._left.pop()
        return bool(self._left)


def step(
    server: Server,
    selector: selectors.BaseSelector,
    key: selectors.SelectorKey,
    waiting: Iterator[tuple[int, Job]],
    done: Callable[[int, float], None],
) -> None:
    """Take the answer on one connection and send what comes next on it."""
    assert isinstance(key.fileobj, Wire)
    wire, running = key.fileobj, key.data
    answer = wire.receive()
    if not answer.ok:
        raise Refused(running.request, answer)
    if not running.advance():
        done(running.number, running.sent)
        job = next(waiting, None)
        if job is None:
            selector.unregister(wire)
            return
        running = Running(*job)
        selector.modify(wire, selectors.EVENT_READ, running)
    running.send(wire, server)
