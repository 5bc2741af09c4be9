"""The self-signed certificate that the port shows if none is given."""

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from scheduler.serve.port.tls import KeyPair

NAME: Final = "loadmaster"
"""Of the files in a certificate directory, without their endings."""

LIFETIME: Final = timedelta(days=365)

RENEW_AFTER: Final = timedelta(days=240)
"""Age at which one in memory is replaced."""

CLOCK_SKEW: Final = timedelta(hours=1)
"""Before its making, it is valid for clients whose clock is behind."""


def make_pair(bind_address: str, now: datetime) -> KeyPair:
    """A new key, and a certificate for `localhost`, 127.0.0.1 and the address that is listened on."""
    key = ec.generate_private_key(ec.SECP256R1())  # a handshake takes a tenth of the CPU that it takes with RSA
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localhost@{int(now.timestamp())}")])
    addresses = {ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address(bind_address)}
    names = [x509.DNSName("localhost"), *(x509.IPAddress(each) for each in addresses if not each.is_unspecified)]
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private)


def ensure_files(directory: str, bind_address: str, now: datetime) -> tuple[str, str]:
    """The paths of certificate and key in `directory`, which are made if one is missing. Raises OSError."""
    certificate, key = Path(directory, f"{NAME}.crt"), Path(directory, f"{NAME}.key")
    if not (certificate.exists() and key.exists()):
        pair = make_pair(bind_address, now)
        certificate.parent.mkdir(parents=True, exist_ok=True)
        _write(key, pair.key, 0o600)
        _write(certificate, pair.certificate, 0o644)
    return str(certificate), str(key)


def is_old(pair: KeyPair, now: datetime) -> bool:
    """Return whether one of our own is to be replaced."""
    made = x509.load_pem_x509_certificate(pair.certificate).not_valid_before_utc + CLOCK_SKEW
    return now >= made + RENEW_AFTER


def today() -> datetime:
    return datetime.now(UTC)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace a file as a whole; other users never see a key, not even while it is written."""
    part = path.with_name(f".{path.name}.new")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    part.replace(path)


def _usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
