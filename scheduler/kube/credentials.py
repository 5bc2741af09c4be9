"""Who we are to the API server: a service account inside a cluster, or a user of a kubeconfig file.

`kubernetes.aio.config` reads both; this module turns the result into what requests need, and the user's mistakes into a
ConfigError. Tokens expire, authorities and certificates are replaced: all of it is read again every minute, and at a
401.

    read ──► in use ──a minute, or a 401──► read ──as before────────► in use
                                             │ ───changed───────────► in use, with a new version
                                             └───cannot be read─────► the old ones stay in use

No call waits for that, except one that got a 401, and that for a moment only: a program that gives the credentials may
hang. Rules: transport/ca_rotation.go and cert_rotation.go in client-go 0.36.3, which look every five minutes.
"""

import asyncio
import logging
import os
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME, SERVICE_TOKEN_FILENAME
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from scheduler.framework.errors import ConfigError
from scheduler.kube.exec_plugin import ExecCredential, ExecPlugin
from scheduler.kube.http1 import request_headers
from scheduler.kube.kubeconfig import check_kubeconfig, read_kubeconfig, yaml_problem
from scheduler.kube.tls_files import TlsFiles, read

REFRESH_SECONDS: Final = 60.0
"""Age at which credentials are read again. Service account tokens are replaced well before they expire."""

UNAUTHORIZED_REFRESH_SECONDS: Final = 1.0
"""A 401 refreshes at once, but no more often than this."""

RETRY_SECONDS: Final = 10.0
"""After a failure, before they are read again."""

READ_SECONDS: Final = 60.0
"""For reading them, whatever that takes."""

REJECTED_SECONDS: Final = 2.0
"""How long a call that got a 401 waits for new ones."""

RENEW_SECONDS: Final = 300.0
"""What a plugin gave is replaced this long before it expires, or when half of its time is over."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """The API server's address, and what we show it and expect from it."""

    server: str
    """The base URL, without a trailing slash."""
    server_hostname: str | None
    """The name that the server's certificate must carry, if not the host's."""
    proxy: str | None
    authorization: str | None
    """The Authorization header."""
    tls: TlsFiles
    names: tuple[str, str]
    """Where authority and client certificate come from, for messages."""
    fresh_for: float = REFRESH_SECONDS
    """Seconds after which to read again."""

    def __repr__(self) -> str:  # a secret must not get into a log by accident
        return f"Identity({self.server!r})"


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
        self._identity = identity
        _check_header(source, identity)
        self.ssl_context = _tls_context(source, identity)
        self._asked = asyncio.Event()
        self._read = asyncio.Event()

    @property
    def server(self) -> str:
        """The base URL, without a trailing slash."""
        return self._identity.server

    @property
    def proxy(self) -> str | None:
        return self._identity.proxy

    @property
    def server_hostname(self) -> str | None:
        """The name that the server's certificate must carry, if not the host's."""
        return self._identity.server_hostname

    @property
    def authorization(self) -> str | None:
        """The Authorization header."""
        return self._identity.authorization

    @property
    def certificate(self) -> bytes:
        """Our own certificate, in PEM; empty if we show the API server none."""
        return self._identity.tls.certificate

    async def keep_fresh(self) -> None:
        """Read them again when they are due, or were rejected, until cancelled. Failures are logged."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._identity.fresh_for):
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
        with _config_errors(self.source):
            async with asyncio.timeout(READ_SECONDS):
                identity = await self._load(rejected)
        old = self._identity
        if replace(identity, fresh_for=old.fresh_for) == old:
            self._identity = identity
            return
        _check_header(self.source, identity)
        context = _tls_context(self.source, identity) if identity.tls != old.tls else self.ssl_context
        if identity.tls != old.tls:
            _logger.info("The certificates for the API server were replaced", extra={"source": self.source})
        if (identity.tls.certificate, identity.tls.key) != (old.tls.certificate, old.tls.key):
            self.certificate_version += 1
        self._identity, self.ssl_context = identity, context
        self.version += 1


async def load_credentials(
    kubeconfig: str | None = None, context: str | None = None, now: Callable[[], float] = time.time
) -> Credentials:
    """Read the given kubeconfig file(s), or our pod's service account, or the user's own kubeconfig.

    The last is what KUBECONFIG names, or `~/.kube/config`. `now`: seconds since 1970. Raises ConfigError.
    """
    load: Load
    if kubeconfig is None and is_in_cluster():
        source, load = "in-cluster service account", _load_service_account
        _check_token(source)
    else:
        source = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        check_kubeconfig(source, context)
        load = _Kubeconfig(source, context, now).load
    with _config_errors(source):
        async with asyncio.timeout(READ_SECONDS):
            identity = await load(False)
    return Credentials(source, load, identity)


def current_namespace(kubeconfig: str | None = None, context: str | None = None) -> str:
    """Return the namespace of the kubeconfig's context, or of our pod; `default` where none is named.

    Raises ConfigError.
    """
    if kubeconfig is None and is_in_cluster():
        source = str(Path(SERVICE_TOKEN_FILENAME).with_name("namespace"))
        with _config_errors(source):
            return Path(source).read_text().strip()
    read = read_kubeconfig(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
    found = read.entries["contexts"].get(context or read.current_context)
    return str(found.content.get("namespace") or "default") if found is not None else "default"


def is_in_cluster() -> bool:
    """Whether this runs in a pod, which has a service account."""
    return SERVICE_HOST_ENV_NAME in os.environ


async def _load_service_account(rejected: bool) -> Identity:
    configuration = Configuration()
    config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
    return _identity(configuration)


def _check_token(source: str) -> None:
    """Say where the token is missing before the library says only that it is."""
    if not Path(SERVICE_TOKEN_FILENAME).is_file():
        hint = "is automountServiceAccountToken false for the pod or its service account?"
        raise ConfigError([f"{source}: no token at {SERVICE_TOKEN_FILENAME}: {hint}"])


class _Kubeconfig:
    """Reads kubeconfig files, and runs the plugin that they name when it is due."""

    def __init__(self, paths: str, context: str | None, now: Callable[[], float]) -> None:
        self._paths = paths
        self._context = context
        self._now = now
        self._plugin: Mapping[str, Any] | None = None
        """What the kubeconfig said of the plugin when it was run."""
        self._given: ExecCredential | None = None
        self._renew_at = 0.0

    async def load(self, rejected: bool) -> Identity:
        configuration = Configuration()
        loader = _Loader(self._paths, self._context, lambda *plugin: self._exec(*plugin, rejected=rejected))
        await loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        identity = _identity(configuration)
        given = loader.given
        if given is None:
            return identity
        if given.certificate:
            tls = replace(identity.tls, certificate=given.certificate.encode(), key=given.key.encode())
            identity = replace(identity, tls=tls, names=(identity.names[0], "of users[…].user.exec"))
        wait = REFRESH_SECONDS if given.expires is None else self._renew_at - self._now()
        return replace(identity, fresh_for=min(max(wait, UNAUTHORIZED_REFRESH_SECONDS), REFRESH_SECONDS))

    async def _exec(self, plugin: Mapping[str, Any], directory: Path, *, rejected: bool) -> ExecCredential:
        given, now = self._given, self._now()
        if given is None or rejected or plugin != self._plugin or (given.expires is not None and now >= self._renew_at):
            given = self._given = await ExecPlugin(plugin, directory).run()
            self._plugin = plugin
            if given.expires is not None:
                now = self._now()
                self._renew_at = given.expires - min(RENEW_SECONDS, max(given.expires - now, 0.0) / 2)
        return given


class _Loader(KubeConfigLoader):
    """The library's, with plugins run by us: its own have no limits, and their failures are only logged."""

    def __init__(
        self, paths: str, context: str | None, run: Callable[[Mapping[str, Any], Path], Awaitable[ExecCredential]]
    ) -> None:
        merged = KubeConfigMerger(paths)  # type: ignore[no-untyped-call]
        super().__init__(merged.config, context or None, config_base_path=None)  # type: ignore[no-untyped-call]
        self._run = run
        self.given: ExecCredential | None = None

    async def load_from_exec_plugin(self) -> bool:
        given = self.given = await self._run(*self._plugin())
        if given.token:
            self.token = f"Bearer {given.token}"
        return True

    def _plugin(self) -> tuple[Mapping[str, Any], Path]:
        """What the kubeconfig says of it, and the kubeconfig's directory."""
        user: Any = self._user
        return user["exec"].value, Path(user.path).absolute().parent


def _identity(configuration: Configuration) -> Identity:
    """What the library has read. Raises OSError, ConfigError for files that cannot be read."""
    header: str | None = configuration.api_key.get("BearerToken")
    ca, certificate, key = configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file
    tls = TlsFiles(
        # Comments may be in any language.
        read(ca).decode("ascii", "ignore"),
        read(certificate),
        read(key) if certificate else b"",
        verifies=bool(configuration.verify_ssl),
        is_strict=not getattr(configuration, "disable_strict_ssl_verification", False),
    )
    return Identity(
        server=str(configuration.host).rstrip("/"),
        server_hostname=configuration.tls_server_name or None,
        proxy=configuration.proxy or None,
        # The in-cluster loader keeps the token file's trailing line break.
        authorization=header.strip() if header else None,
        tls=tls,
        names=(str(ca or ""), f"{certificate}, client-key {key}"),
    )


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
        replace(identity.tls, certificate=b"", key=b"").context()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError([f"{source}: certificate-authority {authority}: {_reason(error)}"]) from error
    try:
        return identity.tls.context()
    except (OSError, ValueError) as error:
        raise ConfigError([f"{source}: client-certificate {client}: {_reason(error)}"]) from error


class _config_errors:  # noqa: N801  used like a function
    """Turns whatever reading credentials raises into a one-line ConfigError."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ConfigError):
            raise ConfigError([f"{self._source}: {problem}" for problem in error.problems]) from error
        # The library checks little: malformed files raise KeyError, TypeError …
        if isinstance(error, Exception):
            raise ConfigError([f"{self._source}: {_reason(error)}"]) from error


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"took more than {READ_SECONDS:g} s"
    if isinstance(error, yaml.YAMLError):
        return f"not YAML: {yaml_problem(error)}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = _without_contents(" ".join(str(error).split())) or type(error).__name__
    return text if isinstance(error, config.ConfigException) else f"{type(error).__name__}: {text}"


def _without_contents(text: str) -> str:
    """The library names an entry by all that it contains: tokens, too."""
    return re.sub(r"\{.*\}?", "{…}", text)
