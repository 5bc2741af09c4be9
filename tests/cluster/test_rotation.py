"""Credentials end and certificates are exchanged while pods are bound: none is lost, and none is bound twice."""

import secrets
import ssl
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pytest
import trustme
import yaml

from tests.cluster import audit
from tests.cluster.loadmaster import (
    ACCOUNT,
    IMPATIENT,
    NAMESPACE,
    http_get,
    install_rbac,
    is_ready,
    metric,
    node_of,
    serving,
)
from tests.controlplane import Client, Component, ControlPlane, a_node, a_pod, wait_until
from tests.controlplane.flags import Settings
from tests.controlplane.kubeconfig import Connection

EXCHANGES = 2
BATCH = 10
"""Pods that are created at once, again and again."""

NODES = 40
PODS_ON_A_NODE = "500"


class Identity(ABC):
    """A user of a kubeconfig whose credentials are in files, and end."""

    rounds: ClassVar[int] = 1
    """How often they end in a test."""

    def __init__(self, cluster: ControlPlane, directory: Path) -> None:
        self.cluster, self.directory = cluster, directory
        self.kubeconfig = directory / "kubeconfig"
        connection = Connection.load(cluster.kubeconfig())
        (directory / "ca.pem").write_text(connection.ca_pem)
        config = {
            "current-context": "c",
            "clusters": [
                {"name": "c", "cluster": {"server": connection.server, "certificate-authority": "ca.pem"}},
            ],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": self.user}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self.renew()

    @property
    @abstractmethod
    def user(self) -> dict[str, str]:
        """As the kubeconfig has it."""

    @abstractmethod
    def renew(self) -> None:
        """Put new credentials in the place of those that there are."""

    @abstractmethod
    def end(self) -> None:
        """Have the API server refuse what is there, soon."""

    def put(self, name: str, content: bytes) -> None:
        """Exchange a file as kubelets and operators do: at once."""
        beside = self.directory / f".{name}"
        beside.write_bytes(content)
        beside.replace(self.directory / name)


class Token(Identity):
    """A token of the account that is shipped, bound to a Secret: without that it is worth nothing any more."""

    rounds = 3
    session = ""

    @property
    def user(self) -> dict[str, str]:
        return {"tokenFile": "token"}

    def renew(self) -> None:
        self.session = f"session-{secrets.token_hex(3)}"
        self.cluster.kubectl("create", "secret", "generic", self.session, "-n", NAMESPACE)
        bound = ("--bound-object-kind=Secret", f"--bound-object-name={self.session}")
        self.put("token", self.cluster.kubectl("create", "token", ACCOUNT, "-n", NAMESPACE, *bound).strip().encode())

    def end(self) -> None:
        self.cluster.kubectl("delete", "secret", self.session, "-n", NAMESPACE)


class Certificate(Identity):
    """A client's certificate that expires: the one that `end` puts there is good for seconds.

    Its files are read every few seconds while there is no 401, so it takes as long until they are used.
    """

    authority = trustme.CA()

    @property
    def user(self) -> dict[str, str]:
        return {"client-certificate": "client.pem", "client-key": "client.key"}

    def renew(self) -> None:
        self._put(timedelta(hours=1))

    def end(self) -> None:
        self._put(timedelta(seconds=4))

    def _put(self, lifetime: timedelta) -> None:
        issued = self.authority.issue_cert(
            "root.example",
            common_name="root",
            organization_name="system:masters",
            not_after=datetime.now(UTC) + lifetime,
        )
        self.put("client.key", issued.private_key_pem.bytes())  # for a moment, of another certificate
        self.put("client.pem", b"".join(each.bytes() for each in issued.cert_chain_pems))


class Feed:
    """Creates pods in a thread, as long as the test goes on."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed")
        self.created = 0

    def __enter__(self) -> "Feed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._cluster.client() as api:
            while not self._stop.wait(0.2):
                names = range(self.created, self.created + BATCH)
                api.create_many([a_pod(f"pod-{number:05}", cpu="1m", memory="1Mi") for number in names], "default")
                self.created += BATCH


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture
def own(logged: Path, tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that accepts client certificates and notes each binding."""
    authority = tmp_path / "client-ca.pem"
    Certificate.authority.cert_pem.write_to_path(authority)
    audit.log_in(logged).unlink(missing_ok=True)
    flags = (f"--client-ca-file={authority}", *audit.flags(logged))
    with ControlPlane(Settings(apiserver_flags=flags)) as cluster:
        install_rbac(cluster)
        with cluster.client() as api:
            api.create_many([a_node(f"node-{number}", pods=PODS_ON_A_NODE) for number in range(NODES)])
        yield cluster


@contextmanager
def started(cluster: ControlPlane, kubeconfig: Path, *options: str) -> Iterator[Component]:
    def argv(port: int) -> list[str]:
        common = [f"--kubeconfig={kubeconfig}", *serving(port), "--leader-elect=false", *options]
        return [sys.executable, str(IMPATIENT), "run", *common]

    with cluster.spawn("loadmaster", argv, is_ready) as process:
        yield process


def bound_in(api: Client) -> int:
    return sum(bool(node_of(pod)) for pod in api.list("Pod", "default"))


@pytest.mark.parametrize("kind", [Token, Certificate])
def test_no_pod_is_lost_or_bound_twice_while_credentials_end(
    own: ControlPlane, logged: Path, tmp_path: Path, kind: type[Identity]
) -> None:
    identity = kind(own, tmp_path)

    with own.client() as api, started(own, identity.kubeconfig) as process:
        with Feed(own) as feed:
            wait_until(lambda: bound_in(api) >= BATCH, 30, "pods are bound", interval=0.5)
            for _ in range(kind.rounds):
                refused = metric(process.port, "loadmaster_api_calls_total", code="401")
                identity.end()
                wait_until(
                    lambda: metric(process.port, "loadmaster_api_calls_total", code="401") > refused + 5,  # noqa: B023
                    120,
                    "the credentials have ended",
                )
                identity.renew()
                so_far = feed.created
                wait_until(lambda: bound_in(api) >= so_far, 90, "pods are bound again", interval=0.5)  # noqa: B023
        wait_until(lambda: bound_in(api) == feed.created, 90, "all pods are bound", interval=0.5)
        running, log = process.running, process.log_tail(10_000)
    own.apiserver.stop()
    answers = audit.read(audit.log_in(logged))

    assert running
    assert "Traceback" not in log
    assert answers.doubled == []
    assert answers.by_code[201] == feed.created
    assert answers.by_code[401] > 0


def test_nobody_is_turned_away_while_the_port_gets_new_certificates(own: ControlPlane, tmp_path: Path) -> None:
    identity = Token(own, tmp_path)
    servers = trustme.CA()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def exchange() -> None:
        issued = servers.issue_cert("localhost", "127.0.0.1")
        identity.put("tls.key", issued.private_key_pem.bytes())
        identity.put("tls.crt", b"".join(each.bytes() for each in issued.cert_chain_pems))

    exchange()
    files = (f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}")
    with started(own, identity.kubeconfig, *files) as process, Feed(own), asking(process.port, servers) as answers:
        for _ in range(EXCHANGES):
            before = reloads(process.port)
            exchange()
            wait_until(lambda: reloads(process.port) > before, 60, "the new certificate is used")  # noqa: B023
        seen = len(answers)
        wait_until(lambda: len(answers) > seen + 5, 30, "clients are served by it")

    assert set(answers) == {200}


def reloads(port: int) -> float:
    return metric(port, "loadmaster_certificate_reloads_total", certificate="serving", result="success")


@contextmanager
def asking(port: int, authority: trustme.CA) -> Iterator[list[int]]:
    """Ask for metrics meanwhile, each time by a new connection that trusts the authority alone."""
    answers: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.wait(0.3):
            context = ssl.create_default_context()
            authority.configure_trust(context)
            answers.append(http_get(port, "/metrics", context=context)[0])

    thread = threading.Thread(target=ask, name="asking")
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join()
