"""Calls to the API server: kept connections, a limit for each kind of call, and outcomes without doubt.

A call ends in one of three ways, and callers must treat them differently:

    Reply          an HTTP answer, any status
    NotSent        no connection: the call was certainly not carried out
    AnswerLost     sent, but no answer came: it may have been carried out, or may yet be

There is no client-side rate limit: the API server says 429 itself. What is limited is how many calls of one kind are
in flight, so that one kind (status patches) cannot starve another (bindings).

Writes go over `scheduler.kube.http.connections`, which is cheap; reads, streams and everything through a proxy go over
aiohttp's session.
"""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar

import aiohttp
import msgspec
from yarl import URL

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.framework.errors import ClusterError, ConfigError
from scheduler.kube.http.access import Access, is_ours
from scheduler.kube.http.call_metrics import CallMetrics
from scheduler.kube.http.connections import CONNECT_SECONDS, KEEPALIVE_SECONDS, CannotConnect, Connections, Target
from scheduler.kube.http.http1 import BadAnswer, is_plain, request_headers
from scheduler.kube.http.operations import MAX_PAUSE_SECONDS, Operation
from scheduler.kube.http.proxies import connector, http_proxy
from scheduler.kube.identity.credentials import Credentials, load_credentials
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks

log = logging.getLogger(__name__)

T = TypeVar("T")

USER_AGENT: Final = f"loadmaster/{version('loadmaster')}"
JSON: Final = "application/json"

MAX_ANSWER_BYTES: Final = 32 << 20
"""Of the body of an answer to a read, a page of a list mostly. A longer one is not read further."""


PAGE_FACTOR: Final = 8
"""How much smaller the next page is, after one whose answer was too long."""


class NoReply(ClusterError):
    """A call that the API server did not answer, with the interface of a `Reply`."""

    ok: Final = False
    status: Final = 0
    body: Final = b""
    retry_after: Final = 0.0

    @property
    def message(self) -> str:
        return str(self)


class NotSent(NoReply):
    """No connection to the API server: the call was certainly not carried out."""


class AnswerLost(NoReply):
    """The call was sent and no answer came: it may have been carried out."""


class AnswerTooLong(AnswerLost):
    """The call was sent and answered with more than we read."""


class BadStatus(ClusterError):
    """The API server answered a call with an error."""

    def __init__(self, call: str, reply: "Reply") -> None:
        """`call`: what was attempted."""
        super().__init__(f"{call}: {reply.status}: {reply.message}")
        self.status = reply.status


class Reply(msgspec.Struct, frozen=True, gc=False):
    """An answer of the API server."""

    status: int
    body: bytes
    retry_after: float = 0.0
    """Seconds that the server asks us to wait; 0 if it does not."""

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def message(self) -> str:
        """The message of the Status object in the body; otherwise the body's start, or the status."""
        try:
            message = _status_decoder.decode(self.body).message
        except Unreadable:
            message = self.body[:200].decode(errors="replace").strip()
        return message or f"HTTP {self.status}"

    def read(self, decoder: Decoder[T], doing: str) -> T:
        """Return what was asked for. Raises BadStatus for an error, ClusterError for what cannot be read.

        `doing`: what was attempted, for the message.
        """
        if not self.ok:
            raise BadStatus(doing, self)
        try:
            return decoder.decode(self.body)
        except Unreadable as error:
            raise ClusterError(f"{doing}: {error}") from error


MayWrite: TypeAlias = Callable[[], bool]


class Client:
    """One session to the API server; an async context manager."""

    def __init__(
        self,
        credentials: Credentials,
        metrics: Metrics,
        may_write: MayWrite | None = None,
        *,
        never_reuses: bool = False,
    ) -> None:
        """`may_write`: whether we lead, asked directly before a fenced write is sent; None: always.

        `never_reuses`: each read makes a connection of its own, so that none meets one that is dead.
        """
        self._never_reuses = never_reuses
        self._credentials = credentials
        self._may_write = may_write
        self.metrics = CallMetrics(metrics)
        self._session: aiohttp.ClientSession | None = None
        self._connections: Connections | None = None
        """None while closed, and with a proxy."""
        self._target: Target | None = None
        self._version = -1
        """That of the credentials in use."""
        self.access = Access()
        self._headers = ""
        """Everything after the target except the body's headers; identical for every call."""
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}

    async def __aenter__(self) -> Self:
        """Raises ConfigError if the server's address is none."""
        credentials, proxy = self._credentials, self._credentials.identity.proxy
        headers = {"User-Agent": USER_AGENT, "Content-Type": JSON}
        self._session = aiohttp.ClientSession(
            # `CallLimit`s limit the connections; a limit here would let one kind of call starve another.
            connector=connector(
                proxy,
                ssl=credentials.ssl_context,
                force_close=self._never_reuses,
                keepalive_timeout=None if self._never_reuses else KEEPALIVE_SECONDS,
            ),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=http_proxy(proxy),
        )
        try:
            self._authorize()
        except ConfigError:
            await self._session.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connections is not None:
            await self._connections.close()
        self._connections = self._target = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def credentials(self) -> Credentials:
        return self._credentials

    @property
    def session(self) -> aiohttp.ClientSession:
        """The session itself, for streams."""
        if self._session is None:
            raise RuntimeError("the client is not open: use it in an `async with` statement")
        return self._session

    async def authorized_session(self, *, rejected: bool = False) -> aiohttp.ClientSession:
        """The session with the newest credentials; after a 401, with newer ones if they come soon."""
        if rejected:
            await self._credentials.rejected(self._version)
        self._adopt()
        return self.session

    async def request(self, method: str, url: str | URL, **options: Any) -> aiohttp.ClientResponse:
        """Ask with the newest credentials, whatever the limits; leave the answer open, for streams.

        `url`: the path, if it is a text. Raises what aiohttp raises.
        """
        session, identity = await self.authorized_session(), self._credentials.identity
        return await session.request(
            method,
            url if isinstance(url, URL) else identity.server + url,
            server_hostname=identity.server_hostname,
            ssl=self._credentials.ssl_context,
            allow_redirects=False,  # other servers do not know us
            **options,
        )

    async def call(self, operation: Operation, path: str, body: bytes | None = None) -> Reply:
        """Make one call within its limit. Raises NotSent or AnswerLost if there is no answer."""
        outcome = await self.attempt(operation, path, body)
        if isinstance(outcome, NoReply):
            raise outcome
        return outcome

    async def page(self, operation: Operation, path: str, limit: int, query: str) -> Reply:
        """Read a page of a list: `limit` objects, or fewer if those are too much for one answer.

        `query`: what else is asked for, each part after a `&`. Raises NoReply.
        """
        while True:
            try:
                return await self.call(operation, f"{path}?limit={limit}{query}")
            except AnswerTooLong:
                if limit == 1:
                    raise
                limit = max(limit // PAGE_FACTOR, 1)
                log.warning("A page of a list is too long; asking for less", extra={"path": path, "limit": limit})

    async def attempt(
        self, operation: Operation, path: str, body: bytes | None = None, check: Callable[[], None] | None = None
    ) -> Reply | NoReply:
        """Like `call`, with the lack of an answer as a value.

        `check` is called when it is the call's turn; if it raises, the call is not made.
        """
        asked = time.perf_counter()
        async with operation.limit:
            if check is not None:
                check()
            started = time.perf_counter()
            code, received = "cancelled", 0
            outcome: Reply | NoReply
            try:
                outcome = await self._send(operation, path, body)
                code, received = str(outcome.status), len(outcome.body)
            except NoReply as error:
                outcome = error
                late = isinstance(error, AnswerLost) and isinstance(error.__cause__, TimeoutError)
                code = "timeout" if late else "connection"
                if is_ours(error):
                    self.access.refused(str(error))
            finally:
                seconds = time.perf_counter() - started
                self.metrics.observe(operation, code, seconds, started - asked, len(body or b""), received)
        return outcome

    async def _send(self, operation: Operation, path: str, body: bytes | None) -> Reply:
        if self._version != self._credentials.version:
            self._adopt()
        connections = self._connections
        may_send = self._may_write if operation.fenced and operation.verb != "GET" else None
        if connections is not None and operation.verb != "GET" and is_plain(path):
            reply = await self._write(connections, operation, path, body or b"", may_send)
        else:
            reply = await self._request(operation, path, body, may_send)
        if reply.status == 401:
            self.access.refused("HTTP 401")
            await self.authorized_session(rejected=True)
            return reply
        if self.access.refused_since is not None:
            self.access.accepted()
        if reply.status == 429:
            operation.limit.pause(reply.retry_after or 1.0)
        return reply

    async def _write(
        self, connections: Connections, operation: Operation, path: str, body: bytes, may_send: MayWrite | None
    ) -> Reply:
        head = (
            f"{operation.verb} {connections.prefix}{path}{self._headers}"
            f"Content-Type: {operation.content_type or JSON}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            answer = await connections.ask(head.encode() + body, operation.timeout, may_send)
        except CannotConnect as error:
            raise NotSent(f"{operation.verb} {path}: {error}") from error
        except (BadAnswer, OSError) as error:
            raise AnswerLost(f"{operation.verb} {path}: {reason_of(error)}") from error
        return Reply(answer.status, answer.body, _seconds(answer.retry_after) if answer.retry_after else 0.0)

    async def _request(self, operation: Operation, path: str, body: bytes | None, may_send: MayWrite | None) -> Reply:
        headers = {"Content-Type": operation.content_type} if operation.content_type else {}
        fenced = None
        if may_send is not None:
            fenced = _FencedBody(body or b"", may_send)
            headers["Content-Length"] = str(len(body or b""))
        try:
            data, timeout = body if fenced is None else fenced.chunks(), self._timeout(operation.timeout)
            async with await self.request(
                operation.verb, path, data=data, headers=headers, timeout=timeout
            ) as response:
                content = await content_of(response)
                return Reply(response.status, content, _seconds(response.headers.get("Retry-After")))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(f"{operation.verb} {path}: {reason_of(error)}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if fenced is not None and fenced.refused:
                raise NotSent(f"{operation.verb} {path}: this replica does not lead") from error
            raise AnswerLost(f"{operation.verb} {path}: {reason_of(error)}") from error

    def _adopt(self) -> None:
        """Use the newest credentials, if they are of use."""
        if self._version == self._credentials.version:
            return
        try:
            self._authorize()
        except ConfigError as error:
            log.warning("New credentials are of no use; the old ones stay in use", extra={"err": str(error)})

    def _authorize(self) -> None:
        """Adopt the current credentials. Raises ConfigError if the server's address is none.

        With another authority, connections stay, as the server behind them was found to be ours; with another address
        or certificate of our own, they end with their answers.
        """
        credentials, identity = self._credentials, self._credentials.identity
        self._version = credentials.version
        target = Target(identity.server, identity.server_hostname, credentials.certificate_version)
        connections = self._connections
        try:
            if target != self._target:
                connections = None if identity.proxy else Connections(target, credentials.ssl_context)
            host = "" if connections is None else connections.host
            self._headers = request_headers(host, USER_AGENT, identity.authorization)
            self.metrics.talk_to(identity.server)
        except ValueError as error:
            raise ConfigError([f"{credentials.source}: {error}"]) from error
        if self._connections is not None and connections is not self._connections:
            self._connections.retire()
        if connections is not None:
            connections.trust(credentials.ssl_context)
        self._connections, self._target = connections, target
        if identity.authorization is not None:
            self.session.headers["Authorization"] = identity.authorization

    def _timeout(self, seconds: float) -> aiohttp.ClientTimeout:
        timeout = self._timeouts.get(seconds)
        if timeout is None:
            timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=min(seconds, CONNECT_SECONDS))
            self._timeouts[seconds] = timeout
        return timeout


@asynccontextmanager
async def connected(kubeconfig: str | None, context: str | None) -> AsyncIterator[Client]:
    """Yield a client for a command of a user, and keep its credentials fresh. Raises ConfigError."""
    credentials = await load_credentials(kubeconfig, context)
    metrics = Metrics()
    tasks = Tasks(metrics)
    async with Client(credentials, metrics) as client:
        tasks.start("credentials", credentials.keep_fresh())
        try:
            yield client
        finally:
            await tasks.close()


class _FencedBody:
    """A body that is given out only while we lead. aiohttp sends the head of a request with the first bytes of it."""

    def __init__(self, body: bytes, may_send: MayWrite) -> None:
        self._body = body
        self._may_send = may_send
        self.refused = False

    async def chunks(self) -> AsyncIterator[bytes]:
        if not self._may_send():
            self.refused = True
            raise ConnectionError("this replica does not lead")
        yield self._body


async def content_of(response: aiohttp.ClientResponse, longest: int | None = None) -> bytes:
    """Read the whole body, of `longest` bytes at most, or MAX_ANSWER_BYTES. Raises AnswerTooLong."""
    longest = longest or MAX_ANSWER_BYTES
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > longest:
            content.clear()  # the error keeps our frame, and so it, for as long as it is kept
            response.close()
            raise AnswerTooLong(f"the answer has more than {longest} bytes")
    return bytes(content)


class _Status(msgspec.Struct, gc=False):
    message: str = ""


_status_decoder: Decoder[_Status] = Decoder(_Status)


def _seconds(retry_after: str | None) -> float:
    """Retry-After in seconds, MAX_PAUSE_SECONDS at most; 0 unless it is a number: the API server sends no dates."""
    try:
        seconds = float(retry_after or 0.0)
    except ValueError:
        return 0.0
    return min(seconds, MAX_PAUSE_SECONDS) if seconds > 0 else 0.0  # also of what is not a number


def reason_of(error: Exception) -> str:
    """Say why there is no answer, also where the library has words for programmers, or none."""
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the server closed the connection before the whole answer had come"
    return str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
