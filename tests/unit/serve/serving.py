"""A server on a port of this machine, and clients for it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import aiohttp

from scheduler.api.pods.pod import Pod
from scheduler.api.reviews import AccessVerdict, TokenVerdict, User
from scheduler.config.options import ServingOptions
from scheduler.framework.errors import ClusterError
from scheduler.process.tasks import Tasks
from scheduler.serve.access.authentication import Authentication, TokenReviewer
from scheduler.serve.access.authorization import AccessReviewer, Authorization
from scheduler.serve.endpoints.exposition import metric_pages
from scheduler.serve.endpoints.health import Check
from scheduler.serve.port.http import HttpServer, Page, Pages, QueriedPage, Setting
from scheduler.serve.port.limits import DEFAULTS, Limits
from tests.fakes import Metrics

HEALTH = ("/healthz", "/readyz", "/livez")
ANYWHERE = ServingOptions(secure_port=0, bind_address="127.0.0.1")


@dataclass
class FakeReviews:
    """Knows users by token, and who may do what; counts what it is asked."""

    users: Mapping[str, User] = field(default_factory=dict)
    allowed: Sequence[tuple[str, str, str]] = ()
    """User, verb, path."""
    is_away: bool = False
    tokens: list[str] = field(default_factory=list)
    accesses: list[tuple[str, str, str]] = field(default_factory=list)
    held: asyncio.Event | None = None
    """If there is one, no answer comes before it is set."""
    at_once: int = 0
    most_at_once: int = 0
    audiences: Mapping[str, str] = field(default_factory=dict)
    """Of tokens that are not for the API server."""

    async def review_token(self, token: str, audience: str = "") -> TokenVerdict:
        self.tokens.append(token)
        await self._wait()
        user = self.users.get(token) if audience == self.audiences.get(token, "") else None
        return TokenVerdict() if user is None else TokenVerdict(authenticated=True, user=user)

    async def review_access(self, user: User, path: str, verb: str) -> AccessVerdict:
        asked = user.username, verb, path
        self.accesses.append(asked)
        await self._wait()
        return AccessVerdict(allowed=asked in self.allowed)

    async def _wait(self) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self.held is not None:
                await self.held.wait()
            if self.is_away:
                raise ClusterError("connection refused")
        finally:
            self.at_once -= 1


class Served:
    """A server that answers, and a client that trusts any certificate."""

    def __init__(self, server: HttpServer, session: aiohttp.ClientSession, metrics: Metrics) -> None:
        self.server = server
        self.metrics = metrics
        self.any_certificate = any_certificate()
        self._session = session

    async def get(
        self, path: str, token: str = "", method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, str]:
        """Status and text."""
        answer = await self.answer(path, token, method, body, **headers)
        return answer.status, await answer.text()

    async def answer(
        self, path: str, token: str = "", method: str = "GET", body: bytes | None = None, **headers: str
    ) -> aiohttp.ClientResponse:
        if token:
            headers["Authorization"] = f"Bearer {token}"
        url = f"https://127.0.0.1:{self.server.port}{path}"
        response = await self._session.request(method, url, headers=headers, data=body)
        await response.read()
        return response

    async def slow_reader(self, path: str) -> asyncio.StreamWriter:
        """The connection of one who asks, and reads the first byte of the answer; sockets keep little of the rest."""
        small = socket.socket()
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.setblocking(False)
        await asyncio.get_running_loop().sock_connect(small, ("127.0.0.1", self.server.port))
        reader, writer = await asyncio.open_connection(
            sock=small, ssl=self.any_certificate, server_hostname="", limit=4096
        )
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readexactly(1)
        return writer


@asynccontextmanager
async def a_server(
    live: Mapping[str, Check] | None = None,
    ready: Mapping[str, Check] | None = None,
    *,
    pods: Mapping[str, Pod] | None = None,
    leads: bool = True,
    tokens: TokenReviewer | None = None,
    rights: AccessReviewer | None = None,
    always_allow: Sequence[str] = (*HEALTH, "/metrics"),
    options: ServingOptions = ANYWHERE,
    limits: Limits = DEFAULTS,
    metrics: Metrics | None = None,
    client: ssl.SSLContext | None = None,
    further: Mapping[str, Page] = MappingProxyType({}),
    settings: Mapping[str, Setting] = MappingProxyType({}),
    queried: Mapping[str, QueriedPage] = MappingProxyType({}),
    cache_seconds: float = 10.0,
) -> AsyncIterator[Served]:
    """Serve these checks, metrics, and further pages."""
    metrics = metrics or Metrics()
    pages = {**metric_pages(metrics, pods or {}, lambda: leads), **further}
    served = Pages(pages, live or {}, ready or {}, metrics, settings, queried=queried)
    authentication, authorization = (
        Authentication(tokens, cache_seconds),
        Authorization(rights, always_allow, cache_seconds, cache_seconds),
    )
    tasks = Tasks(metrics)
    server = HttpServer(options, served, authentication, authorization, metrics, tasks, limits)
    async with asyncio.timeout(15.0), server:
        connector = aiohttp.TCPConnector(ssl=client or any_certificate())
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Served(server, session, metrics)
    await tasks.close()
    assert not tasks.failed
    assert server.connections == {"busy": 0, "quiet": 0}


def any_certificate() -> ssl.SSLContext:
    """A client's context that asks for no signature."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
