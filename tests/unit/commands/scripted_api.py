"""An API server that answers from a script, in a thread of its own: for whole commands."""

import fcntl
import json
import os
import socket
import struct
import termios
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

Script = Mapping[str, "Answer | tuple[Answer, ...]"]
"""`METHOD /path` → what is answered, in turn, the last one for ever."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int = 200
    body: Any = field(default_factory=dict)
    """Bytes as they are, anything else as JSON."""

    headers: Mapping[str, str] = field(default_factory=dict)
    breaks_after: int | None = None
    """Bytes, from the first of its head, after which the connection is reset; None: it is whole."""


LOST: Final = Answer(0)
"""The connection ends after the request was read."""

HANGS: Final = Answer(-1)
"""No answer comes as long as the server runs."""


def status(code: int, message: str, **more: Any) -> Answer:
    """An error as the API server tells it."""
    return Answer(code, {"kind": "Status", "apiVersion": "v1", "message": message, "code": code, **more})


def a_list(kind: str, *items: Any, more: str = "") -> Answer:
    """A page of a list; `more`: where the next page begins."""
    return Answer(
        body={"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"continue": more}, "items": list(items)}
    )


def a_program(directory: Path) -> dict[str, str]:
    """What a kubeconfig says of a program that gives another token each time, and writes into `runs` that it ran."""
    version = "client.authentication.k8s.io/v1"
    program = directory / "program"
    program.write_text(
        f"#!/bin/sh\ncd {directory}; echo run >> runs\n"
        f'echo "{{\\"kind\\": \\"ExecCredential\\", \\"apiVersion\\": \\"{version}\\", '
        '\\"status\\": {\\"token\\": \\"$(wc -l < runs | tr -d " ")\\"}}"\n'
    )
    program.chmod(0o755)
    return {"command": str(program), "apiVersion": version}


class ScriptedApi:
    """404 to what is not in the script, as an API server that does not serve it."""

    def __init__(self, script: Script) -> None:
        self.asked: list[str] = []
        """`METHOD /path?query` of each request."""
        self._script = defaultdict(
            deque[Answer],
            {key: deque(each if isinstance(each, tuple) else (each,)) for key, each in script.items()},
        )
        self.is_hanging = threading.Event()
        """Set once somebody waits for an answer that does not come."""
        self._ended = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet, or the client would wait for the second

            def do_GET(self) -> None:
                outer._answer(self)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                outer._answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """Whoever asked has gone, having read enough."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(f"{request.command} {request.path}")
        answers = self._script[f"{request.command} {urlsplit(request.path).path}"]
        if not answers:
            answer = status(404, "the server could not find the requested resource")
        else:
            answer = answers.popleft() if len(answers) > 1 else answers[0]
        if answer is HANGS:
            self.is_hanging.set()
            self._ended.wait()
        if answer is HANGS or answer is LOST:
            request.close_connection = True
            return
        if answer.breaks_after is not None:
            _break(request, answer)
            return
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        request.send_response(answer.status)
        for name, value in {"Content-Length": f"{len(body)}", **answer.headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)
        request.wfile.flush()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Answer for as long as the block runs."""
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def _break(request: BaseHTTPRequestHandler, answer: Answer) -> None:
    """Send the first bytes of an answer, and reset the connection once they have come."""
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    head = f"HTTP/1.1 {answer.status} OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    connection = request.connection
    connection.sendall((head + body)[: answer.breaks_after])
    while struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0" * 4))[0]:
        continue  # the peer's machine has not all of it: what is on its way, a reset takes away
    time.sleep(READ_SECONDS)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())  # a shutdown, which the server would make, ends it in order
    request.close_connection = True


READ_SECONDS: Final = 0.05
"""For the client to read what has come; a reset takes away what it has not read."""
