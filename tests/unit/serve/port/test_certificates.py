"""The certificate of the port: our own, one from files, and what follows when they change."""

import os
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import trustme
from cryptography import x509

from scheduler.config.options import ServingOptions
from scheduler.framework.errors import ConfigError
from scheduler.serve.port.certificates import Certificates
from scheduler.serve.port.own_certificate import ensure_files, is_old, make_pair
from scheduler.serve.port.tls import TlsSettings
from tests.fakes import Metrics, sample
from tests.unit.serve.serving import ANYWHERE, FakeReviews, a_server, any_certificate

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Files:
    """A certificate and its key, in files."""

    def __init__(self, directory: Path) -> None:
        self.ca = trustme.CA()
        self.certificate, self.key = directory / "tls.crt", directory / "tls.key"
        self.write()

    @property
    def options(self) -> ServingOptions:
        return ServingOptions(
            secure_port=0,
            bind_address="127.0.0.1",
            tls_cert_file=str(self.certificate),
            tls_private_key_file=str(self.key),
        )

    @property
    def shown(self) -> bytes:
        """What a client should see, in DER."""
        return ssl.PEM_cert_to_DER_cert(self.certificate.read_text().split("-----END CERT", 1)[0] + END)

    def write(self) -> None:
        """Replace both by new ones."""
        issued = self.ca.issue_cert("localhost", "127.0.0.1")
        self.key.write_bytes(issued.private_key_pem.bytes())
        self.certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))


END = "-----END CERTIFICATE-----\n"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def shown_by(certificates: Certificates) -> bytes:
    """The certificate that the next handshake shows, in DER; hands are shaken in memory."""
    client_in, client_out, server_in, server_out = (ssl.MemoryBIO() for _ in range(4))
    client = any_certificate().wrap_bio(client_in, client_out)
    server = certificates.context.wrap_bio(server_in, server_out, server_side=True)
    for _ in range(3):
        for side in (client, server):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
            server_in.write(client_out.read())
            client_in.write(server_out.read())
    found = client.getpeercert(binary_form=True)
    assert found is not None
    return found


def reloads(metrics: Metrics, result: str, which: str = "serving") -> float:
    return sample(metrics, "loadmaster_certificate_reloads_total", certificate=which, result=result)


@pytest.mark.parametrize(
    ("address", "named"),
    [("192.0.2.7", ["127.0.0.1", "192.0.2.7"]), pytest.param("::", ["127.0.0.1"], id="no name")],
)
def test_our_own_is_for_localhost_and_the_address_that_is_listened_on(address: str, named: list[str]) -> None:
    certificate = x509.load_pem_x509_certificate(make_pair(address, NOW).certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert sorted(str(each) for each in names.get_values_for_type(x509.IPAddress)) == named
    assert certificate.not_valid_after_utc == NOW + timedelta(days=365)


async def test_a_client_that_trusts_our_own_is_served(tmp_path: Path) -> None:
    certificate, _ = ensure_files(str(tmp_path), "127.0.0.1", datetime.now(UTC))
    client = ssl.create_default_context(cafile=certificate)
    options = ServingOptions(secure_port=0, bind_address="127.0.0.1", cert_dir=str(tmp_path))

    async with a_server(options=options, client=client) as served:
        assert await served.get("/livez") == (200, "ok")


def test_a_directory_keeps_our_own_for_the_next_start(tmp_path: Path) -> None:
    options = ServingOptions(cert_dir=str(tmp_path / "certs"))

    first = shown_by(Certificates(options, Metrics()))
    second = shown_by(Certificates(options, Metrics()))

    assert first == second
    assert sorted(each.name for each in (tmp_path / "certs").iterdir()) == ["loadmaster.crt", "loadmaster.key"]
    assert (tmp_path / "certs" / "loadmaster.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the key is in a file of its own where there is no memfd")
def test_a_key_in_memory_touches_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    descriptors = len(os.listdir("/proc/self/fd"))

    Certificates(ANYWHERE, Metrics())

    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_our_own_is_made_anew_before_it_expires() -> None:
    now = NOW
    certificates = Certificates(ANYWHERE, Metrics(), lambda: now)
    first = shown_by(certificates)

    now = NOW + timedelta(days=239)
    certificates.check()
    same = shown_by(certificates)
    now = NOW + timedelta(days=241)
    certificates.check()

    assert first == same != shown_by(certificates)
    assert is_old(make_pair("::", NOW), now)


def test_new_files_are_shown_to_new_connections(files: Files) -> None:
    metrics = Metrics()
    certificates = Certificates(files.options, metrics)
    first = files.shown

    before = shown_by(certificates)
    files.write()
    certificates.check()

    assert (before, shown_by(certificates)) == (first, files.shown)
    assert reloads(metrics, "success") == 1


@pytest.mark.parametrize("broken", ["certificate", "key", "both", "missing", "of another certificate"])
def test_files_that_make_no_sense_change_nothing(files: Files, broken: str, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    certificates = Certificates(files.options, metrics)
    first = files.shown
    if broken == "missing":
        files.key.unlink()
    if broken == "of another certificate":
        files.key.write_bytes(files.ca.issue_cert("localhost").private_key_pem.bytes())
    for name, path in (("certificate", files.certificate), ("key", files.key)):
        if broken in (name, "both"):
            path.write_text("no PEM")

    certificates.check()
    certificates.check()
    kept = shown_by(certificates)
    files.write()
    certificates.check()

    assert kept == first
    assert shown_by(certificates) == files.shown
    assert (reloads(metrics, "error"), reloads(metrics, "success")) == (2, 1)
    told = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert told == ["A certificate cannot be used; the former one stays"], "once, not at each look"


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_password(files: Files) -> None:
    from cryptography.hazmat.primitives import serialization as ser

    key = ser.load_pem_private_key(files.key.read_bytes(), None)
    encrypted = key.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, ser.BestAvailableEncryption(b"secret"))
    files.key.write_bytes(encrypted)

    with pytest.raises(ConfigError, match="the key is encrypted"):
        Certificates(files.options, Metrics())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (ServingOptions(tls_cert_file="/x"), "--tls-cert-file and --tls-private-key-file: one needs the other"),
        (ServingOptions(tls_cert_file="/x", tls_private_key_file="/y"), "/x: No such file or directory"),
        (ServingOptions(client_ca_file="/x"), "--client-ca-file: /x: No such file or directory"),
        (ServingOptions(cert_dir="/proc/x"), "--cert-dir: /proc/x: No such file or directory"),
        (
            ServingOptions(tls_min_version="VersionTLS10"),
            "--tls-min-version: 'VersionTLS10' is none of VersionTLS12, VersionTLS13",
        ),
    ],
)
def test_what_cannot_be_used_at_the_start_is_a_config_error(options: ServingOptions, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Certificates(options, Metrics())

    assert raised.value.problems == (problem,)


def test_a_cipher_is_named_as_in_kube_scheduler() -> None:
    names = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256")

    assert TlsSettings.of("", names).ciphers == "ECDHE-RSA-AES128-GCM-SHA256"
    with pytest.raises(ConfigError, match="'TLS_RSA_WITH_RC4_128_SHA' is none of TLS_ECDHE_"):
        TlsSettings.of("", ("TLS_RSA_WITH_RC4_128_SHA",))


async def test_older_versions_of_tls_are_refused() -> None:
    client = any_certificate()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    options = ServingOptions(secure_port=0, bind_address="127.0.0.1", tls_min_version="VersionTLS13")

    async with a_server(options=options, client=client) as served:
        with pytest.raises((aiohttp.ClientError, OSError)):
            await served.get("/livez")


async def test_a_client_certificate_counts_if_its_authority_does(tmp_path: Path) -> None:
    ours, strangers = trustme.CA(), trustme.CA()
    ours.cert_pem.write_to_path(tmp_path / "ca.pem")
    options = ServingOptions(secure_port=0, bind_address="127.0.0.1", client_ca_file=str(tmp_path / "ca.pem"))
    rights = FakeReviews(allowed=[("jane", "get", "/metrics")])

    async def status(ca: trustme.CA | None) -> int:
        client = any_certificate()
        if ca is not None:
            ca.issue_cert(common_name="jane").configure_cert(client)
        async with a_server(options=options, rights=rights, always_allow=("/livez",), client=client) as served:
            return (await served.get("/metrics"))[0]

    assert await status(ours) == 200
    assert await status(None) == 403
    with pytest.raises((aiohttp.ClientError, OSError)):
        await status(strangers)


async def test_who_was_known_by_a_certificate_is_disconnected_when_authorities_change() -> None:
    ours = trustme.CA()
    client = any_certificate()
    ours.issue_cert(common_name="jane").configure_cert(client)
    rights = FakeReviews(allowed=[("jane", "get", "/metrics")])

    async with a_server(rights=rights, always_allow=("/livez",), client=client) as served:
        served.server.certificates.trust(ours.cert_pem.bytes().decode())
        before = (await served.get("/metrics"))[0]
        connections = served.server.connections
        served.server.certificates.trust(trustme.CA().cert_pem.bytes().decode())

        assert (before, connections) == (200, {"busy": 0, "quiet": 1})
        assert served.server.connections == {"busy": 0, "quiet": 0}
        with pytest.raises((aiohttp.ClientError, OSError)):
            await served.get("/metrics")
