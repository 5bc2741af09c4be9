"""An event loop without a network and without time, so that what runs on it takes the same steps every time.

Connections lead to a server in this process, whose answer has come when the loop looks next. The clock stands still,
except for waits of up to a second, which are over at once. `idle` returns when there is nothing left to do.
"""

import asyncio
import selectors
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

Answer = tuple[int, bytes]
"""Status and body."""

Handler = Callable[[str, str, bytes], Answer]
"""Method, path and body of a request → its answer."""

SHORT: Final = 1.0
"""Seconds of a wait that is not waited for."""

PATIENCE: Final = 200
"""Times that the loop looks for something from outside, such as a thread, 50 ms each."""


class StillLoop(asyncio.SelectorEventLoop):
    """The loop; `serve` says who answers."""

    def __init__(self) -> None:
        self._instant = 1000.0
        self._idle: asyncio.Future[None] | None = None
        self._handler: Handler | None = None
        super().__init__(_Selector(self))

    def serve(self, handler: Handler) -> None:
        """Let every connection lead to this server."""
        self._handler = handler

    async def idle(self) -> None:
        """Return when no task can go on and nothing is due."""
        self._idle = self.create_future()
        await self._idle

    def time(self) -> float:
        return self._instant

    def nothing_to_do(self, wait: float | None) -> bool:
        """Whether a wait of that many seconds is settled without waiting."""
        if wait is not None and wait <= SHORT:
            self._instant += wait
            return True
        idle, self._idle = self._idle, None
        if idle is not None:
            idle.set_result(None)
        return idle is not None

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        """Without the thread in which it is usually asked."""
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", int(port)))]

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        raise AssertionError(f"a thread for {func}: nobody can count when it ends")

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Anything can be reached."""

    async def create_connection(self, protocol_factory: Any, *args: Any, **options: Any) -> Any:
        assert self._handler is not None, "nobody serves"
        if (sock := options.get("sock")) is not None:
            sock.close()
        protocol = protocol_factory()
        transport = _Connection(self, protocol, self._handler)
        protocol.connection_made(transport)
        return transport, protocol


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: StillLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if found := super().select(0):
            return found
        if (timeout is not None and timeout <= 0) or self._loop.nothing_to_do(timeout):
            return []
        for _ in range(PATIENCE):
            if found := super().select(0.05):
                return found
        raise TimeoutError("nothing goes on, and nobody waits for that")


class _Connection(asyncio.Transport):
    """The client's end. HTTP/1.1 with Content-Length, as the scheduler's client sends it."""

    def __init__(self, loop: StillLoop, protocol: Any, handler: Handler) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self._loop = loop
        self._protocol = protocol
        self._handler = handler
        self._received = bytearray()
        self._closed = False

    def write(self, data: Any) -> None:
        self._received += data
        while (request := _take_request(self._received)) is not None:
            status, body = self._handler(*request)
            head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self._loop.call_soon(self._answer, head.encode() + body)

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def _answer(self, data: bytes) -> None:
        if not self._closed:
            self._protocol.data_received(data)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self._closed

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def is_reading(self) -> bool:
        return not self._closed

    def pause_reading(self) -> None:
        raise NotImplementedError("answers are short")

    def resume_reading(self) -> None:
        """It was never paused."""

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def can_write_eof(self) -> bool:
        return False


def _take_request(received: bytearray) -> tuple[str, str, bytes] | None:
    """Method, path and body of the first request, taken out of what was received; None if it is not whole."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    line, *headers = bytes(received[:end]).decode().split("\r\n")
    lengths = [value for name, _, value in (each.partition(":") for each in headers) if name.lower() == _LENGTH]
    whole = end + 4 + int(lengths[0] if lengths else 0)
    if len(received) < whole:
        return None
    method, path, _ = line.split(" ")
    body = bytes(received[end + 4 : whole])
    del received[:whole]
    return method, path, body


_LENGTH: Final = "content-length"


class Tally:
    """Counts requests by what they are, `POST pods/binding`, as it passes them on."""

    def __init__(self, answers: Mapping[str, Handler]) -> None:
        """`answers`: who answers to what; anything else is an error of the test."""
        self._answers = answers
        self.requests: Counter[str] = Counter()

    def __call__(self, method: str, path: str, body: bytes) -> Answer:
        what = f"{method} {resource(path)}"
        self.requests[what] += 1
        return self._answers[what](method, path, body)


def resource(path: str) -> str:
    """The resource and subresource of an API path.

    >>> resource("/api/v1/namespaces/default/pods/web/binding")
    'pods/binding'
    """
    parts = path.partition("?")[0].strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return "/".join([rest[0], *rest[2:]])
