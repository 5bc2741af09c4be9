"""Who we are to the API server, as kubectl would read it of a kubeconfig, or client-go of a pod's service account."""

import base64
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
import yaml

from scheduler.framework.errors import ConfigError
from scheduler.kube.identity import identity
from scheduler.kube.identity.credentials import load_credentials
from tests.unit.kube.fake_api import credentials_of, kubeconfig_text

SERVER: Final = "https://127.0.0.1:6443"
V1: Final = "client.authentication.k8s.io/v1"


def a_context(name: str, cluster: str = "main", user: str = "me", **more: str) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": cluster, "user": user, **more}}


async def authorization_of(tmp_path: Path, **user: Any) -> str | None:
    return (await credentials_of(tmp_path, SERVER, **user)).identity.authorization


@pytest.fixture
def service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its files, in a pod."""
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("of-the-pod\n")
    (directory / "namespace").write_text("shop\n")
    trustme.CA().cert_pem.write_to_path(str(directory / "ca.crt"))
    monkeypatch.setattr(identity, "SERVICE_ACCOUNT", directory)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return directory


@pytest.mark.parametrize(
    ("user", "shown"),
    [
        ({"token": "a"}, "Bearer a"),
        ({"username": "ada", "password": "b:c"}, "Basic YWRhOmI6Yw=="),
        ({"username": "ada"}, "Basic YWRhOg=="),
        ({"token": "a", "username": "ada"}, "Bearer a"),
        ({"token": "", "tokenFile": "token"}, "Bearer of-a-file"),
        ({"token": "old", "tokenFile": "token"}, "Bearer of-a-file"),
        ({"auth-provider": {"name": "oidc", "config": {"id-token": "a.b.c"}}}, "Bearer a.b.c"),
        ({"token": "a", "auth-provider": {"name": "gcp"}}, "Bearer a"),
        ({"as": "", "token": "a"}, "Bearer a"),
        ({"client-key": "token"}, None),
    ],
)
async def test_a_user_shows_what_the_kubeconfig_has(tmp_path: Path, user: dict[str, Any], shown: str | None) -> None:
    (tmp_path / "token").write_text("of-a-file\n")

    assert await authorization_of(tmp_path, **user) == shown


async def test_what_a_token_file_has_that_is_no_text_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"secret\xff")

    with pytest.raises(ConfigError, match=r"the header Authorization would have characters that are not allowed$"):
        await authorization_of(tmp_path, tokenFile="token")


async def test_an_empty_token_file_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "token").touch()

    with pytest.raises(ConfigError, match=r"kubeconfig: .*/token: empty$"):
        await authorization_of(tmp_path, tokenFile="token")


async def test_of_several_files_the_first_current_context_counts_and_paths_are_relative_to_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "b" / "ca.pem"))
    (tmp_path / "c" / "token").write_text("of-c")
    texts = {
        "a": {"current-context": "first", "contexts": [a_context("first", namespace="shop")]},
        "b": {
            "current-context": "second",
            "contexts": [a_context("second", "other")],
            "clusters": [{"name": "main", "cluster": {"server": SERVER, "certificate-authority": "ca.pem"}}],
        },
        "c": {
            "users": [{"name": "me", "user": {"tokenFile": "token"}}],
            "clusters": [{"name": "main", "cluster": {"server": "https://10.9.9.9"}}],
        },
    }
    for name, text in texts.items():
        (tmp_path / name / "config").write_text(yaml.safe_dump(text))
    monkeypatch.chdir(tmp_path)

    credentials = await load_credentials(os.pathsep.join(f"{name}/config" for name in "abc"))

    assert (credentials.identity.server, credentials.identity.authorization) == (SERVER, "Bearer of-c")
    assert credentials.identity.namespace == "shop"


async def test_a_program_is_found_beside_a_kubeconfig_with_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "plugin"
    program.write_text(
        f'#!/bin/sh\necho \'{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{"token": "given"}}}}\'\n'
    )
    program.chmod(0o755)
    (tmp_path / "config").write_text(kubeconfig_text(SERVER, None, exec={"command": "./plugin", "apiVersion": V1}))
    monkeypatch.chdir(tmp_path)

    assert (await load_credentials("config")).identity.authorization == "Bearer given"


async def test_keys_are_left_in_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "tmp"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    issued = trustme.CA().issue_cert("me")
    names = {"client-certificate": issued.cert_chain_pems[0], "client-key": issued.private_key_pem}
    for name, blob in names.items():
        blob.write_to_path(str(tmp_path / name))

    await authorization_of(tmp_path, **{name: name for name in names})

    assert list(elsewhere.iterdir()) == []


async def test_certificates_may_stand_in_the_kubeconfig_itself(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("me")
    files = {name: tmp_path / name for name in ("ca", "certificate", "key")}
    authority.cert_pem.write_to_path(str(files["ca"]))
    issued.cert_chain_pems[0].write_to_path(str(files["certificate"]))
    issued.private_key_pem.write_to_path(str(files["key"]))
    data = {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()}
    user = {"client-certificate-data": data["certificate"], "client-key-data": data["key"], "client-key": "elsewhere"}

    credentials = await credentials_of(tmp_path, SERVER, {"certificate-authority-data": data["ca"]}, **user)

    assert credentials.identity.tls.certificate == files["certificate"].read_bytes()
    assert [each["subject"] for each in credentials.ssl_context.get_ca_certs()] != []
    assert credentials.identity.authorization is None


@pytest.mark.parametrize(("namespace", "taken"), [(None, "default"), ("shop", "shop")])
async def test_the_namespace_is_that_of_the_context(tmp_path: Path, namespace: str | None, taken: str) -> None:
    path = tmp_path / "kubeconfig"
    whole = yaml.safe_load(kubeconfig_text(SERVER))
    whole["contexts"].append(a_context("other", namespace=namespace or ""))
    path.write_text(yaml.safe_dump(whole))

    assert (await load_credentials(str(path), "other")).identity.namespace == taken


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
async def test_a_pod_is_its_service_account(
    service_account: Path, monkeypatch: pytest.MonkeyPatch, host: str, server: str
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)

    credentials = await load_credentials()

    assert (credentials.source, credentials.identity.server) == ("in-cluster service account", server)
    assert (credentials.identity.authorization, credentials.identity.namespace) == ("Bearer of-the-pod", "shop")


async def test_a_pod_may_do_without_a_file_for_its_namespace(service_account: Path) -> None:
    (service_account / "namespace").unlink()

    assert (await load_credentials()).identity.namespace == "default"


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("token", "no token at DIR/token: is automountServiceAccountToken false for the pod or its service account?"),
        ("ca.crt", "DIR/ca.crt: No such file or directory"),
        ("KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT is not set"),
    ],
)
async def test_what_a_pod_lacks_is_named(
    service_account: Path, monkeypatch: pytest.MonkeyPatch, missing: str, problem: str
) -> None:
    monkeypatch.delenv(missing, raising=False)
    (service_account / missing).unlink(missing_ok=True)

    with pytest.raises(ConfigError) as raised:
        await load_credentials()

    said = str(raised.value).replace(str(service_account), "DIR")
    assert said == f"in-cluster service account: {problem}"


async def test_in_a_pod_a_kubeconfig_that_somebody_named_counts(
    service_account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig_text(SERVER))
    monkeypatch.setenv("KUBECONFIG", str(path))

    assert (await load_credentials()).identity.server == SERVER
