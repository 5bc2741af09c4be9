"""HTTP for plugins: reads from the API server as the scheduler's account, and reads and posts anywhere else."""

import asyncio
import os
import ssl
from datetime import UTC, datetime
from typing import Final

import aiohttp

from scheduler.files.reading import read
from scheduler.framework.errors import ApiError
from scheduler.framework.handle import NO_CREDENTIALS, Access
from scheduler.kube.http.client import USER_AGENT, AnswerTooLong, Client, NoReply, content_of
from scheduler.kube.http.connections import CONNECT_SECONDS
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.sockets import loops_socket
from scheduler.kube.identity.tls_files import client_context

MAX_IN_FLIGHT: Final = 10
"""Concurrent reads at the API server."""

MAX_ELSEWHERE: Final = 10
"""Concurrent calls to other servers."""

LABEL: Final = "plugin data"
"""The resource of these reads in metrics."""

MAX_TOKEN_BYTES: Final = 64 << 10
MAX_CA_BYTES: Final = 1 << 20


class PluginReader:
    """Implements scheduler.framework.handle.Reader."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._limit = CallLimit(MAX_IN_FLIGHT)
        self._slots = asyncio.Semaphore(MAX_ELSEWHERE)
        self._contexts: dict[str, tuple[float, ssl.SSLContext]] = {}
        """File of certificates, or empty for the system's → its time of change, and the context made of it."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def read(self, url: str, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Return what there is at a URL. Raises ApiError."""
        if not url.startswith("/"):
            status, body = await self._call_elsewhere("GET", url, None, seconds, access)
            if status != 200:
                raise _refused(url, status, body)
            return body
        try:
            reply = await self._client.call(Operation("GET", LABEL, self._limit, seconds), url)
        except NoReply as error:
            raise ApiError(0, str(error)) from error
        if not reply.ok:
            raise ApiError(reply.status, reply.message)
        return reply.body

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        """Post JSON to a URL once. Raises ApiError."""
        if url.startswith("/"):
            raise ApiError(0, f"{url}: objects of the API server are created by handle.api")
        status, answer = await self._call_elsewhere("POST", url, body, seconds, access)
        if not 200 <= status < 300:
            raise _refused(url, status, answer)
        return answer

    async def _call_elsewhere(
        self, method: str, url: str, body: bytes | None, seconds: float, access: Access
    ) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=min(seconds, CONNECT_SECONDS))
        try:
            headers = {"User-Agent": USER_AGENT, **_authorization(access.token_file)}
            if body is not None:
                headers["Content-Type"] = "application/json"
            connector = aiohttp.TCPConnector(ssl=self._context(access.ca_file), socket_factory=loops_socket)
            jar = aiohttp.DummyCookieJar()
            async with (
                asyncio.timeout(seconds),
                self._slots,
                aiohttp.ClientSession(connector=connector, cookie_jar=jar, timeout=timeout) as session,
                session.request(method, url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                return response.status, await content_of(response)
        except (aiohttp.ClientError, AnswerTooLong, TimeoutError, OSError, ValueError) as error:
            raise ApiError(0, f"{url}: {str(error) or type(error).__name__}") from error

    def _context(self, ca_file: str) -> ssl.SSLContext:
        """Raises OSError or ValueError for a file that cannot be read, or has no certificates."""
        changed = os.stat(ca_file).st_mtime if ca_file else 0.0
        found = self._contexts.get(ca_file)
        if found is None or found[0] != changed:
            authorities = read(ca_file, MAX_CA_BYTES).decode("ascii", "ignore") if ca_file else ""
            if ca_file and not authorities:  # with which the system's would be trusted
                raise ValueError(f"{ca_file}: there is no certificate in it")
            found = self._contexts[ca_file] = changed, client_context(authorities)
        return found[1]


class SilentReader(PluginReader):
    """Reads, and posts nothing."""

    async def post(self, url: str, body: bytes, seconds: float, access: Access = NO_CREDENTIALS) -> bytes:
        raise ApiError(0, f"a shadow posts nothing, so nothing to {url} either")


def _refused(url: str, status: int, body: bytes) -> ApiError:
    return ApiError(status, f"{url}: HTTP {status}: {body[:200].decode(errors='replace')}")


def _authorization(token_file: str) -> dict[str, str]:
    """Return the header with the token. Raises OSError, and ValueError for anything but a token."""
    if not token_file:
        return {}
    token = read(token_file, MAX_TOKEN_BYTES).decode("ascii").strip()
    if not token or not token.isprintable() or " " in token:
        raise ValueError(f"{token_file}: this is no token")
    return {"Authorization": f"Bearer {token}"}
