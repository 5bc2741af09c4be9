"""HTTP/1.1 for the proxy: whole requests, and answers whose bodies are passed on while they come."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import orjson

HEAD_LIMIT: Final = 1 << 18
"""Bytes that a stream reader buffers, and so the longest head of a message."""

_POD: Final = re.compile("/api/v1/namespaces/([^/]+)/pods/([^/]+)")
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)
_GZIPPED: Final = re.compile(rb"\r\ncontent-encoding:[ \t]*gzip", re.IGNORECASE)

REASONS: Final = {
    403: ("Forbidden", 'admission webhook "quota.example.com" denied the request: not now'),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    500: ("InternalError", "etcdserver: leader changed"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "request did not complete within the allotted timeout"),
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came."""

    method: str
    target: str
    raw: bytes
    """Head and body."""
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def is_watch(self) -> bool:
        return self.method == "GET" and "watch=" in self.target

    @property
    def pod_read(self) -> str:
        """namespace/name of the pod that it reads, empty if it does something else."""
        found = _POD.fullmatch(self.path) if self.method == "GET" else None
        return f"{found[1]}/{found[2]}" if found else ""

    @property
    def is_renewal(self) -> bool:
        """Whether it writes a Lease."""
        return self.method == "PUT" and "/leases/" in self.path

    @property
    def is_binding(self) -> bool:
        return self.method == "POST" and self.path.endswith("/binding")


@dataclass(frozen=True, slots=True)
class Head:
    """The status line and headers of an answer."""

    raw: bytes
    status: int
    length: int | None
    """None: the body comes in chunks."""
    gzipped: bool


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request, None at the end of the connection. Raises OSError or IncompleteReadError if it breaks."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
    found = _LENGTH.search(head)
    body = await reader.readexactly(int(found[1])) if found else b""
    return Request(method, target, head + body, body)


async def read_head(reader: asyncio.StreamReader) -> Head:
    """The head of the next answer. Raises IncompleteReadError if the server closed, ValueError if it is none."""
    raw = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(raw)
    if length is None and not _CHUNKED.search(raw):
        raise ValueError(f"an answer without a length: {raw[:80]!r}")
    return Head(raw, int(raw[9:12]), int(length[1]) if length else None, _GZIPPED.search(raw) is not None)


async def read_body(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """The parts of a body as they come. Raises IncompleteReadError if the server closes before its end."""
    if head.length is not None:
        left = head.length
        while left:
            part = await reader.read(min(left, HEAD_LIMIT))
            if not part:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(part)
            yield part
        return
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        part = await reader.readexactly(size + 2)
        yield part[:-2]
    await reader.readexactly(2)


def chunk(part: bytes) -> bytes:
    """A part of a chunked body, the last one if it is empty."""
    return b"%x\r\n%b\r\n" % (len(part), part)


def refusal(status: int, retry_after: str = "") -> bytes:
    """What the API server answers when it cannot serve a request now."""
    reason, message = REASONS[status]
    told = {"status": "Failure", "reason": reason, "message": message, "code": status}
    body = orjson.dumps({"kind": "Status", "apiVersion": "v1", **told})
    lines = [f"HTTP/1.1 {status} {reason}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    if retry_after:
        lines.append(f"Retry-After: {retry_after}")
    return "\r\n".join((*lines, "", "")).encode() + body


EXPIRED: Final = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}}\n'
)
"""The line by which a watch says that its version has been compacted."""
