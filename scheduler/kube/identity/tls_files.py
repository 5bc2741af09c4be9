"""TLS to the API server: a context made of a CA, and of a client certificate with its key, read from files.

Files are replaced while we run: kubelet writes a new CA into the volume of a service account, and tools replace client
certificates. Only their content counts: the times of files do not show that a symbolic link points elsewhere now.
"""

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scheduler.files import reading as files
from scheduler.framework.errors import ConfigError

MAX_BYTES: Final = 1 << 20
"""Of one file."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The content of the files. Equal if the connections that they make are equal."""

    authority: str
    """PEM; empty: those of the system."""
    certificate: bytes = field(repr=False)
    """PEM; empty: we have none."""
    key: bytes = field(repr=False)
    verifies: bool
    """Whether the server's certificate is looked at."""

    def context(self) -> ssl.SSLContext:
        """Make a context. Raises OSError (of which ssl.SSLError is one) or ValueError for contents that are no PEM."""
        context = client_context(self.authority)
        if self.certificate:
            _load_client(context, self.certificate, self.key)
        if not self.verifies:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def client_context(authority: str) -> ssl.SSLContext:
    """Make a context that trusts what Go's client does. `authority`: PEM; empty: those of the system.

    Python 3.13 is strict by default and refuses the certificates of EKS, older GKE and kubeadm, which have no Authority
    Key Identifier. Before 3.13 it did not trust an intermediate by itself.

    Raises OSError, or ValueError for anything but PEM.
    """
    context = ssl.create_default_context(cadata=authority or None)
    context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _load_client(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """The library reads files only: they exist for a moment, in a directory that is ours alone."""
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory, "certificate"), Path(directory, "key")
        for path, content in zip(files, (certificate, key), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(content)
        context.load_cert_chain(files[0], files[1], password=lambda: b"")  # no question at a terminal for a locked key


def read(path: str | Path | None) -> bytes:
    """Return what a file contains; empty without a path. Raises OSError, ConfigError."""
    if not path:
        return b""
    try:
        content = files.read(path, MAX_BYTES)
    except files.Unfit as error:
        raise ConfigError([f"{path}: {error}"]) from error
    if not content:
        raise ConfigError([f"{path}: empty"])
    return content
