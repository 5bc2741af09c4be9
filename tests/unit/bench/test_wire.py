import socket
import ssl
import threading
from collections.abc import Iterator
from typing import cast

import pytest

from tests.bench.wire import Answer, Refused, Request, Server, Wire, WireError, send_all

OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n"


class FakeServer(Server):
    """Answers each request of a connection with the next of its answers. No TLS: encryption is not what is tested."""

    def __init__(self, *answers: bytes) -> None:
        self.host, self.token = "here", "secret"
        self.requests: list[bytes] = []
        self.connections = 0
        self.answers = list(answers)
        self._lock = threading.Lock()

    def connect(self) -> Wire:
        self.connections += 1
        ours, theirs = socket.socketpair()
        threading.Thread(target=self._serve, args=(theirs,), daemon=True).start()
        return Wire(cast("ssl.SSLSocket", ours), self)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(1 << 16):
                with self._lock:
                    self.requests.append(data)
                    answer = self.answers.pop(0) if self.answers else OK
                connection.sendall(answer)


@pytest.fixture
def pair() -> Iterator[tuple[Wire, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Wire(cast("ssl.SSLSocket", ours), FakeServer()), theirs


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(OK, Answer(201, b"{}"), id="a length"),
        pytest.param(CHUNKED, Answer(200, b"hello, world"), id="chunks"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, b""), id="no body"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_answer_is_read_to_its_end_in_whatever_parts_it_comes(
    pair: tuple[Wire, socket.socket], data: bytes, expected: Answer, size: int
) -> None:
    wire, other = pair

    def write() -> None:
        for start in range(0, len(data), size):
            other.sendall(data[start : start + size])

    writer = threading.Thread(target=write)
    writer.start()

    assert wire.receive() == expected
    writer.join()


@pytest.mark.parametrize(("data", "message"), [(b"nonsense\r\n\r\n", "not HTTP"), (b"HTTP/1.1 200", "closed")])
def test_what_is_no_answer_is_an_error(pair: tuple[Wire, socket.socket], data: bytes, message: str) -> None:
    wire, other = pair
    other.sendall(data)
    other.shutdown(socket.SHUT_WR)

    with pytest.raises(WireError, match=message):
        wire.receive()


def test_the_requests_of_a_job_follow_each_other_and_each_job_is_reported_once() -> None:
    server = FakeServer()
    jobs = [[Request("POST", f"/{number}/{part}", "things") for part in "ab"] for number in range(10)]
    done: dict[int, float] = {}

    send_all(server, jobs, 3, done.__setitem__)

    assert sorted(done) == list(range(10))
    assert server.connections == 3
    paths = [request.split(b" ", 2)[1].decode() for request in server.requests]
    assert sorted(paths) == sorted(request.path for job in jobs for request in job)
    assert all(paths.index(f"/{number}/a") < paths.index(f"/{number}/b") for number in range(10))


def test_a_refused_request_is_raised_with_what_was_said() -> None:
    server = FakeServer(b"HTTP/1.1 422 Unprocessable\r\nContent-Length: 10\r\n\r\nno such pod")

    with pytest.raises(Refused, match="POST /pods: 422 no such po"):
        send_all(server, [[Request("POST", "/pods", "pods")]], 1, lambda number, at: None)


def test_nothing_to_do_opens_no_connection() -> None:
    server = FakeServer()

    send_all(server, [], 30, lambda number, at: None)

    assert server.connections == 0


def test_a_request_has_its_length_its_token_and_a_write_asks_for_metadata_alone() -> None:
    server = FakeServer()

    head, _, body = server.encode(Request("POST", "/pods", "pods", b"{}")).partition(b"\r\n\r\n")

    assert body == b"{}"
    assert b"Authorization: Bearer secret\r\n" in head
    assert b"Content-Length: 2" in head
    assert b"as=PartialObjectMetadata" in head
    assert b"as=PartialObjectMetadata" not in server.encode(Request("GET", "/pods", "pods"))
