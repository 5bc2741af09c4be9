"""The page on 127.0.0.1, only for the browser of the user who started the command.

    browser ──127.0.0.1──► LocalPage ──API server's service proxy──► the replica that leads

    GET /open?token=TOKEN ──► a cookie for /PLACE/, then /PLACE/debug/page/
    GET /PLACE/debug/…    ──cookie──► the scheduler

Other users of the machine may connect, and other sites may have the browser do so. Neither knows the token. A site
whose name is made to lead to 127.0.0.1 is recognised by the Host header; one that has the browser send requests gets no
cookie with them (SameSite=Strict), and is recognised by Sec-Fetch-Site. Cookies ignore ports: what keeps ours from
another server on 127.0.0.1 is PLACE, which that server does not know either.
"""

import argparse
import asyncio
import hmac
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final, NamedTuple

import aiohttp
from aiohttp import web

from scheduler.api.decoding import Decoder, Unreadable
from scheduler.api.wording.text import printable
from scheduler.framework.errors import ClusterError
from scheduler.kube.http.client import connected
from scheduler.kube.services.service_proxy import TRIES, NotRunning, Refused, RunningScheduler
from scheduler.process.metrics import Metrics
from scheduler.process.results import results
from scheduler.process.tasks import Tasks
from scheduler.serve.port.answers import LEADING
from scheduler.serve.port.connection import Connection
from scheduler.serve.port.limits import Limits
from scheduler.serve.port.listener import Listener
from scheduler.serve.port.streams import Streams

PAGE: Final = "debug/page/"
LIVE: Final = "debug/page/live"
EXPLAIN: Final = "debug/explain"

LIMITS: Final = Limits(
    connections_per_address=64,  # all come from this machine
    handshakes_per_second=1000.0,
    burst=1000,
    request_seconds=60.0,  # the scheduler takes 30 at most, and the API server is in between
    streams=4,  # of the six connections that a browser makes, two are left for whatever else is asked
)
"""The limits of the scheduler's own port, except those that differ on this machine."""

TOO_MANY_LIVE: Final = (
    f"{LIMITS.streams} windows show the scheduler live already, and a browser has no connections for more: close one"
)

MAX_REQUESTS: Final = 32
"""Under way at once."""

MAX_MESSAGE: Final = 64 * 1024
"""Bytes of an error that are read."""

COOKIE: Final = "loadmaster-page"

_PAGES: Final = re.compile(rf"{PAGE}(?:[a-z]+(?:\.[a-z]+)?)?")
_ITSELF: Final = ("same-origin", "none")
_KEPT: Final = (
    "Content-Type",
    "Content-Security-Policy",
    "Cross-Origin-Opener-Policy",
    "Cross-Origin-Resource-Policy",
    "Referrer-Policy",
    "X-Frame-Options",
)
_ALWAYS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Problem(NamedTuple):
    """Why there is no answer of the scheduler."""

    status: int
    message: str


class LocalPage:
    def __init__(self, scheduler: RunningScheduler, limits: Limits = LIMITS) -> None:
        self.port = 0
        """The address at which it is served."""
        self._scheduler = scheduler
        self._token, self._place = secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        self._turns = asyncio.Semaphore(MAX_REQUESTS)
        self.limits = limits
        self.streams = Streams(limits)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/open?token={self._token}"

    async def check(self) -> None:
        """Ask for the page once. Raises ClusterError with the reason if that fails."""
        async with AsyncExitStack() as stack:
            answer = await self._asked(stack, PAGE, "", "text/html")
            if answer.status != 200:
                raise ClusterError((await self._problem(answer, PAGE)).message)

    async def answer(self, connection: Connection, request: web.BaseRequest) -> web.StreamResponse:
        with connection.busy():
            return await self._answer(connection, request)

    async def _answer(self, connection: Connection, request: web.BaseRequest) -> web.StreamResponse:
        if not self._is_here(request.headers.get("Host", "")):
            return _said(Problem(421, "this is not the address that the command has printed"))
        if request.method not in ("GET", "HEAD"):
            return _said(Problem(405, "only GET and HEAD are served"))
        if request.path == "/open":
            return self._open(request)
        _, _, rest = request.path.partition(f"/{self._place}/")
        if not request.path.startswith(f"/{self._place}/") or not self._is_known(request.cookies.get(COOKIE, "")):
            return _said(Problem(403, "open the address that the command has printed"))
        if request.headers.get("Sec-Fetch-Site", "none") not in _ITSELF:
            return _said(Problem(403, "another site asks"))
        if rest != EXPLAIN and not _PAGES.fullmatch(rest):
            return _said(Problem(404, "there is no such page"))
        if self._turns.locked():
            return _said(Problem(429, "too many requests at once"))
        async with self._turns, AsyncExitStack() as stack:
            return await self._forward(stack, connection, request, rest)

    def _is_here(self, host: str) -> bool:
        name, _, port = host.partition(":")
        return name in ("127.0.0.1", "localhost") and (port or "80") == str(self.port)  # browsers leave 80 out

    def _open(self, request: web.BaseRequest) -> web.StreamResponse:
        if not hmac.compare_digest(request.query.get("token", "").encode(), self._token.encode()):
            return _said(Problem(403, "open the address that the command has printed"))
        headers = {**_ALWAYS, "Location": f"/{self._place}/{PAGE}"}
        response = web.Response(status=303, headers=headers)
        response.set_cookie(COOKIE, self._token, path=f"/{self._place}/", httponly=True, samesite="Strict")
        return response

    def _is_known(self, cookie: str) -> bool:
        return hmac.compare_digest(cookie.encode(errors="replace"), self._token.encode())

    async def _forward(
        self, stack: AsyncExitStack, connection: Connection, request: web.BaseRequest, path: str
    ) -> web.StreamResponse:
        accept = request.headers.get("Accept", "*/*")[:200]
        try:
            answer = await self._asked(stack, path, request.rel_url.raw_query_string, accept)
            if answer.status not in (200, 404) or (answer.status == 404 and path != EXPLAIN):
                return _said(await self._problem(answer, path))
            headers = {**_ALWAYS, **{name: answer.headers[name] for name in _KEPT if name in answer.headers}}
            response = web.StreamResponse(status=answer.status, headers=headers)
            if path == LIVE and request.method != "HEAD":
                if self.streams.is_full:
                    return _said(Problem(429, TOO_MANY_LIVE))
                await self.streams.send(connection, request, response, _chunks(answer), _always)
                return response
            await response.prepare(request)
        except NotRunning as error:
            return _said(Problem(503, str(error)))
        except Refused as error:
            return _said(_refused(error.status, str(error)))
        except ClusterError as error:
            return _said(Problem(502, str(error)))
        if request.method != "HEAD":
            with suppress(ConnectionError):  # the browser has gone
                async for chunk in _chunks(answer):
                    await response.write(chunk)
        with suppress(ConnectionError):
            await response.write_eof()
        return response

    async def _asked(self, stack: AsyncExitStack, path: str, query: str, accept: str) -> aiohttp.ClientResponse:
        """The answer of the replica that leads, if it is found; else of another one. Raises as `opened` does."""
        was_refused = False
        for _ in range(TRIES - 1):
            async with AsyncExitStack() as attempt:
                answer = await attempt.enter_async_context(self._scheduler.opened(path, query, accept))
                # The token may have ended a moment ago; a new one is shown then.
                is_refused = answer.status == 401 and not was_refused
                if not is_refused and answer.headers.get(LEADING) != "false":
                    stack.push_async_exit(attempt.pop_all())
                    return answer
                was_refused = was_refused or is_refused
        return await stack.enter_async_context(self._scheduler.opened(path, query, accept))

    async def _problem(self, answer: aiohttp.ClientResponse, path: str) -> Problem:
        body = await answer.content.read(MAX_MESSAGE)
        try:
            said = str(_message.decode(body).get("message", ""))
        except (Unreadable, AttributeError):
            said = body.decode(errors="replace")
        said, where = printable(said.strip())[:1000], self._scheduler.where
        if answer.status == 404 and "not found" in said and "page" not in said:
            return Problem(503, f"{where} is not there: {said}")
        if answer.status == 404 and path == PAGE:
            return Problem(404, f"{where} serves no page: start it with --page (in the chart: page.enabled=true)")
        if answer.status in (502, 503):
            return Problem(503, f"{where} leads to no running scheduler: {said}")
        return _refused(answer.status, said or f"{where} answered HTTP {answer.status}")


def run(options: argparse.Namespace) -> int:
    """Serve until interrupted. Raises ConfigError, ClusterError."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    metrics, stop = Metrics(), asyncio.Event()
    tasks = Tasks(metrics, stop)
    async with connected(options.kubeconfig, options.context) as client:
        page = LocalPage(RunningScheduler(client, options.service_namespace, options.service))
        await page.check()
        try:
            async with served(page, options.port, metrics, tasks):
                text = f"{page.url}\n\nOpen it in a browser of this machine. Ctrl-C ends it."
                print(text, file=results(), flush=True)
                await stop.wait()
        finally:
            await tasks.close()
    return 1


@asynccontextmanager
async def served(page: LocalPage, port: int, metrics: Metrics, tasks: Tasks) -> AsyncIterator[None]:
    """Serve it on this machine meanwhile. Raises ConfigError if the port cannot be had."""
    listener = Listener(lambda: None, page.answer, page.limits, metrics, tasks)
    listener.open("127.0.0.1", port)
    page.port = listener.port
    accepting = tasks.start("page", listener.accept())
    try:
        yield
    finally:
        await tasks.cancel(accepting)
        await page.streams.finish()
        await listener.close()


def _refused(status: int, said: str) -> Problem:
    if status == 401:
        return Problem(401, "your credentials are not accepted any more: log in again, this page goes on by itself")
    return Problem(status if 400 <= status < 600 else 502, said)


def _said(problem: Problem) -> web.Response:
    headers = {**_ALWAYS, "Allow": "GET, HEAD"} if problem.status == 405 else _ALWAYS
    return web.Response(status=problem.status, text=f"{problem.message}\n", headers=headers)


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """Pass the stream on as it comes. If the scheduler ends in the middle, the browser simply connects again."""
    with suppress(aiohttp.ClientError, TimeoutError, OSError):
        async for chunk in answer.content.iter_any():
            yield chunk


async def _always() -> bool:
    """The scheduler looks by itself whether the reader may still see a stream."""
    return True


_message: Decoder[dict[str, object]] = Decoder(dict[str, object])
