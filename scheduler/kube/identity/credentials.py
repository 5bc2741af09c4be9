"""Our identity at the API server: a service account inside a cluster, or a user of a kubeconfig file.

`identity.py` reads both. Tokens expire, authorities and certificates are replaced: all of it is read again
every minute, and at a 401.

    read ──► in use ──a minute, or a 401──► read ──as before────────► in use
                                             │ ───changed───────────► in use, with a new version
                                             └───cannot be read─────► the old ones stay in use

No call waits for that, except for a moment one that got a 401: a program that provides credentials may hang. Rules:
transport/ca_rotation.go and cert_rotation.go in client-go 0.36.3, which look every five minutes.
"""

import asyncio
import logging
import os
import shlex
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias

from scheduler.framework.errors import ConfigError
from scheduler.kube.http.http1 import request_headers
from scheduler.kube.identity.exec_plugin import ExecCredential, ExecPlugin
from scheduler.kube.identity.identity import (
    REFRESH_SECONDS,
    Identity,
    cluster_info,
    is_in_cluster,
    of_context,
    of_service_account,
)
from scheduler.kube.identity.kubeconfig import Context, read_context

UNAUTHORIZED_REFRESH_SECONDS: Final = 1.0
"""A 401 refreshes at once, but no more often than this."""

RETRY_SECONDS: Final = 10.0
"""After a failure, before they are read again."""

READ_SECONDS: Final = 60.0
"""For reading them, whatever that takes."""

REJECTED_SECONDS: Final = 2.0
"""How long a call that got a 401 waits for new ones."""

RENEW_SECONDS: Final = 300.0
"""A plugin's credentials are replaced this long before they expire, or when half of their time is over."""

IN_CLUSTER: Final = "in-cluster service account"

_logger = logging.getLogger(__name__)


Load: TypeAlias = Callable[[bool], Awaitable[Identity]]
"""Reads an identity; whether the API server rejected the last one."""


class Credentials:
    """Our identity, kept up to date by `keep_fresh`, a task."""

    def __init__(self, source: str, load: Load, identity: Identity) -> None:
        """Raises ConfigError if the identity is of no use."""
        self.source = source
        """Their origin, for messages."""
        self.version = 0
        """Grows with each change."""
        self.certificate_version = 0
        """Grows with each change of our own certificate."""
        self._load = load
        self.identity = identity
        """As it was read last."""
        _check_header(source, identity)
        self.ssl_context = _tls_context(source, identity)
        self._asked = asyncio.Event()
        self._read = asyncio.Event()

    async def keep_fresh(self) -> None:
        """Read them again when they are due, or were rejected, until cancelled. Failures are logged."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.identity.fresh_for):
                    await self._asked.wait()
            rejected = self._asked.is_set()
            wait = UNAUTHORIZED_REFRESH_SECONDS
            try:
                await self.refresh(rejected=rejected)
            except ConfigError as error:
                _logger.warning("Credentials cannot be read; the old ones stay in use", extra={"err": str(error)})
                wait = RETRY_SECONDS
            self._asked.clear()
            self._read.set()
            self._read = asyncio.Event()
            await asyncio.sleep(wait)

    async def rejected(self, version: int) -> None:
        """The API server rejected those of this version: ask for new ones, and wait a moment for them."""
        if version != self.version:
            return
        self._asked.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(REJECTED_SECONDS):
                await self._read.wait()

    async def refresh(self, *, rejected: bool = False) -> None:
        """Read them now. Raises ConfigError if they cannot be read or are of no use; the old ones stay in use."""
        identity = await _loaded(self.source, self._load, rejected)
        old = self.identity
        if replace(identity, fresh_for=old.fresh_for) == old:
            self.identity = identity
            return
        _check_header(self.source, identity)
        context = _tls_context(self.source, identity) if identity.tls != old.tls else self.ssl_context
        if identity.tls != old.tls:
            _logger.info("The certificates for the API server were replaced", extra={"source": self.source})
        if (identity.tls.certificate, identity.tls.key) != (old.tls.certificate, old.tls.key):
            self.certificate_version += 1
        self.identity, self.ssl_context = identity, context
        self.version += 1


async def load_credentials(
    kubeconfig: str | None = None, context: str | None = None, now: Callable[[], float] = time.time
) -> Credentials:
    """Read the given kubeconfig file(s), or those that KUBECONFIG names, or our pod's service account.

    Outside of a pod, or where a `context` is asked for, the last is `~/.kube/config`. `now`: seconds since 1970. Raises
    ConfigError.
    """
    load: Load
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and context is None and is_in_cluster():
        source, load = IN_CLUSTER, _load_service_account
    else:
        source = named or "~/.kube/config"
        load = _Kubeconfig(source, context, now).load
    return Credentials(source, load, await _loaded(source, load, rejected=False))


async def _loaded(source: str, load: Load, rejected: bool) -> Identity:
    """Raises ConfigError."""
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await load(rejected)
    except TimeoutError as error:
        raise ConfigError([f"{source}: took more than {READ_SECONDS:g} s"]) from error


async def _load_service_account(rejected: bool) -> Identity:
    with _naming(IN_CLUSTER):
        return of_service_account()


class _Kubeconfig:
    """Reads kubeconfig files, and runs the plugin that they name when it is due."""

    def __init__(self, paths: str, context: str | None, now: Callable[[], float]) -> None:
        self._paths = paths
        self._context = context
        self._now = now
        named = [f"--kubeconfig={shlex.quote(paths)}", *([f"--context={shlex.quote(context)}"] if context else [])]
        self._by_hand = f"loadmaster doctor {' '.join(named)}"
        self._run: tuple[Mapping[str, Any], Mapping[str, Any] | None] | None = None
        """The kubeconfig's entry for the plugin, and what it learned of the cluster, when it was run."""
        self._given: ExecCredential | None = None
        self._renew_at = 0.0

    async def load(self, rejected: bool) -> Identity:
        context = read_context(self._paths, self._context)
        user, given = context.user, None
        with _naming(self._paths):
            if user is not None and user.content.get("exec") is not None:
                given = await self._exec(user.content["exec"], context, rejected=rejected)
            identity = of_context(context, given)
        if given is None:
            return identity
        wait = REFRESH_SECONDS if given.expires is None else self._renew_at - self._now()
        return replace(identity, fresh_for=min(max(wait, UNAUTHORIZED_REFRESH_SECONDS), REFRESH_SECONDS))

    async def _exec(self, plugin: Mapping[str, Any], context: Context, *, rejected: bool) -> ExecCredential:
        assert context.user is not None
        given, now = self._given, self._now()
        cluster = cluster_info(context.cluster) if plugin.get("provideClusterInfo") else None
        is_other = (plugin, cluster) != self._run
        if given is None or rejected or is_other or (given.expires is not None and now >= self._renew_at):
            described = ExecPlugin(plugin, context.user.directory, cluster, self._by_hand)
            given = self._given = await described.run()
            self._run = plugin, cluster
            if given.expires is not None:
                now = self._now()
                self._renew_at = given.expires - min(RENEW_SECONDS, max(given.expires - now, 0.0) / 2)
        return given


def _check_header(source: str, identity: Identity) -> None:
    """Raise ConfigError if no request can carry it."""
    try:
        request_headers("", "", identity.authorization)
    except ValueError as error:
        raise ConfigError([f"{source}: {error}"]) from error


def _tls_context(source: str, identity: Identity) -> ssl.SSLContext:
    """Raises ConfigError for certificates that are none."""
    authority, client = identity.names
    try:
        context = replace(identity.tls, certificate=b"", key=b"").context()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError([f"{source}: {authority}: {_reason(error)}"]) from error
    if not identity.tls.certificate:
        return context
    try:
        return identity.tls.context()
    except (OSError, ValueError) as error:
        raise ConfigError([f"{source}: {client}: {_reason(error)}"]) from error


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Name the source in what is raised: ConfigError, also for what cannot be read."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([f"{source}: {problem}" for problem in error.problems]) from error
    except (OSError, ValueError) as error:
        raise ConfigError([f"{source}: {_reason(error)}"]) from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
