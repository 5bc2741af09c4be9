"""Certificates as clusters have them: Go's clients take them, so do we, on every Python."""

import ast
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from scheduler.kube.identity.tls_files import client_context

ROOT = Path(__file__).parents[4]
NAME = "kubernetes.default.svc"


class Issued:
    """A certificate with its key, without identifiers of keys, as kubeadm and EKS once issued them."""

    def __init__(self, name: str, issuer: "Issued | None" = None, *, is_authority: bool = True) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        signer, now = issuer or self, datetime.now(UTC)
        made = x509.CertificateBuilder(signer.name, self.name, self.key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        self.certificate = made.sign(signer.key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def serving(self, directory: Path) -> ssl.SSLContext:
        """The context of a server that shows it."""
        form = serialization.PrivateFormat.PKCS8
        key = self.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        (directory / "server.pem").write_text(self.pem + key.decode())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "server.pem")
        return context


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Raises ssl.SSLError if one refuses the other."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=NAME),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    waiting = list(ends)
    while waiting:
        for end in tuple(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                pass


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """As create_default_context is from Python 3.13 on."""
    make = ssl.create_default_context

    def default(*, cadata: str | None = None) -> ssl.SSLContext:
        context = make(cadata=cadata)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", default)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("root", [None, Issued("root")], ids=["", "an intermediate is trusted by itself"])
def test_a_chain_without_authority_key_identifiers_is_trusted_and_one_of_another_authority_is_not(
    tmp_path: Path, root: Issued | None
) -> None:
    authority = Issued("kubernetes", root)
    server = Issued(NAME, authority, is_authority=False)

    shake_hands(client_context(authority.pem), server.serving(tmp_path))

    with pytest.raises(ssl.SSLError, match=r"Missing Authority Key Identifier|unable to get issuer certificate"):
        shake_hands(ssl.create_default_context(cadata=authority.pem), server.serving(tmp_path))
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands(client_context(Issued("kubernetes").pem), server.serving(tmp_path))


def test_no_other_module_makes_a_context_for_a_client() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in ("scheduler", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("create_default_context", "PROTOCOL_TLS_CLIENT")
    }

    assert found == {"scheduler/kube/identity/tls_files.py"}
