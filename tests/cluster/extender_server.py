"""An HTTP extender that answers as a test says, several of them on one port: `/NAME/VERB`."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Question = dict[str, Any]


@dataclass(frozen=True)
class Raw:
    """An answer that is no JSON, or not all right in HTTP."""

    body: bytes = b""
    status: int = 200
    length: int | None = None
    """What it says its length is, if that is another."""


@dataclass(frozen=True)
class Slow:
    """An answer that takes its time, or until it is released."""

    seconds: float
    answer: Any = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """An answer in pieces that does not say how long it is, and may have no end."""

    pieces: Iterable[bytes]


Script = Callable[[Question], Any]


class ExtenderServer:
    """Listens for the length of a `with` block. What is not in its script agrees to everything."""

    def __init__(self) -> None:
        self.script: dict[str, Script] = {}
        """`name/verb` → what it answers."""
        self.asked: list[tuple[str, Question]] = []
        self.released = threading.Event()
        """Ends the waits of slow answers."""
        self.connections: Counter[str] = Counter()
        """Name → connections on which somebody has asked it, as long as they are open."""
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"outer": self}))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="extender", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def release(self) -> None:
        """Let all slow answers go."""
        self.released.set()
        self.released = threading.Event()

    def clear(self) -> None:
        self.script.clear()
        self.asked.clear()
        self.release()

    def connected(self, name: str) -> int:
        """How many connections there are to an extender."""
        return self.connections[name]

    def questions(self, path: str) -> list[Question]:
        return [question for asked, question in self.asked if asked == path]


def agree(question: Question) -> Any:
    """Every node and every victim will do."""
    if question.get("NodeNames") is not None:
        return {"NodeNames": question["NodeNames"]}
    if question.get("Nodes") is not None:
        return {"Nodes": question["Nodes"]}
    if "NodeNameToMetaVictims" in question:
        victims = question["NodeNameToMetaVictims"] or {
            node: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in each["Pods"]],
                "NumPDBViolations": each["NumPDBViolations"],
            }
            for node, each in question["NodeNameToVictims"].items()
        }
        return {"NodeNameToMetaVictims": victims}
    return {}


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    outer: ExtenderServer
    protocol_version = "HTTP/1.1"
    name = ""
    """Of the extender that was asked on it first."""

    def finish(self) -> None:
        self.outer.connections[self.name] -= 1
        super().finish()

    def do_POST(self) -> None:
        path = self.path.strip("/")
        if not self.name:
            self.name = path.partition("/")[0]
            self.outer.connections[self.name] += 1
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.outer.asked.append((path, question))
        answer = self.outer.script.get(path, agree)(question)
        if isinstance(answer, Slow):
            self.outer.released.wait(answer.seconds)
            answer = answer.answer
        if isinstance(answer, Stream):
            self._stream(answer)
        else:
            self._send(answer if isinstance(answer, Raw) else Raw(json.dumps(answer).encode()))

    def _send(self, answer: Raw) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body) if answer.length is None else answer.length))
        self.end_headers()
        self.wfile.write(answer.body)
        if answer.length is not None:
            self.close_connection = True

    def _stream(self, answer: Stream) -> None:
        self.close_connection = True
        self.send_response(200)
        self.end_headers()
        for piece in answer.pieces:
            self.wfile.write(piece)

    def log_message(self, *_: object) -> None:
        """Nothing: the test looks at `asked`."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A scheduler that has lost its patience closes the connection."""
