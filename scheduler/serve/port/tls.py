"""TLS contexts: what a handshake uses, made of certificates in memory and of kube-scheduler's flags."""

import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from scheduler.framework.errors import ConfigError

VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

CIPHERS: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""IANA's names, which kube-scheduler prefers, and OpenSSL's."""

ALWAYS_ON: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""Of TLS 1.3: they may be named, and are there in any case, as with kube-scheduler."""


class KeyPair(NamedTuple):
    """A certificate, perhaps with those of its authorities, and its key, in PEM."""

    certificate: bytes
    key: bytes


class TlsSettings(NamedTuple):
    """The common settings of all contexts."""

    minimum: ssl.TLSVersion
    ciphers: str
    """OpenSSL's names for TLS 1.2; empty: Python's choice."""

    @classmethod
    def of(cls, min_version: str, cipher_suites: Sequence[str]) -> "TlsSettings":
        """Read the flags. Raises ConfigError."""
        problems = []
        if min_version not in VERSIONS:
            problems.append(f"--tls-min-version: {min_version!r} is none of {', '.join(filter(None, VERSIONS))}")
        known = ", ".join((*CIPHERS, *ALWAYS_ON))
        unknown = [name for name in cipher_suites if name not in CIPHERS and name not in ALWAYS_ON]
        problems.extend(f"--tls-cipher-suites: {name!r} is none of {known}" for name in unknown)
        if problems:
            raise ConfigError(problems)
        return cls(VERSIONS[min_version], ":".join(dict.fromkeys(CIPHERS[n] for n in cipher_suites if n in CIPHERS)))


def a_context(settings: TlsSettings, pair: KeyPair, client_ca: str) -> ssl.SSLContext:
    """A server's context. `client_ca`: authorities in PEM whose certificates clients may show; if empty, none may.

    Raises OSError or ValueError if the certificates make no sense.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = settings.minimum
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    if settings.ciphers:
        context.set_ciphers(settings.ciphers)
    with _as_file(pair.certificate) as certificate, _as_file(pair.key) as key:
        context.load_cert_chain(certificate, key, password=_no_password)
    if client_ca:
        # One that is shown must be right, none need be: a client without one has a token, or is anonymous.
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate may be trusted, as in Go
        context.load_verify_locations(cadata=client_ca)
    return context


def _no_password() -> str:
    raise ValueError("the key is encrypted")


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path, as OpenSSL takes nothing else: in memory where there is such a thing, so that no disk sees a key."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("loadmaster-tls", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
