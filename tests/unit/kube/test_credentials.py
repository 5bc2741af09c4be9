"""Credentials: every mistake in a kubeconfig is one line that names the file."""

from pathlib import Path

import pytest
import trustme

from scheduler.framework.errors import ConfigError
from scheduler.kube import credentials
from scheduler.kube.credentials import load_credentials
from tests.fakes import run
from tests.unit.kube.fake_api import kubeconfig_text

SERVER = "https://127.0.0.1:6443"


def problem_of(kubeconfig: Path, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as raised:
        run(load_credentials(str(kubeconfig), context))
    (problem,) = raised.value.problems
    return problem.replace(str(kubeconfig.parent), "DIR")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(None, "DIR/kubeconfig: no such kubeconfig file", id="missing"),
        pytest.param("a: b: c", "DIR/kubeconfig: not YAML: mapping values are not allowed here in", id="not YAML"),
        pytest.param("[1]", "DIR/kubeconfig: not a kubeconfig: expected a mapping", id="a list"),
        pytest.param("", "DIR/kubeconfig: not a kubeconfig: expected a mapping", id="empty"),
        pytest.param(
            "kind: Config", "DIR/kubeconfig: Invalid kube-config file. Expected key current-context", id="bare"
        ),
        pytest.param(
            kubeconfig_text(SERVER, {"certificate-authority": "nowhere.pem"}),
            "DIR/kubeconfig: File does not exists: DIR/nowhere.pem",
            id="no such CA",
        ),
        pytest.param(
            kubeconfig_text(SERVER, {"certificate-authority-data": "bm90aGluZw=="}),
            "DIR/kubeconfig: certificate-authority ",
            id="a CA that is none",
        ),
        pytest.param(
            kubeconfig_text(SERVER, {"certificate-authority-data": "*"}),
            "DIR/kubeconfig: ",
            id="a CA that is not base64",
        ),
        pytest.param(
            kubeconfig_text(
                SERVER, exec={"command": "no-such-plugin", "apiVersion": "client.authentication.k8s.io/v1"}
            ),
            "DIR/kubeconfig: users[…].user.exec: 'no-such-plugin' gave no credentials (see the log)",
            id="an exec plugin that is not there",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_file(tmp_path: Path, text: str | None, problem: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    if text is not None:
        kubeconfig.write_text(text)

    assert problem_of(kubeconfig).startswith(problem)


def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(SERVER))

    assert "name other in" in problem_of(kubeconfig, "other")


async def test_a_pod_without_a_token_is_told_what_may_be_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(credentials, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))

    with pytest.raises(ConfigError) as raised:
        await load_credentials()

    (problem,) = raised.value.problems

    assert problem.startswith(
        f"in-cluster service account: no token at {tmp_path / 'token'}: is automountServiceAccount"
    )


def test_a_client_certificate_without_its_key_is_a_mistake(tmp_path: Path) -> None:
    certificate = tmp_path / "client.pem"
    trustme.CA().issue_cert("me").cert_chain_pems[0].write_to_path(str(certificate))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(SERVER, None, **{"client-certificate": str(certificate)}))

    assert problem_of(kubeconfig).startswith("DIR/kubeconfig: client-certificate DIR/client.pem, client-key None: ")


def test_a_token_file_is_read_again_every_minute(tmp_path: Path) -> None:
    now = 0.0
    token = tmp_path / "token"
    token.write_text("first\n")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(SERVER, tokenFile=str(token)))

    async def scenario() -> list[str | None]:
        nonlocal now
        credentials = await load_credentials(str(kubeconfig), now=lambda: now)
        seen = [credentials.authorization]
        token.write_text("second\n")
        for moment in (59.0, 60.0):
            now = moment
            await credentials.refresh()
            seen.append(credentials.authorization)
        return seen

    assert run(scenario()) == ["Bearer first", "Bearer first", "Bearer second"]


async def test_the_server_is_known_without_a_slash_at_its_end(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(kubeconfig_text(SERVER + "/"))

    assert (await load_credentials(str(kubeconfig))).server == SERVER
