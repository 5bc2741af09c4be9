"""HTTP/1.1 as the API server speaks it: the bytes of a request, and an answer read from bytes. No I/O.

Strict about framing, which decides where the next answer begins: two lengths, a length alongside chunks, an unknown
coding or no length at all is an error, and the connection is closed. Headers that are not used are not checked.
"""

import re
from collections.abc import Generator
from typing import Final

import msgspec

MAX_HEAD: Final = 1 << 16
"""Bytes of a status line and its headers; the API server sends 500."""

MAX_ANSWER: Final = 16 << 20
"""Bytes of a whole answer, with all that may come before and around its body. That to a write has one object, of which
etcd takes 1.5 MB."""

_STATUS: Final = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: [^\r\n]*)?(?=\r\n|\Z)")
_HEADERS: Final = re.compile(
    rb"\r\n(content-length|transfer-encoding|connection|retry-after)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE
)
_LENGTH: Final = re.compile(rb"[0-9]{1,100}")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\Z")
_TARGET: Final = re.compile(r"/[A-Za-z0-9/._:~?=&%,+@-]*")

Parsing = Generator[None, None, "Answer"]


class BadAnswer(Exception):
    """Not a readable HTTP answer."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """A final answer; 1xx are skipped."""

    status: int
    body: bytes
    retry_after: str
    """The header as received; empty if absent."""

    reusable: bool
    """Whether the server keeps the connection open, with no bytes left over."""


class AnswerReader:
    """Reads one answer from chunks of any size."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._count = 0
        self._parsing = _read(self._received)

    def feed(self, data: bytes) -> Answer | None:
        """Add received bytes; return the answer once it is complete. Raises BadAnswer."""
        self._received += data
        self._count += len(data)
        if self._count > MAX_ANSWER:
            raise BadAnswer(f"an answer of more than {MAX_ANSWER} bytes")
        try:
            next(self._parsing)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        return None


def is_plain(target: str) -> bool:
    """Return whether a path, with or without a query, needs no quoting."""
    return _TARGET.fullmatch(target) is not None


def request_headers(host: str, user_agent: str, authorization: str | None) -> str:
    """Everything after the target of a request except the body's headers.

    Raises ValueError for characters that a header cannot carry.
    """
    headers = {"Host": host, "User-Agent": user_agent, "Accept": "*/*", "Authorization": authorization}
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    for line in lines:
        if not (line.isascii() and line.isprintable()):
            raise ValueError(f"the header {line.partition(':')[0]} would have characters that are not allowed")
    return "".join((" HTTP/1.1\r\n", *(f"{line}\r\n" for line in lines)))


def _read(received: bytearray) -> Parsing:
    """Take an answer from `received`, which grows at each `yield`."""
    while True:
        head = yield from _until(received, b"\r\n\r\n", MAX_HEAD)
        line = _STATUS.match(head)
        if line is None:
            raise BadAnswer(f"not HTTP/1: {head[:60]!r}")
        status = int(line[2])
        if status == 101:
            raise BadAnswer("the server wants to change the protocol")
        if status >= 200:
            break
    headers = _headers(head)
    if status in (204, 304):
        body = b""
    elif b"transfer-encoding" in headers:
        body = yield from _chunks(received)
    else:
        body = yield from _exactly(received, int(headers[b"content-length"]))
    closing = line[1] == b"0" or b"close" in headers.get(b"connection", b"").lower()
    retry_after = headers.get(b"retry-after", b"").decode("latin-1")
    return Answer(status, body, retry_after, not (closing or received))


def _headers(head: bytes) -> dict[bytes, bytes]:
    """The headers that matter, by lower-case name. Raises BadAnswer if they do not define where the answer ends."""
    headers: dict[bytes, bytes] = {}
    for name, value in _HEADERS.findall(head):
        key, text = name.lower(), value.strip()
        if headers.setdefault(key, text) != text:
            if key != b"connection":
                raise BadAnswer(f"two headers {key.decode()}")
            headers[key] += b"," + text
    length = headers.get(b"content-length")
    coding = headers.get(b"transfer-encoding")
    if coding is None:
        if length is None and not head.startswith((b"204 ", b"304 "), 9):
            raise BadAnswer("an answer that does not say how long it is")
        if length is not None and _LENGTH.fullmatch(length) is None:
            raise BadAnswer(f"content-length {length[:20]!r}")
    elif coding.lower() != b"chunked" or length is not None:
        raise BadAnswer(f"transfer-encoding {coding[:20]!r}, content-length {length!r}")
    return headers


def _chunks(received: bytearray) -> Generator[None, None, bytes]:
    body = bytearray()
    while True:
        line = yield from _until(received, b"\r\n", MAX_HEAD)
        size = _CHUNK_SIZE.match(line)
        if size is None:
            raise BadAnswer(f"not the size of a chunk: {line[:20]!r}")
        count = int(size[1], 16)
        if not count:
            break
        body += yield from _exactly(received, count)
        if (yield from _exactly(received, 2)) != b"\r\n":
            raise BadAnswer("a chunk that is longer than it said")
    while (yield from _until(received, b"\r\n", MAX_HEAD)):  # trailers, up to the empty line
        continue
    return bytes(body)


def _until(received: bytearray, end: bytes, limit: int) -> Generator[None, None, bytes]:
    while (at := received.find(end, 0, limit)) < 0:
        if len(received) >= limit:
            raise BadAnswer(f"no end of a line or head in {limit} bytes: {bytes(received[:60])!r}")
        yield
    found = bytes(received[:at])
    del received[: at + len(end)]
    return found


def _exactly(received: bytearray, count: int) -> Generator[None, None, bytes]:
    while len(received) < count:
        yield
    found = bytes(received[:count])
    del received[:count]
    return found
