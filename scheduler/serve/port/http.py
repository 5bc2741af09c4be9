"""The port: health for everyone, metrics for those who may see them, over HTTPS, within limits.

    accept ──place──► TLS ──► head ──► method, no body ──► authentication ──► path ──► authorization ──► answer
    (listener, places)   (connection)    405, 406, 413      401          404                  403, 500

As in kube-scheduler, a wrong token gets 401 for health, too. Unlike there, the API server is not asked about a path
that we do not serve: made-up names cost it nothing.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from types import MappingProxyType, TracebackType
from typing import Final, Self, TypeAlias

from aiohttp import HttpVersion11, web

from scheduler.api.reviews import PASSED_ON
from scheduler.config.options import ServingOptions
from scheduler.framework.errors import ClusterError
from scheduler.process.metrics import Metrics
from scheduler.process.tasks import Tasks
from scheduler.serve.access.authentication import Authentication, Unauthorized
from scheduler.serve.access.authorization import Authorization
from scheduler.serve.endpoints.health import Check, Health, Notes
from scheduler.serve.port.answers import (
    NO_BODY,
    NO_METHOD,
    NO_METHOD_BUT_PUT,
    NOT_FOUND,
    TOO_LONG,
    UNAUTHORIZED,
    Answer,
    forbidden,
    internal_error,
)
from scheduler.serve.port.certificates import Certificates
from scheduler.serve.port.connection import Connection
from scheduler.serve.port.limits import DEFAULTS, Limits
from scheduler.serve.port.listener import Listener
from scheduler.serve.port.streams import TOO_MANY, Streams

CHUNK: Final = 64 * 1024
"""Bytes written at once; the next when the peer has taken most of these."""

MAX_BODY: Final = 64
"""Bytes of a body: a number."""

QUIET_SECONDS: Final = 60.0
"""Between two log lines about reviews that failed."""

log = logging.getLogger(__name__)


Page: TypeAlias = Callable[[str], Awaitable[Answer]]
"""Makes an answer for an Accept header."""


QueriedPage: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Answer]]
"""Makes an answer for what comes after the `?`."""


Setting: TypeAlias = Callable[[bytes], Answer]
"""Takes what is written to a page of which nothing is read."""


class Pages:
    """The endpoints."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        live: Mapping[str, Check],
        ready: Mapping[str, Check],
        metrics: Metrics,
        settings: Mapping[str, Setting] = MappingProxyType({}),
        notes: Notes = tuple,
        queried: Mapping[str, QueriedPage] = MappingProxyType({}),
    ) -> None:
        """`pages`, `queried` and `settings` by their paths; health is added.

        `live` and `ready` are checks by name; readiness includes liveness. `notes`: further lines of `/readyz`.
        """
        alive = dict(live)
        checks = {"healthz": alive, "livez": alive, "readyz": {**alive, **ready}}
        noted = {"readyz": notes}
        self._health = {name: Health(name, of, metrics, noted.get(name, tuple)) for name, of in checks.items()}
        self._pages = pages
        self._queried = queried
        self._settings = settings

    def kind(self, path: str) -> str:
        """The page that a path is, or is below: a label with few values. Empty: there is none."""
        if path in self._pages or path in self._queried or path in self._settings:
            return path.removeprefix("/")
        first = path.removeprefix("/").partition("/")[0]
        return first if first in self._health else ""

    def takes(self, method: str, path: str) -> bool:
        """Return whether there is anything to do by that method."""
        return method in (("PUT",) if path in self._settings else ("GET", "HEAD"))

    async def answer(self, request: web.BaseRequest) -> Answer:
        """Answer a request that may be made, about a path that is of a kind."""
        setting = self._settings.get(request.path)
        if setting is None:
            return await self._get(request)
        body = bytearray()
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY:
                return TOO_LONG
        return setting(bytes(body))

    async def _get(self, request: web.BaseRequest) -> Answer:
        page = self._pages.get(request.path)
        if page is not None:
            return await page(request.headers.get("Accept", ""))
        queried = self._queried.get(request.path)
        if queried is not None:
            return await queried(request.query)
        name, slash, check = request.path[1:].partition("/")
        health = self._health[name]
        if not slash:
            query = request.query
            status, said = health.all(set(query.getall("exclude", [])), verbose="verbose" in query)
            return Answer(status, said.encode())
        found = health.one(check)
        return NOT_FOUND if found is None else Answer(found[0], found[1].encode())


class HttpServer:
    """An async context manager that serves while it is entered."""

    def __init__(
        self,
        options: ServingOptions,
        pages: Pages,
        authentication: Authentication,
        authorization: Authorization,
        metrics: Metrics,
        tasks: Tasks,
        limits: Limits = DEFAULTS,
    ) -> None:
        """Raises ConfigError if the options make no sense."""
        self._address = options.bind_address, options.secure_port
        self._pages = pages
        self._authentication, self._authorization = authentication, authorization
        self._requests = metrics.serving_requests
        self.certificates = Certificates(options, metrics)
        self._listener = Listener(lambda: self.certificates.context, self._serve, limits, metrics, tasks)
        self.certificates.on_new_client_ca = self._listener.evict_identified
        self._streams = Streams(limits)
        self._tasks = tasks
        self._parts: list[asyncio.Task[None]] = []
        self._logged_at = -QUIET_SECONDS

    async def __aenter__(self) -> Self:
        """Take the port; 0: any free one. Raises ConfigError if it cannot be had."""
        self._listener.open(*self._address)
        self._parts = [
            self._tasks.start("port", self._listener.accept()),
            self._tasks.start("certificates of the port", self.certificates.follow()),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.cancel(*self._parts)
        await self._streams.finish()
        await self._listener.close()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._listener.port

    @property
    def connections(self) -> dict[str, int]:
        """How many there are, by what they do."""
        busy = self._listener.places.busy
        return {"busy": busy, "quiet": len(self._listener.places) - busy}

    async def _serve(self, connection: Connection, request: web.BaseRequest) -> web.StreamResponse:
        with connection.busy():
            kind = self._pages.kind(request.path)
            answer = await self._answer(connection, request, kind)
            if answer.goes_on and request.method != "HEAD" and self._streams.is_full:
                if not isinstance(answer.body, bytes):
                    await answer.body.aclose()
                answer = TOO_MANY
            self._requests.labels(kind, str(answer.status)).inc()
            if not answer.goes_on or request.method == "HEAD":
                return await _write(request, answer)
            return await self._stream(connection, request, answer)

    async def _stream(self, connection: Connection, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        response, body = _begun(request, answer)

        async def may() -> bool:
            return await self._refusal(connection, request) is None

        await self._streams.send(connection, request, response, body, may)
        return response

    async def _answer(self, connection: Connection, request: web.BaseRequest, kind: str) -> Answer:
        if not self._pages.takes(request.method, request.path):
            return NO_METHOD_BUT_PUT if self._pages.takes("PUT", request.path) else NO_METHOD
        if request.body_exists and request.method != "PUT":
            return NO_BODY
        refusal = await self._refusal(connection, request, is_served=bool(kind))
        return await self._pages.answer(request) if refusal is None else refusal

    async def _refusal(
        self, connection: Connection, request: web.BaseRequest, *, is_served: bool = True
    ) -> Answer | None:
        """The answer to a request that may not be made; None if it may."""
        path, verb = request.path, request.method.lower()
        try:
            authorization = request.headers.get("Authorization", "")
            passed_on = request.headers.get(PASSED_ON, "")
            user = await self._authentication.user(connection.client_certificate, authorization, passed_on)
            if not is_served:
                return NOT_FOUND
            verdict = await self._authorization.verdict(user, path, verb)
        except Unauthorized as error:
            self._log_error("A request cannot be authenticated", connection, error)
            return UNAUTHORIZED
        except ClusterError as error:
            self._log_error("A request cannot be authorized", connection, error)
            return internal_error(request.path_qs, error)
        if not verdict.allowed or verdict.denied:
            return forbidden(user.username, verb, path, verdict.reason)
        return None

    def _log_error(self, what: str, connection: Connection, error: Exception) -> None:
        """Log it, but not for each of many requests."""
        now = time.monotonic()
        if now - self._logged_at >= QUIET_SECONDS:
            self._logged_at = now
            log.warning(what, extra={"peer": connection.address, "err": str(error)})


async def _write(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """Send an answer as fast as the peer takes it; little of it is in buffers."""
    response, body = _begun(request, answer)
    async with aclosing(body):
        with suppress(ConnectionError):  # the peer has gone: aiohttp notices by itself
            await response.prepare(request)
            if request.method != "HEAD":
                async for chunk in body:
                    await response.write(chunk)
            await response.write_eof()
    return response


def _begun(request: web.BaseRequest, answer: Answer) -> tuple[web.StreamResponse, AsyncGenerator[bytes, None]]:
    """An answer before its first byte."""
    headers = {
        "Server": "loadmaster",
        "Content-Type": answer.content_type,
        "Cache-Control": "no-cache, private",
        "X-Content-Type-Options": "nosniff",
        **dict(answer.headers),
    }
    if answer.status == 405:
        headers["Allow"] = "GET, HEAD"
    response = web.StreamResponse(status=answer.status, headers=headers)
    body = answer.body
    if isinstance(body, bytes):
        response.content_length, body = len(body), _chunks(body)
    elif request.version >= HttpVersion11:
        response.enable_chunked_encoding()
    else:
        response.force_close()
    if answer.close:
        response.force_close()
    return response, body


async def _chunks(body: bytes) -> AsyncGenerator[bytes, None]:
    for first in range(0, len(body), CHUNK):
        yield body[first : first + CHUNK]
