"""Credentials: every mistake in a kubeconfig is one line that names the file."""

import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from scheduler.framework.errors import ConfigError
from scheduler.kube.http.client import Client, NotSent
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.identity import credentials as module
from scheduler.kube.identity.credentials import load_credentials
from scheduler.process.logs import TextFormatter
from scheduler.process.metrics import Metrics
from tests.fakes import run
from tests.unit.kube.fake_api import credentials_of, kept_fresh, kubeconfig_text, until
from tests.unit.kube.raw_server import RawServer

SERVER = "https://127.0.0.1:6443"


def problem_of(kubeconfig: Path, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as raised:
        run(load_credentials(str(kubeconfig), context))
    (problem,) = raised.value.problems
    return problem.replace(str(kubeconfig.parent), "DIR")


def test_a_client_certificate_with_a_key_that_is_none_is_a_mistake(tmp_path: Path) -> None:
    certificate, key = tmp_path / "client.pem", tmp_path / "key.pem"
    trustme.CA().issue_cert("me").cert_chain_pems[0].write_to_path(str(certificate))
    key.write_text("nothing")
    kubeconfig = tmp_path / "kubeconfig"
    user = {"client-certificate": certificate.name, "client-key": key.name}
    kubeconfig.write_text(kubeconfig_text(SERVER, None, **user))

    said = problem_of(kubeconfig)

    assert said.startswith("DIR/kubeconfig: client-certificate DIR/client.pem, client-key DIR/key.pem: ")


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    credentials = await credentials_of(tmp_path, SERVER, tokenFile=str(token))
    assert (credentials.identity.authorization, credentials.version) == ("Bearer first", 0)

    await credentials.refresh()
    assert credentials.version == 0
    token.write_text("second\n")
    await credentials.refresh()

    assert (credentials.identity.authorization, credentials.version) == ("Bearer second", 1)


# --- kept fresh ---


def write_token(path: Path, server: str, token: str, cluster: dict[str, str] | None = None) -> None:
    path.write_text(kubeconfig_text(server, cluster, token=token))


async def test_credentials_are_read_again_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(module, "UNAUTHORIZED_REFRESH_SECONDS", 0.0)
    kubeconfig = tmp_path / "kubeconfig"
    write_token(kubeconfig, SERVER, "first")
    credentials = await load_credentials(str(kubeconfig))
    credentials.identity = replace(credentials.identity, fresh_for=0.01)
    async with kept_fresh(credentials):
        write_token(kubeconfig, SERVER, "second")
        await until(lambda: credentials.identity.authorization == "Bearer second")


async def test_a_rejected_call_gets_new_credentials_at_once(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    write_token(kubeconfig, SERVER, "first")
    credentials = await load_credentials(str(kubeconfig))
    async with kept_fresh(credentials):
        write_token(kubeconfig, SERVER, "second")
        await credentials.rejected(0)
        assert credentials.identity.authorization == "Bearer second"
        await credentials.rejected(0)  # these were replaced already: nothing to wait for


async def test_what_became_unreadable_changes_nothing_and_tells_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.0)
    kubeconfig = tmp_path / "kubeconfig"
    write_token(kubeconfig, SERVER, "first-secret")
    credentials = await load_credentials(str(kubeconfig))
    async with kept_fresh(credentials):
        for text in (
            "",
            "users: [",
            f"{kubeconfig_text(SERVER, token='second-secret')}\n  x: y: second-secret",
            "users: [{user: {token: second-secret}}]\ncontexts: [{name: a}]\ncurrent-context: a\n",
            kubeconfig_text(SERVER, token="second-secret").replace("  user:\n    token", "  other:\n    token"),
            kubeconfig_text(SERVER, token="second-secret\nX: y"),
            kubeconfig_text(SERVER, {"certificate-authority-data": "bm90aGluZw=="}, token="second-secret"),
        ):
            kubeconfig.write_text(text)
            before = len(caplog.records)
            await credentials.rejected(0)
            assert (credentials.identity.authorization, credentials.version) == ("Bearer first-secret", 0), text
            assert len(caplog.records) == before + 1, text
    told = "\n".join(TextFormatter().format(record) for record in caplog.records)
    assert "second-secret" not in told
    assert "Credentials cannot be read; the old ones stay in use" in told


async def test_a_replaced_authority_is_trusted_from_the_next_connection_on(tmp_path: Path) -> None:
    old, new = trustme.CA(), trustme.CA()
    contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(2)]
    for authority, context in zip((old, new), contexts, strict=True):
        authority.issue_cert("127.0.0.1").configure_cert(context)
    first, second, other = RawServer(), RawServer(), tmp_path / "ca.crt"
    old.cert_pem.write_to_path(str(other))
    kubeconfig = tmp_path / "kubeconfig"
    operation = Operation("POST", "pods", CallLimit(1), timeout=5.0)
    get = Operation("GET", "pods", CallLimit(1), timeout=5.0)
    async with first.serving(contexts[0]):
        kubeconfig.write_text(kubeconfig_text(f"https://{first.url}", {"certificate-authority": str(other)}))
        credentials = await load_credentials(str(kubeconfig))
        async with Client(credentials, Metrics()) as client:
            assert (await client.call(operation, "/x")).status == 200
            new.cert_pem.write_to_path(str(other))
            await credentials.refresh()
            # What was connected goes on.
            assert (await client.call(operation, "/x")).status == 200
            assert first.connections == 1
            assert isinstance(await client.attempt(get, "/x"), NotSent)
    async with second.serving(contexts[1]):
        kubeconfig.write_text(kubeconfig_text(f"https://{second.url}", {"certificate-authority": str(other)}))
        await credentials.refresh()
        async with Client(credentials, Metrics()) as client:
            assert [(await client.call(each, "/x")).status for each in (operation, get)] == [200, 200]


async def test_a_replaced_client_certificate_is_shown_by_new_connections(tmp_path: Path) -> None:
    authority, server = trustme.CA(), RawServer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    ca, certificate, key = (tmp_path / name for name in ("ca.crt", "me.crt", "me.key"))
    authority.cert_pem.write_to_path(str(ca))

    def write(name: str) -> None:
        issued = authority.issue_cert(name)
        issued.cert_chain_pems[0].write_to_path(str(certificate))
        issued.private_key_pem.write_to_path(str(key))

    write("one")
    kubeconfig = tmp_path / "kubeconfig"
    operation = Operation("POST", "pods", CallLimit(1), timeout=5.0)
    async with server.serving(context):
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        kubeconfig.write_text(kubeconfig_text(f"https://{server.url}", {"certificate-authority": str(ca)}, **user))
        credentials = await load_credentials(str(kubeconfig))
        async with Client(credentials, Metrics()) as client:
            assert (await client.call(operation, "/x")).status == 200
            write("two")
            key_of_two = key.read_bytes()
            key.write_bytes(b"half")
            with pytest.raises(ConfigError):
                await credentials.refresh()
            assert (await client.call(operation, "/x")).status == 200
            assert server.connections == 1
            key.write_bytes(key_of_two)
            await credentials.refresh()
            assert (await client.call(operation, "/x")).status == 200
            assert server.connections == 2
