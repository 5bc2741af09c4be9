import base64
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.controlplane.credentials import USERS, Credentials, kubeconfig, token_file
from tests.controlplane.kubeconfig import Connection, KubeconfigError


def test_a_kubeconfig_needs_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(kubeconfig("https://127.0.0.1:1", b"the CA", "secret", "system:me", "space"))

    assert Connection.load(path) == Connection("https://127.0.0.1:1", "the CA", "secret")
    assert yaml.safe_load(path.read_text())["contexts"][0]["context"]["namespace"] == "space"


def test_credentials_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    credentials = Credentials.create(tmp_path)
    written = credentials.write_kubeconfig("https://127.0.0.1:1", "system:kube-scheduler")

    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert Connection.load(written).token == credentials.tokens["system:kube-scheduler"]
    assert Connection.load(written).ca_pem.startswith("-----BEGIN CERTIFICATE-----")
    with pytest.raises(KeyError):
        credentials.write_kubeconfig("https://127.0.0.1:1", "nobody")


def test_the_token_file_names_groups() -> None:
    text = token_file({user: f"token-{user}" for user in USERS})

    assert 'token-admin,admin,admin,"system:masters"\n' in text
    assert 'token-system:kube-scheduler,system:kube-scheduler,system:kube-scheduler,""\n' in text


def test_client_certificates_may_be_data_or_files(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("the key")
    user = {"client-certificate-data": base64.b64encode(b"the certificate").decode(), "client-key": "key.pem"}
    path = write(tmp_path, user=user)

    assert Connection.load(path).client_pem == "the certificate\nthe key"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "no usable current context", id="empty"),
        pytest.param("{current-context: a, contexts: []}", "'context a'", id="unknown context"),
        pytest.param("a: b: c", "no usable current context", id="not YAML"),
    ],
)
def test_a_kubeconfig_that_is_wrong_is_refused_with_its_path(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(KubeconfigError, match=problem) as refused:
        Connection.load(path)
    assert str(path) in str(refused.value)


def test_a_user_without_credentials_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="neither a token nor a client certificate"):
        Connection.load(write(tmp_path, user={"exec": {"command": "login"}}))


def test_a_missing_kubeconfig_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="No such file"):
        Connection.load(tmp_path / "none")


def write(directory: Path, user: Mapping[str, object]) -> Path:
    path = directory / "config"
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "b", "user": "c"}}],
        "clusters": [{"name": "b", "cluster": {"server": "https://127.0.0.1:1/"}}],
        "users": [{"name": "c", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path
