"""HTTP to extenders: one POST for each question, whose answer is bounded in time and bytes.

Go's client is the model: what TLS checks, proxies from the environment, the words for what went wrong. Redirections are
not followed, as they could lead a pod's secrets anywhere.

Rule: makeTransport in pkg/scheduler/extender.go at v1.36.3, TLSConfigFor in client-go.
"""

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from scheduler.config.extenders import Extender as Settings
from scheduler.config.extenders import TLSConfig
from scheduler.extenders.extender import CallFailed
from scheduler.extenders.wire import Body
from scheduler.framework.errors import ConfigError
from scheduler.kube.http.client import JSON, USER_AGENT, AnswerTooLong, content_of
from scheduler.kube.http.proxies import connector, http_proxy
from scheduler.kube.identity.tls_files import TlsFiles, read

MIN_ANSWER_BYTES: Final = 4 << 20
"""Of an answer are read at least as many; and twice as many as were sent, since it may be all that was sent."""

MAX_BYTES: Final = 256 << 20
"""Of all answers that are being read, at their longest. A call that might exceed it waits for others."""

CHUNK: Final = 256 << 10
"""Bytes that are given to the socket at a time."""

KEEPALIVE_SECONDS: Final = 30.0
RELOAD_SECONDS: Final = 60.0
"""Between two looks at certificates in files."""

_logger = logging.getLogger(__name__)


class Budget:
    """Bytes that all calls share."""

    def __init__(self, total: int = MAX_BYTES) -> None:
        self._total = total
        self._taken = 0
        self._given_back = asyncio.Condition()

    @asynccontextmanager
    async def share(self, wanted: int) -> AsyncIterator[None]:
        """Wait until so many bytes are free, and have them for the length of the block; all of them at most."""
        share = min(wanted, self._total)
        async with self._given_back:
            await self._given_back.wait_for(lambda: self._taken + share <= self._total)
            self._taken += share
        try:
            yield
        finally:
            self._taken -= share
            async with self._given_back:
                self._given_back.notify_all()


class HttpTransport:
    """scheduler.extenders.roster.Connection."""

    def __init__(self, settings: Settings, place: str, budget: Budget, may_send: Callable[[], bool]) -> None:
        """`place` in the configuration, for messages. `may_send`: whether we lead, for bindings.

        Raises ConfigError for certificates that cannot be used.
        """
        self._settings = settings
        self._budget = budget
        self._may_send = may_send
        self._prefix = settings.url_prefix.rstrip("/")
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout)
        self._files = _tls_files(settings, place)
        self._context = _context(self._files, place)
        self._server_name = settings.tls_config.server_name if settings.tls_config else ""
        self._proxy = _proxy_for(settings.url_prefix)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def follows_files(self) -> bool:
        """Whether certificates are in files that may change."""
        tls = self._settings.tls_config
        return tls is not None and bool(tls.ca_file or tls.cert_file or tls.key_file)

    def refresh(self) -> None:
        """Read certificates in files again. What cannot be used changes nothing."""
        if not self.follows_files:
            return
        name = self._settings.name
        try:
            files = _tls_files(self._settings, name)
            if files == self._files:
                return
            self._context = _context(files, name)
        except ConfigError as error:
            _logger.warning("Certificates for an extender are of no use; the former stay", extra={"err": str(error)})
            return
        self._files = files
        _logger.info("Certificates for an extender have changed", extra={"extender": name})

    async def post(self, verb: str, body: Body, check: Callable[[], None] | None = None) -> bytes:
        """See Transport. With a `check`, nothing is sent while another replica leads."""
        url = f"{self._prefix}/{verb}"
        if not self._prefix:
            raise CallFailed(f'Post {json.dumps(url)}: unsupported protocol scheme ""', "connection", was_sent=False)
        size = sum(map(len, body))
        longest = MIN_ANSWER_BYTES + 2 * size
        async with self._budget.share(longest):
            try:
                return await self._exchange(verb, url, body, size, longest, check)
            except aiohttp.ServerDisconnectedError:
                # The kept connection was about to be closed. To ask once more does no harm; to bind might.
                if check is not None:
                    raise CallFailed(f"Post {json.dumps(url)}: EOF", "connection") from None
            try:
                return await self._exchange(verb, url, body, size, longest, check)
            except aiohttp.ServerDisconnectedError:
                raise CallFailed(f"Post {json.dumps(url)}: EOF", "connection") from None

    async def _exchange(
        self, verb: str, url: str, body: Body, size: int, longest: int, check: Callable[[], None] | None
    ) -> bytes:
        sent = _Sent(body, check, self._may_send)
        has_begun = False
        try:
            async with self._opened().post(
                url,
                data=sent.chunks(),
                headers={"Content-Length": str(size)},
                timeout=self._timeout,
                allow_redirects=False,
                ssl=self._context,
                server_hostname=self._server_name or None,
                proxy=http_proxy(self._proxy),
            ) as response:
                has_begun = True
                if response.status != 200:
                    text = f"failed {verb} with extender at URL {url}, code {response.status}"
                    raise CallFailed(text, "status")
                return await _content(response, longest)
        except aiohttp.ServerDisconnectedError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if sent.refusal is not None:
                try:
                    raise sent.refusal from None
                finally:
                    sent.refusal = None  # its traceback has this frame, which has `sent`
            raise _failure(url, error, has_begun=has_begun, was_sent=sent.has_begun) from error

    def _opened(self) -> aiohttp.ClientSession:
        """The session, which needs a running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=connector(self._proxy, keepalive_timeout=KEEPALIVE_SECONDS),
                headers={"User-Agent": USER_AGENT, "Content-Type": JSON, "Accept-Encoding": "identity"},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session


async def follow_files(refresh: Callable[[], None]) -> None:
    """A part: have certificates read again now and then."""
    while True:
        await asyncio.sleep(RELOAD_SECONDS)
        refresh()


class _Sent:
    """A body on its way, in chunks. It knows whether any of it was given out, and what forbade that."""

    def __init__(self, body: Body, check: Callable[[], None] | None, may_send: Callable[[], bool]) -> None:
        self._body = body
        self._check = check
        self._may_send = may_send
        self.has_begun = False
        self.refusal: Exception | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._check is not None:
            # aiohttp sends the head with the first bytes: there is a connection, and nothing was sent.
            try:
                self._check()
            except Exception as error:
                self.refusal = error
                raise
            if not self._may_send():
                self.refusal = CallFailed("this replica does not lead", "connection", was_sent=False)
                raise self.refusal
        self.has_begun = True
        chunk = bytearray()
        for piece in self._body:
            chunk += piece
            if len(chunk) >= CHUNK:
                yield bytes(chunk)
                chunk.clear()
        yield bytes(chunk)


async def _content(response: aiohttp.ClientResponse, longest: int) -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise CallFailed(f"the answer is encoded as {encoding[:40]!r}, which was not asked for", "answer")
    try:
        return await content_of(response, longest)
    except AnswerTooLong as error:
        raise CallFailed(str(error), "answer") from None


def _failure(url: str, error: Exception, *, has_begun: bool, was_sent: bool) -> CallFailed:
    """Word a failed exchange as Go does, where we know how."""
    asked = f"Post {json.dumps(url)}: "
    if isinstance(error, TimeoutError):
        if has_begun:
            text = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
            return CallFailed(text, "timeout")
        text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        return CallFailed(asked + text, "timeout", was_sent=was_sent)
    if isinstance(error, aiohttp.ClientPayloadError):
        return CallFailed("unexpected EOF", "connection")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        text = f"dial tcp: lookup {urlsplit(url).hostname}: {error.os_error.strerror or error.os_error}"
        return CallFailed(asked + text, "connection", was_sent=False)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        text = f"tls: failed to verify certificate: {_reason(error.certificate_error)}"
        return CallFailed(asked + text, "connection", was_sent=False)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return CallFailed(f"{asked}tls: {_reason(error.os_error)}", "connection", was_sent=False)
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        text = "connection refused" if isinstance(cause, ConnectionRefusedError) else _reason(cause)
        return CallFailed(f"{asked}dial tcp {error.host}:{error.port}: connect: {text}", "connection", was_sent=False)
    return CallFailed(asked + (str(error) or type(error).__name__)[:500], "connection", was_sent=was_sent)


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _tls_files(settings: Settings, place: str) -> TlsFiles:
    """Read what the configuration names. Raises ConfigError with all that cannot be read, by its path below `place`.

    `enableHTTPS` without an authority means that the server's certificate is not looked at, as in kube-scheduler.
    """
    tls = settings.tls_config or TLSConfig()
    problems: list[str] = []

    def part(key: str, data: str, path: str) -> bytes:
        return _part(f"{place}.tlsConfig.{key}", data, path, problems)

    authority = part("caFile", tls.ca_data, tls.ca_file)
    certificate, key = part("certFile", tls.cert_data, tls.cert_file), part("keyFile", tls.key_data, tls.key_file)
    if bool(certificate) != bool(key) and not problems:
        has, lacks = ("certificate", "key") if certificate else ("key", "certificate")
        problems.append(f"{place}.tlsConfig: a client {has} without its {lacks}")
    if problems:
        raise ConfigError(problems)
    has_authority = bool(tls.ca_data or tls.ca_file)
    verifies = not tls.insecure and (has_authority or not settings.enable_https)
    return TlsFiles(_text(authority, place), certificate, key, verifies)


def _part(place: str, data: str, path: str, problems: list[str]) -> bytes:
    found: Callable[[], bytes] = (lambda: base64.b64decode(data)) if data else (lambda: read(path))
    try:
        return found()
    except ConfigError as error:
        problems.extend(f"{place}: {problem}" for problem in error.problems)
    except OSError as error:
        problems.append(f"{place}: cannot read {path!r}: {error.strerror or error}")
    return b""


def _text(authority: bytes, place: str) -> str:
    try:
        return authority.decode("ascii")
    except UnicodeDecodeError as error:
        raise ConfigError([f"{place}.tlsConfig: the authority is no PEM"]) from error


def _context(files: TlsFiles, place: str) -> ssl.SSLContext:
    try:
        return files.context()
    except (OSError, ValueError) as error:
        raise ConfigError([f"{place}.tlsConfig: these certificates are of no use: {_reason(error)}"]) from error


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address, as Go's client asks: HTTP_PROXY, HTTPS_PROXY, NO_PROXY."""
    parts = urlsplit(url)
    with suppress(OSError):
        if parts.hostname in ("localhost", "127.0.0.1", "::1") or proxy_bypass(parts.netloc.rpartition("@")[2]):
            return None
    return getproxies().get(parts.scheme)
