"""The examples of docs/plugins, as a user mounts them, on the real control plane."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import install_rbac, node_of, start
from tests.controlplane import Client, Cluster, Component, a_pod, condition, wait_until

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

PAIR = {"example.com/pair": "web"}
LICENCE = {"example.com/licence": "cad"}


class LicenceServer:
    """The server that docs/examples/licences.py asks."""

    def __init__(self) -> None:
        self.free = 1
        self.taken: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, {"free": outer.free})

            def do_POST(self) -> None:
                pod = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["pod"]
                if self.path == "/take":
                    outer.taken.append(pod)
                    outer.free -= 1
                self._answer(200, {})

            def _answer(self, status: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing: the test looks at `taken`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator["LicenceServer"]:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        yield self
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def licences() -> Iterator[LicenceServer]:
    with LicenceServer().running() as server:
        yield server


@pytest.fixture
def options(cluster: Cluster, tmp_path: Path, licences: LicenceServer) -> list[str]:
    """The command line of a scheduler with the examples in its profile."""
    install_rbac(cluster)
    enabled = {point: {"enabled": [{"name": name}]} for point, name in (("permit", "Partners"), ("score", "Cheapest"))}
    profile = {
        "schedulerName": "loadmaster",
        "plugins": {
            **enabled,
            "queueSort": {"enabled": [{"name": "Deadline"}], "disabled": [{"name": "*"}]},
            "multiPoint": {"enabled": [{"name": "Licences"}]},
        },
        "pluginConfig": [
            {"name": "Partners", "args": {"wait": "5s"}},
            {"name": "Licences", "args": {"url": licences.url}},
        ],
    }
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**header, "profiles": [profile]}))
    return [f"--config={config}", f"--plugin-dir={EXAMPLES}"]


@pytest.fixture
def loadmaster(cluster: Cluster, options: list[str]) -> Iterator[Component]:
    with start(cluster, *options) as process:
        yield process


def message(api: Client, name: str, namespace: str) -> str:
    scheduled = condition(api.get("Pod", name, namespace), "PodScheduled")
    return str(scheduled["message"]) if scheduled else ""


def test_a_pod_waits_for_its_partner_and_gives_up_after_a_while(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1)

    api.create(a_pod("left", namespace, labels=PAIR))
    wait_until(lambda: "at plugin Partners" in message(api, "left", namespace), 20, "it waits in vain")
    assert not node_of(api.get("Pod", "left", namespace))
    api.create(a_pod("right", namespace, labels=PAIR))

    for name in ("left", "right"):
        wait_until(lambda name=name: node_of(api.get("Pod", name, namespace)), 20, f"{name} is bound")  # type: ignore[misc]


def test_the_earliest_deadline_gets_the_only_room(
    cluster: Cluster, options: list[str], api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    (node,) = make_nodes(1, pods="1")
    for name, hour in (("evening", 18), ("morning", 6), ("noon", 12)):
        pod = a_pod(name, namespace=namespace)
        pod["metadata"]["annotations"] = {"example.com/deadline": f"2026-03-01T{hour:02}:00:00Z"}
        api.create(pod)

    with start(cluster, *options):
        for name in ("evening", "noon"):
            wait_until(lambda name=name: "Too many pods" in message(api, name, namespace), 20, f"{name} waits")  # type: ignore[misc]

    assert node_of(api.get("Pod", "morning", namespace)) == node


def test_a_pod_takes_a_licence_by_http_and_the_next_one_waits_for_it(
    loadmaster: Component, licences: LicenceServer, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    make_nodes(1)

    api.create(a_pod("one", namespace, labels=LICENCE))
    wait_until(lambda: node_of(api.get("Pod", "one", namespace)), 30, "it is bound")
    api.create(a_pod("two", namespace, labels=LICENCE))
    wait_until(lambda: "no licence is free" in message(api, "two", namespace), 20, "it waits")
    assert licences.taken == [api.get("Pod", "one", namespace)["metadata"]["uid"]]

    licences.free = 1

    wait_until(lambda: node_of(api.get("Pod", "two", namespace)), 20, "it is bound, too")
