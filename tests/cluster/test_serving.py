"""The port with a real API server behind it: who sees metrics, by which token or certificate."""

import json
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.cluster.https import any_certificate, http_get
from tests.cluster.loadmaster import ACCOUNT, IMPATIENT, NAMESPACE, install_rbac, metrics_token
from tests.controlplane import Component, ControlPlane
from tests.controlplane.flags import Settings


class Keys:
    """Two authorities for clients, of which the cluster knows one."""

    def __init__(self, directory: Path) -> None:
        self.clients, self.strangers = trustme.CA(), trustme.CA()
        self.client_ca = directory / "client-ca.pem"
        self.clients.cert_pem.write_to_path(self.client_ca)

    def client(self, ca: trustme.CA, name: str, group: str = "") -> ssl.SSLContext:
        """A context that shows a certificate."""
        context = any_certificate()
        ca.issue_cert(common_name=name, organization_name=group or None).configure_cert(context)
        return context


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def own(keys: Keys) -> Iterator[ControlPlane]:
    """A control plane that accepts client certificates; the least there is."""
    with ControlPlane(Settings(apiserver_flags=(f"--client-ca-file={keys.client_ca}",))) as controlplane:
        install_rbac(controlplane)
        yield controlplane


@contextmanager
def started(cluster: ControlPlane, name: str = "loadmaster") -> Iterator[Component]:
    """The scheduler with the account that is shipped, for its work and for its questions about others."""
    account = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    kubeconfigs = [f"--{what}kubeconfig={account}" for what in ("", "authentication-", "authorization-")]

    def argv(port: int) -> list[str]:
        serving = ["--bind-address=127.0.0.1", f"--secure-port={port}"]
        return [sys.executable, str(IMPATIENT), "run", *kubeconfigs, *serving, "-v", "2"]

    with cluster.spawn(name, argv, lambda port: http_get(port, "/readyz")[0] == 200) as process:
        yield process


@pytest.fixture(scope="module")
def loadmaster(own: ControlPlane) -> Iterator[Component]:
    with started(own) as process:
        yield process


def token_of(cluster: ControlPlane, account: str) -> str:
    """A token of a service account that is made for it, without any right."""
    manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": "default"}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    return cluster.kubectl("create", "token", account).strip()


def message(body: str) -> str:
    said: dict[str, Any] = json.loads(body)
    return str(said["message"])


def test_metrics_are_for_the_account_of_the_example(own: ControlPlane, loadmaster: Component) -> None:
    status, text = http_get(loadmaster.port, "/metrics", token=metrics_token(own))

    assert status == 200
    assert "# TYPE scheduler_schedule_attempts_total counter" in text


def test_metrics_are_refused_without_a_token_or_with_one_that_may_not(own: ControlPlane, loadmaster: Component) -> None:
    nobody = http_get(loadmaster.port, "/metrics")
    guest = http_get(loadmaster.port, "/metrics", token=token_of(own, "guest"))
    wrong = http_get(loadmaster.port, "/metrics", token="abc.def.ghi")

    assert (nobody[0], guest[0], wrong[0]) == (403, 403, 401)
    assert message(nobody[1]) == 'forbidden: User "system:anonymous" cannot get path "/metrics"'
    assert message(guest[1]) == 'forbidden: User "system:serviceaccount:default:guest" cannot get path "/metrics"'
    assert message(wrong[1]) == "Unauthorized"


def test_a_client_certificate_of_the_cluster_counts(own: ControlPlane, loadmaster: Component, keys: Keys) -> None:
    def status(context: ssl.SSLContext) -> int:
        return http_get(loadmaster.port, "/metrics", context=context)[0]

    assert status(keys.client(keys.clients, "root", "system:masters")) == 200
    assert status(keys.client(keys.clients, "jane")) == 403
    assert status(keys.client(keys.strangers, "root", "system:masters")) == 0  # TLS refuses it


@pytest.mark.parametrize("token", ["", "abc.def.ghi"])
def test_refusals_are_those_of_kube_scheduler(own: ControlPlane, loadmaster: Component, token: str) -> None:
    with own.start_kube_scheduler() as peer:
        theirs = http_get(peer.port, "/livez/ping", token=token)
    ours = http_get(loadmaster.port, "/livez/ping", token=token)

    assert ours == theirs


def test_without_the_right_to_ask_nobody_is_let_in_and_pods_are_scheduled(own: ControlPlane) -> None:
    token = metrics_token(own)
    own.kubectl("delete", "clusterrolebinding", f"{NAMESPACE}:{ACCOUNT}:auth-delegator")
    try:
        with started(own, name="powerless") as process:
            asked = (("/metrics", token), ("/metrics", ""), ("/readyz", ""))
            answers = [http_get(process.port, path, token=given) for path, given in asked]
    finally:
        install_rbac(own)

    assert [status for status, _ in answers] == [401, 500, 200]
    assert "tokenreviews" not in answers[0][1]
