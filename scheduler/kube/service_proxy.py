"""Asks a scheduler that runs in the cluster, through the API server: no port-forward, no address.

    token of the service account NAME-explain, for us alone ─► GET …/services/https:NAME:metrics/proxy/debug/explain
                                  NAME-record                                                    …/debug/record

The API server's proxy keeps the Authorization header to itself, so the token goes in another one. It is made for this
call, is of no use to the API server, and ends ten minutes after what it is for.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.reviews import AUDIENCE, PASSED_ON
from scheduler.framework.errors import ClusterError
from scheduler.kube.client import CallLimit, Client, Operation, Reply, content_of

TOKEN_SECONDS: Final = 600
PORT: Final = "metrics"
"""The Service's port, by its name in the chart."""

EXPLAIN, RECORD = "explain", "record"
"""What it may be asked for, each by an account of its own."""

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

    def __init__(self, client: Client, namespace: str, name: str, what: str = EXPLAIN) -> None:
        self._client = client
        self._what = what
        self._namespace, self._name = namespace, name
        self._token = ""
        self._create = Operation("POST", "serviceaccounts/token", CallLimit(1))

    @property
    def account(self) -> str:
        """The service account as which it is asked."""
        return f"{self._name}-{self._what}"

    async def explain(self, namespace: str, name: str) -> dict[str, Any]:
        """Return what the leader says of a pod. Raises NotRunning, ClusterError."""
        document: dict[str, Any] = {}
        for _ in range(TRIES):
            document = await self._ask({"namespace": namespace, "name": name})
            if document.get("leading", True):
                break
        return document

    @asynccontextmanager
    async def record(self, seconds: int) -> AsyncIterator[AsyncIterator[bytes]]:
        """What the leader records, as it comes, for `seconds` or until the block is left; 0: a day at most.

        Raises NotRunning, ClusterError, also while it comes.
        """
        said = ""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS, sock_read=_SILENT_SECONDS)
        self._token = await self._new_token((seconds or RECORD_SECONDS) + TOKEN_SECONDS)
        for _ in range(TRIES):
            async with self._asked({"seconds": str(seconds or RECORD_SECONDS)}, timeout) as response:
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

    async def _ask(self, query: Mapping[str, str]) -> dict[str, Any]:
        is_used = bool(self._token)
        if not is_used:
            self._token = await self._new_token(TOKEN_SECONDS)
        status, body = await self._get(query)
        if status == 401 and is_used:  # it has come to its end
            self._token = await self._new_token(TOKEN_SECONDS)
            status, body = await self._get(query)
        return self._read(status, body)

    async def _get(self, query: Mapping[str, str]) -> tuple[int, bytes]:
        async with self._asked(query, aiohttp.ClientTimeout(total=_SECONDS)) as response:
            return response.status, await content_of(response)

    @asynccontextmanager
    async def _asked(
        self, query: Mapping[str, str], limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        client = self._client
        service = f"https:{quote(self._name)}:{PORT}"
        proxy = f"/api/v1/namespaces/{quote(self._namespace)}/services/{service}/proxy"
        credentials = client.credentials
        try:
            async with (await client.authorized_session()).get(
                f"{credentials.server}{proxy}/debug/{self._what}?{urlencode(query)}",
                headers={PASSED_ON: f"Bearer {self._token}", "Accept": "application/json, application/gzip"},
                timeout=limits,
                allow_redirects=False,
                server_hostname=credentials.server_hostname,
                ssl=credentials.ssl_context,
            ) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = f"no answer within {_SECONDS:g} s" if isinstance(error, TimeoutError) else str(error)
            raise ClusterError(f"cannot ask the API server: {reason or type(error).__name__}") from error

    def _read(self, status: int, body: bytes) -> dict[str, Any]:
        try:
            document = _any.decode(body)
        except Unreadable:
            document = {}
        if isinstance(document, dict) and "found" in document and "state" in document:
            return document
        message = document.get("message") if isinstance(document, dict) else None
        said = message[:_LONGEST] if isinstance(message, str) else ""
        where = f"the scheduler's Service {self._namespace}/{self._name}"
        if status == 404 and not said:
            raise ClusterError(f"{where} is of a scheduler that cannot {self._what}: is it an older version?")
        if status == 404:
            raise NotRunning(f"{where} is not there: {said}")
        if status in (502, 503):
            raise NotRunning(f"{where} leads to no running scheduler: {said or f'HTTP {status}'}")
        if status == 401:
            raise ClusterError(f"the scheduler does not accept the token of {self.account}")
        if status == 403:
            raise ClusterError(f"asking is not allowed: {said or 'HTTP 403'}")
        if status == 200:
            raise ClusterError(f"{where} answered what is no explanation: is Loadmaster behind it?")
        raise ClusterError(f"{where} answered HTTP {status}" + (f": {said}" if said else ""))

    async def _new_token(self, seconds: int) -> str:
        path = f"/api/v1/namespaces/{quote(self._namespace)}/serviceaccounts/{quote(self.account)}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [AUDIENCE], "expirationSeconds": seconds},
        }
        reply = await self._client.call(self._create, path, msgspec.json.encode(request))
        if reply.status == 404:
            raise NotRunning(f"there is no scheduler {self._name} in the namespace {self._namespace}: {reply.message}")
        if reply.status == 403:
            raise ClusterError(f"no token for asking: {reply.message}; the Role {self.account} allows it")
        if not reply.ok:
            raise ClusterError(f"no token for asking: {reply.message}")
        token = _decode(reply).status.token
        if not (token and token.isascii() and token.isprintable()):
            raise ClusterError("the API server's token cannot be read: it is no text for a header")
        return token


class NotRunning(ClusterError):
    """There is no scheduler to ask."""


class _TokenStatus(msgspec.Struct, frozen=True):
    token: str = ""


class _TokenRequest(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


async def _parts_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for part in response.content.iter_any():
            yield part
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ClusterError(str(error) or type(error).__name__) from error


_any: Decoder[Any] = Decoder(Any)
_decoder: Decoder[_TokenRequest] = Decoder(_TokenRequest)


def _decode(reply: Reply) -> _TokenRequest:
    try:
        return _decoder.decode(reply.body)
    except Unreadable as error:
        raise ClusterError(f"the API server's token cannot be read: {error}") from error
