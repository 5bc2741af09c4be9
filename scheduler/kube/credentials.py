"""Who we are to the API server: a service account inside a cluster, or a user of a kubeconfig file.

`kubernetes.aio.config` reads both; this module turns the result into what an aiohttp session needs, and the user's
mistakes into a ConfigError. Tokens expire: the files are read again every minute, and at a 401.
"""

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.aio import config
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.incluster_config import SERVICE_HOST_ENV_NAME, SERVICE_TOKEN_FILENAME

from scheduler.framework.awaited import child
from scheduler.framework.errors import ConfigError

REFRESH_SECONDS: Final = 60.0
"""Age at which a token is read again. Service account tokens are replaced well before they expire."""

UNAUTHORIZED_REFRESH_SECONDS: Final = 1.0
"""A 401 refreshes at once, but no more often than this."""


class Credentials:
    """The API server's address, its certificate authority, and our identity.

    `refresh` is cheap when nothing is due; call it before each request.
    """

    def __init__(
        self,
        source: str,
        configuration: Configuration,
        reload: Callable[[], Awaitable[None]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        """Their origin, for messages."""
        self._configuration = configuration
        self._reload = reload
        self._now = now
        self._read_at = now()
        self._reading: asyncio.Task[None] | None = None
        self.ssl_context = _ssl_context(source, configuration)
        self._certificates = _modified(configuration)

    @property
    def server(self) -> str:
        """The base URL, without a trailing slash."""
        return str(self._configuration.host).rstrip("/")

    @property
    def proxy(self) -> str | None:
        return self._configuration.proxy or None

    @property
    def server_hostname(self) -> str | None:
        """The name that the server's certificate must carry, if not the host's."""
        return self._configuration.tls_server_name or None

    @property
    def authorization(self) -> str | None:
        """The Authorization header."""
        header: str | None = self._configuration.api_key.get("BearerToken")
        # The in-cluster loader keeps the token file's trailing line break.
        return header.strip() if header else None

    @property
    def certificates(self) -> object:
        """Equal while `ssl_context` has the same client certificate."""
        return self._certificates

    @property
    def is_due(self) -> bool:
        """Whether `refresh` has something to do."""
        return self._now() - self._read_at >= REFRESH_SECONDS

    async def refresh(self, *, rejected: bool = False) -> None:
        """Read the credentials again if they are due, or if the API server `rejected` them.

        Raises ConfigError if they became unreadable; the old ones stay in use.
        """
        age = self._now() - self._read_at
        if age < (UNAUTHORIZED_REFRESH_SECONDS if rejected else REFRESH_SECONDS):
            return
        if self._reading is None or self._reading.done():
            self._reading = child("refresh credentials", self._read())
        # Shared by all waiting callers: the cancellation of one must not cancel it.
        await asyncio.shield(self._reading)

    async def _read(self) -> None:
        self._read_at = self._now()
        with _config_errors(self.source):
            await self._reload()
            modified = _modified(self._configuration)
            if modified != self._certificates and self._configuration.cert_file:
                # New connections use the new certificate.
                self.ssl_context.load_cert_chain(self._configuration.cert_file, self._configuration.key_file)
                self._certificates = modified


async def load_credentials(
    kubeconfig: str | None = None, context: str | None = None, now: Callable[[], float] = time.monotonic
) -> Credentials:
    """Read the given kubeconfig file(s), or our pod's service account, or the user's own kubeconfig.

    The last is what KUBECONFIG names, or `~/.kube/config`. Raises ConfigError.
    """
    if kubeconfig is None and is_in_cluster():
        return await _from_service_account(now)
    return await _from_kubeconfig(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config", context, now)


def is_in_cluster() -> bool:
    """Whether this runs in a pod, which has a service account."""
    return SERVICE_HOST_ENV_NAME in os.environ


async def _from_service_account(now: Callable[[], float]) -> Credentials:
    configuration = Configuration()
    source = "in-cluster service account"
    _check_token(source)
    with _config_errors(source):
        config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]

    async def reload() -> None:
        config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]

    return Credentials(source, configuration, reload, now)


def _check_token(source: str) -> None:
    """Say where the token is missing before the library says only that it is."""
    if not Path(SERVICE_TOKEN_FILENAME).is_file():
        hint = "is automountServiceAccountToken false for the pod or its service account?"
        raise ConfigError([f"{source}: no token at {SERVICE_TOKEN_FILENAME}: {hint}"])


async def _from_kubeconfig(paths: str, context: str | None, now: Callable[[], float]) -> Credentials:
    _check_readable(paths)
    configuration = Configuration()

    async def load() -> Any:
        return await config.load_kube_config(  # type: ignore[no-untyped-call]
            paths, context or None, configuration, persist_config=False
        )

    with _config_errors(paths):
        loader = await load()
        _check_exec_plugin(loader)

    async def reload() -> None:
        nonlocal loader
        if _exec_plugin(loader) is not None:
            await loader.load_and_set(configuration)  # runs the plugin only if its token expires soon
        else:
            loader = await load()

    return Credentials(paths, configuration, reload, now)


def _check_readable(paths: str) -> None:
    """Report unreadable files ourselves: the library only logs a missing one."""
    problems = []
    found = False
    for name in filter(None, paths.split(os.pathsep)):
        path = Path(name).expanduser()
        try:
            content = yaml.safe_load(path.read_text())
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path}: cannot be read: {_reason(error)}")
        except yaml.YAMLError as error:
            problems.append(f"{path}: not YAML: {' '.join(str(error).split())}")
        else:
            found = True
            if not isinstance(content, dict):
                problems.append(f"{path}: not a kubeconfig: expected a mapping")
    if not found and not problems:
        problems.append(f"{paths}: no such kubeconfig file")
    if problems:
        raise ConfigError(problems)


def _exec_plugin(loader: Any) -> Any:
    return loader._user.safe_get("exec") if loader._user else None


def _check_exec_plugin(loader: Any) -> None:
    """The library only logs a plugin's failure and would continue as an anonymous user."""
    plugin = _exec_plugin(loader)
    if plugin is not None and not hasattr(loader, "token") and not getattr(loader, "cert_file", None):
        raise config.ConfigException(f"users[…].user.exec: {plugin.get('command')!r} gave no credentials (see the log)")


class _config_errors:  # noqa: N801  used like a function
    """Turns whatever reading credentials raises into a one-line ConfigError."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # The library checks little: malformed files raise KeyError, TypeError …
        if isinstance(error, Exception) and not isinstance(error, ConfigError):
            raise ConfigError([f"{self._source}: {_reason(error)}"]) from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, config.ConfigException) else f"{type(error).__name__}: {text}"


def _ssl_context(source: str, configuration: Configuration) -> ssl.SSLContext:
    ca, data = configuration.ssl_ca_cert, configuration.ca_cert_data
    try:
        context = ssl.create_default_context(cafile=ca, cadata=data)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError([f"{source}: certificate-authority {ca or ''}: {_reason(error)}"]) from error
    if configuration.cert_file:
        try:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
        except (OSError, ValueError) as error:
            names = f"{configuration.cert_file}, client-key {configuration.key_file}"
            raise ConfigError([f"{source}: client-certificate {names}: {_reason(error)}"]) from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if getattr(configuration, "disable_strict_ssl_verification", False):
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _modified(configuration: Configuration) -> tuple[float, ...]:
    """Modification times of the client certificate and its key."""
    files = (configuration.cert_file, configuration.key_file)
    return tuple(Path(name).stat().st_mtime for name in files if name)
