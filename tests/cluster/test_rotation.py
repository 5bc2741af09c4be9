"""Credentials end while pods are bound: none is lost, and none is bound twice."""

import json
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.cluster.loadmaster import (
    ACCOUNT,
    IMPATIENT,
    NAMESPACE,
    install_rbac,
    is_ready,
    metric,
    node_of,
    serving,
)
from tests.controlplane import Client, Component, ControlPlane, a_node, a_pod, wait_until
from tests.controlplane.flags import Settings
from tests.controlplane.kubeconfig import Connection

ROUNDS = 3
"""How often the credentials end."""

BATCH = 10
"""Pods that are created at once, again and again."""

NODES = 40
PODS_ON_A_NODE = "500"


POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create]
    resources: [{group: "", resources: [pods/binding]}]
  - level: None
"""


def audit_flags(directory: Path) -> tuple[str, ...]:
    """Write the policy into a directory; return the API server's flags."""
    policy = directory / "audit-policy.yaml"
    policy.write_text(POLICY)
    return (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={log_in(directory)}",
        "--audit-log-maxsize=1000",
        "--audit-log-mode=batch",
    )


def log_in(directory: Path) -> Path:
    return directory / "audit.log"


@dataclass(frozen=True, slots=True)
class Answers:
    """To all requests to bind a pod."""

    by_code: Counter[int]
    doubled: list[str]
    """Pods that were bound more than once."""


def answers_in(path: Path) -> Answers:
    """Read the log of a server that has ended."""
    codes: Counter[int] = Counter()
    bound: Counter[str] = Counter()
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        code = entry["responseStatus"]["code"]
        codes[code] += 1
        if code == 201:
            bound[f"{entry['objectRef']['namespace']}/{entry['objectRef']['name']}"] += 1
    return Answers(codes, [pod for pod, times in bound.items() if times > 1])


class Token:
    """A user of a kubeconfig whose token is in a file.

    It is one of the account that is shipped, bound to a Secret: without that it is worth nothing any more.
    """

    def __init__(self, cluster: ControlPlane, directory: Path) -> None:
        self._cluster, self._file = cluster, directory / "token"
        self.kubeconfig = directory / "kubeconfig"
        connection = Connection.load(cluster.kubeconfig())
        (directory / "ca.pem").write_text(connection.ca_pem)
        config = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": connection.server, "certificate-authority": "ca.pem"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(config))
        self.renew()

    def renew(self) -> None:
        """Put a new token in the place of the one that is there, as kubelets do: at once."""
        self._session = f"session-{secrets.token_hex(3)}"
        self._cluster.kubectl("create", "secret", "generic", self._session, "-n", NAMESPACE)
        bound = ("--bound-object-kind=Secret", f"--bound-object-name={self._session}")
        beside = self._file.with_name(".token")
        beside.write_text(self._cluster.kubectl("create", "token", ACCOUNT, "-n", NAMESPACE, *bound).strip())
        beside.replace(self._file)

    def end(self) -> None:
        """Have the API server refuse the token, soon."""
        self._cluster.kubectl("delete", "secret", self._session, "-n", NAMESPACE)


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
def own(logged: Path) -> Iterator[ControlPlane]:
    """A control plane that notes each binding."""
    with ControlPlane(Settings(apiserver_flags=audit_flags(logged))) as cluster:
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


def test_no_pod_is_lost_or_bound_twice_while_credentials_end(own: ControlPlane, logged: Path, tmp_path: Path) -> None:
    identity = Token(own, tmp_path)

    with own.client() as api, started(own, identity.kubeconfig) as process:
        with Feed(own) as feed:
            wait_until(lambda: bound_in(api) >= BATCH, 30, "pods are bound", interval=0.5)
            for _ in range(ROUNDS):
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
    answers = answers_in(log_in(logged))

    assert running
    assert "Traceback" not in log
    assert answers.doubled == []
    assert answers.by_code[201] == feed.created
    assert answers.by_code[401] > 0
