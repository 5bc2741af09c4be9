"""An OpenTelemetry collector: takes spans by HTTP, as protobuf, and keeps them."""

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Received:
    """One span."""

    name: str
    trace: bytes
    id: bytes
    parent: bytes
    """Empty: it has none."""
    values: dict[str, Any]
    resource: dict[str, Any]
    start: int
    end: int
    """In nanoseconds since 1970."""


class Collector:
    """Listens for the length of a `with` block."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        """What it answers."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.headers.append({**dict(self.headers), "path": self.path})
                if outer.status == 200:
                    outer.spans += spans_of(body)
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing: the test looks at `spans`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="collector", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def of_trace(self, trace: bytes) -> list[Received]:
        """The spans of a trace, in the order in which they began."""
        return sorted((span for span in self.spans if span.trace == trace), key=lambda span: span.start)


def spans_of(body: bytes) -> list[Received]:
    """The spans in what a collector is sent."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        Received(
            span.name,
            span.trace_id,
            span.span_id,
            span.parent_span_id,
            _values(span.attributes),
            _values(resource.resource.attributes),
            span.start_time_unix_nano,
            span.end_time_unix_nano,
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
