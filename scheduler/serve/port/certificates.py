"""The certificates of the port: read at the start, followed when their files change.

    files changed ──they make sense──► new handshakes use them; connections with a client's certificate end
                 └──they do not──────► the old one stays in use; logged once, counted each time

Connections of clients with certificates end when the authorities change: clients that the new ones still vouch for
reconnect at once.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from scheduler.config.options import ServingOptions
from scheduler.files.reading import Unfit, read
from scheduler.framework.errors import ConfigError
from scheduler.process.metrics import Metrics
from scheduler.serve.port.own_certificate import ensure_files, is_old, make_pair, today
from scheduler.serve.port.tls import KeyPair, TlsSettings, a_context

CHECK_SECONDS: Final = 10.0
"""Between two looks at the files."""

MAX_BYTES: Final = 1 << 20
"""Of a file that is read."""

SERVING: Final = "serving"
CLIENT_CA: Final = "client-ca"
"""Labels of metrics."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class Certificates:
    """The context of the next handshake."""

    def __init__(self, options: ServingOptions, metrics: Metrics, today: Callable[[], datetime] = today) -> None:
        """Read or make the first ones. Raises ConfigError."""
        self._settings = TlsSettings.of(options.tls_min_version, options.tls_cipher_suites)
        self._reloads = metrics.certificate_reloads
        self._logged: dict[str, str] = {}
        self.on_new_client_ca: Callable[[], None] = lambda: None
        """Called when other authorities are trusted."""
        self._read_pair = _pair_reader(options, today)
        self._client_ca_file = options.client_ca_file
        self._pair = _at_start("", self._read_pair)
        self._client_ca = ""
        if self._client_ca_file:
            self._client_ca = _at_start("--client-ca-file: ", self._read_client_ca)
        self.context = _at_start(
            "the certificate of the port: ", lambda: a_context(self._settings, self._pair, self._client_ca)
        )
        """For the next handshake."""

    @property
    def certificate(self) -> bytes:
        """The certificate that is shown, in PEM, perhaps with those of its authorities after it."""
        return self._pair.certificate

    async def follow(self) -> None:
        """Look at the files for ever."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            self.check()

    def check(self) -> None:
        """Adopt what has changed. The files are small and on a volume of the pod: reading them does not block."""
        self._try(SERVING, self._read_pair, self._use_pair)
        if self._client_ca_file:
            self._try(CLIENT_CA, self._read_client_ca, self.trust)

    def trust(self, client_ca: str) -> bool:
        """Accept certificates of these authorities, in PEM, and of no others. Whether that is new.

        Raises OSError or ValueError.
        """
        if client_ca == self._client_ca:
            return False
        self.context = a_context(self._settings, self._pair, client_ca)
        self._client_ca = client_ca
        self.on_new_client_ca()
        return True

    def _use_pair(self, pair: KeyPair) -> bool:
        if pair == self._pair:
            return False
        self.context = a_context(self._settings, pair, self._client_ca)
        self._pair = pair
        return True

    def _read_client_ca(self) -> str:
        text = _read(self._client_ca_file).decode("ascii")
        if not text.strip():
            raise ValueError("there is no certificate in it")
        return text

    def _try(self, which: str, read: Callable[[], T], use: Callable[[T], bool]) -> None:
        try:
            changed = use(read())
        except (OSError, ValueError) as error:
            self._reloads.labels(which, "error").inc()
            problem = _reason(error)
            if self._logged.get(which) != problem:
                self._logged[which] = problem
                fields = {"which": which, "err": problem}
                log.error("A certificate cannot be used; the former one stays", extra=fields)
            return
        self._logged.pop(which, None)
        if changed:
            self._reloads.labels(which, "success").inc()
            log.info("A certificate has changed", extra={"which": which})


class _InMemory:
    """A self-signed pair, replaced before it expires."""

    def __init__(self, bind_address: str, today: Callable[[], datetime]) -> None:
        self._bind_address, self._today = bind_address, today
        self._pair = make_pair(bind_address, today())

    def read(self) -> KeyPair:
        if is_old(self._pair, self._today()):
            self._pair = make_pair(self._bind_address, self._today())
        return self._pair


def _pair_reader(options: ServingOptions, today: Callable[[], datetime]) -> Callable[[], KeyPair]:
    certificate, key = options.tls_cert_file, options.tls_private_key_file
    if bool(certificate) != bool(key):
        raise ConfigError(["--tls-cert-file and --tls-private-key-file: one needs the other"])
    if certificate:
        return partial(_pair_in, certificate, key)
    if options.cert_dir:
        files = _at_start("--cert-dir: ", lambda: ensure_files(options.cert_dir, options.bind_address, today()))
        return partial(_pair_in, *files)
    return _InMemory(options.bind_address, today).read


def _pair_in(certificate: str, key: str) -> KeyPair:
    return KeyPair(_read(certificate), _read(key))


def _at_start(what: str, do: Callable[[], T]) -> T:
    """Turn what a file or its content raises into a ConfigError."""
    try:
        return do()
    except (OSError, ValueError) as error:
        raise ConfigError([f"{what}{_reason(error)}"]) from error


def _read(path: str) -> bytes:
    try:
        return read(path, MAX_BYTES)
    except Unfit as error:
        raise ValueError(f"{path}: {error}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"not a certificate with its key: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__
