"""Asks a scheduler that runs in the cluster, through the API server: no port-forward, no address.

    token of the service account NAME-explain, for us alone ─► GET …/services/https:NAME:metrics/proxy/debug/explain
                                  NAME-record                                                    …/debug/record
                                  NAME-doctor                                                    …/metrics, …/configz

The API server's proxy keeps the Authorization header to itself, so the token goes in another one. It is made for this
call, is no use at the API server itself, and expires ten minutes after the call should be over.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.reviews import AUDIENCE, PASSED_ON
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import Client, content_of, reason_of
from scheduler.kube.http.operations import CallLimit, Operation

TOKEN_SECONDS: Final = 600
RENEWED_AFTER: Final = 480.0
"""Seconds after which a token is not shown any more."""

PORT: Final = "metrics"
"""The Service's port, by its name in the chart."""

EXPLAIN, RECORD, DOCTOR = "explain", "record", "doctor"
"""The services of the port, each with an account of its own. That of the doctor may read what operators look at."""

RECORD_SECONDS: Final = 86_400
"""A recording without an end is no longer than this."""

TRIES: Final = 8
"""A Service leads to any replica; only the leader knows the history."""

_SECONDS: Final = 30.0

_SILENT_SECONDS: Final = 60.0
"""A recording says something every quarter of a minute, if only that nothing happens."""

_LONGEST: Final = 300
"""Characters of what others say."""


class RunningScheduler:
    """A scheduler, by the name of its Service."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        what: str = EXPLAIN,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`what` it is asked to do, for which there is a service account; `now`: in seconds."""
        self._client = client
        self._what = what
        self._namespace, self._name = namespace, name
        self._now = now
        self._token, self._made = "", 0.0
        self._create = Operation("POST", "serviceaccounts/token", CallLimit(1))

    @property
    def account(self) -> str:
        """The service account as which it is asked."""
        return f"{self._name}-{self._what}"

    @property
    def where(self) -> str:
        """The Service, for a sentence."""
        return f"the scheduler's Service {self._namespace}/{self._name}"

    async def explain(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return what the leader answers to a question. Raises NotRunning, ClusterError."""
        document: dict[str, Any] = {}
        for _ in range(TRIES):
            document = await self._ask(query)
            if document.get("leading", True):
                break
        return document

    async def page(self, path: str) -> bytes:
        """The answer of any replica to a GET of `path`, without a slash before it. Raises NotRunning, ClusterError."""
        async with self.opened(path, accept="*/*") as response, asyncio.timeout(_SECONDS):
            body = await content_of(response)
            # A health page says with 500 what is not healthy.
            if response.status not in (200, 500):
                raise self._problem(response.status, body)
            return body

    @asynccontextmanager
    async def record(self, seconds: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the leader's recording, as it comes, for `seconds` or until the block is left; 0: a day at most.

        Raises NotRunning, ClusterError, also while it comes.
        """
        said, seconds = "", seconds or RECORD_SECONDS
        await self._renew(seconds + TOKEN_SECONDS)
        for _ in range(TRIES):
            query = urlencode({"seconds": str(seconds)})
            async with self.opened(f"debug/{self._what}", query, "application/gzip", _SILENT_SECONDS) as response:
                if response.status == 200:
                    yield _parts_of(response)
                    return
                body = await content_of(response)
                said = body.decode(errors="replace").strip()
                if response.status == 429:
                    raise ClusterError(f"the scheduler refuses: {said[:_LONGEST]}")
                if response.status != 409:
                    self._read(response.status, body)
        raise ClusterError(f"no replica that leads was found: {said[:_LONGEST]}")

    @asynccontextmanager
    async def opened(
        self, path: str, query: str = "", accept: str = "application/json", max_idle: float = 0.0
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer of any replica to a GET of `path`, without a slash before it, while it comes.

        `max_idle`: seconds without a part of it, after which it is over; 0: 30. Raises NotRunning and Refused if there
        is no token to show, ClusterError if there is no answer, or no more.
        """
        max_idle = max_idle or _SECONDS
        if not self._token or self._now() - self._made >= RENEWED_AFTER:
            await self._renew(TOKEN_SECONDS)
        token = self._token  # another answer may be a 401 meanwhile
        service = f"https:{quote(self._name)}:{PORT}"
        url = f"/api/v1/namespaces/{quote(self._namespace)}/services/{service}/proxy/{path}"
        with _no_answer(max_idle, aiohttp.ClientError, OSError):
            response = await self._client.request(
                "GET",
                f"{url}{'?' if query else ''}{query}",
                headers={PASSED_ON: f"Bearer {token}", "Accept": accept},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS, sock_read=max_idle),
            )
        # No other OSError: that is the reader's, which may write to a full disk.
        with _no_answer(max_idle, aiohttp.ClientError, TimeoutError):
            async with response:
                if response.status == 401:
                    self._token = ""  # to have a new one made shows whose credentials are not accepted
                yield response

    async def _ask(self, query: Mapping[str, str]) -> dict[str, Any]:
        is_used = bool(self._token)
        status, body = await self._get(query)
        if status == 401 and is_used:  # it has come to its end
            status, body = await self._get(query)
        return self._read(status, body)

    async def _get(self, query: Mapping[str, str]) -> tuple[int, bytes]:
        async with self.opened(f"debug/{self._what}", urlencode(query)) as response, asyncio.timeout(_SECONDS):
            return response.status, await content_of(response)

    def _read(self, status: int, body: bytes) -> dict[str, Any]:
        document = _document(body)
        if "found" in document and "state" in document:
            return document
        raise self._problem(status, body)

    def _problem(self, status: int, body: bytes) -> ClusterError:
        """The meaning of an answer that is not what was asked for."""
        message = _document(body).get("message")
        said = message[:_LONGEST] if isinstance(message, str) else ""
        where = self.where
        if status == 404 and not said:
            return ClusterError(f"{where} is of a scheduler that cannot {self._what}: is it an older version?")
        if status == 404:
            return NotRunning(f"{where} is not there: {said}")
        if status in (502, 503):
            return NotRunning(f"{where} leads to no running scheduler: {said or f'HTTP {status}'}")
        if status == 401:
            return Refused(status, f"the scheduler does not accept the token of {self.account}; its log says why")
        if status == 403:
            return Refused(status, f"asking is not allowed: {said or 'HTTP 403'}")
        if status == 200:
            return ClusterError(f"{where} answered, but not with an explanation: is Loadmaster behind it?")
        return ClusterError(f"{where} answered HTTP {status}" + (f": {said}" if said else ""))

    async def _renew(self, seconds: int) -> None:
        self._token, self._made = await self._new_token(seconds), self._now()

    async def _new_token(self, seconds: int) -> str:
        path = f"/api/v1/namespaces/{quote(self._namespace)}/serviceaccounts/{quote(self.account)}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [AUDIENCE], "expirationSeconds": seconds},
        }
        version = self._client.credentials.version
        reply = await self._client.call(self._create, path, msgspec.json.encode(request))
        if reply.status == 401 and self._client.credentials.version != version:  # ours had ended, and were renewed
            reply = await self._client.call(self._create, path, msgspec.json.encode(request))
        if reply.status == 404:
            raise NotRunning(f"there is no scheduler {self._name} in the namespace {self._namespace}: {reply.message}")
        if not reply.ok:
            role = f"; the Role {self.account} allows it" if reply.status == 403 else ""
            raise Refused(reply.status, f"no token for asking: {reply.message}{role}")
        token = reply.read(_decoder, "the API server's token cannot be read").status.token
        if not (token and token.isascii() and token.isprintable()):
            raise ClusterError("the API server's token cannot be read: it is no text for a header")
        return token


class NotRunning(ClusterError):
    """There is no scheduler to ask."""


class Refused(ClusterError):
    """The user may not ask, or the API server gives no token to ask with."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _TokenStatus(msgspec.Struct, frozen=True):
    token: str = ""


class _TokenRequest(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


@contextmanager
def _no_answer(max_idle: float, *errors: type[Exception]) -> Iterator[None]:
    """Make a ClusterError of an answer that does not come; `max_idle`: the seconds that were waited for it."""
    try:
        yield
    except errors as error:
        reason = f"no answer within {max_idle:g} s" if isinstance(error, TimeoutError) else reason_of(error)
        raise ClusterError(f"cannot ask the API server: {reason}") from error


async def _parts_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for part in response.content.iter_any():
            yield part
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ClusterError(reason_of(error)) from error


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = _any.decode(body)
    except Unreadable:
        return {}
    return document if isinstance(document, dict) else {}


_any: Decoder[Any] = Decoder(Any)
_decoder: Decoder[_TokenRequest] = Decoder(_TokenRequest)
