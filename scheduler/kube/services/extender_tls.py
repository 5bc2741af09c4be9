"""The certificates of a connection to an extender, and whether it verifies the server's.

Rule: makeTransport in pkg/scheduler/extender.go at v1.36.3, TLSConfigFor in client-go.
"""

import base64
from collections.abc import Callable

from scheduler.config.extenders import Extender, TLSConfig
from scheduler.framework.errors import ConfigError
from scheduler.kube.identity.tls_files import TlsFiles, read


def tls_files(extender: Extender, place: str) -> TlsFiles:
    """Read what the configuration names. Raises ConfigError with all that cannot be read, by its path below `place`.

    `enableHTTPS` without an authority means that the server's certificate is not looked at, as in kube-scheduler.
    """
    tls = extender.tls_config or TLSConfig()
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
    verifies = not tls.insecure and (has_authority or not extender.enable_https)
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
