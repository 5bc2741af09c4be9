"""`/livez`: a watch that is refused has the scheduler restarted, an API server that is away does not."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, http_get, install_rbac, metric, node_of, start
from tests.cluster.short_deadlines_scheduler import SECONDS
from tests.controlplane import Client, Cluster, Component, ControlPlane, a_pod, wait_until

pytestmark = pytest.mark.alone

PROGRAM = Path(__file__).with_name("short_deadlines_scheduler.py")
ROLE = f"{NAMESPACE}:{ACCOUNT}"


@pytest.fixture(scope="module")
def loadmaster(cluster: Cluster) -> Iterator[Component]:
    install_rbac(cluster)
    with start(cluster, program=(str(PROGRAM),)) as process:
        yield process


@pytest.fixture
def role(cluster: Cluster) -> Iterator[None]:
    """The shipped ClusterRole is there again afterwards."""
    yield
    install_rbac(cluster)


def test_livez_fails_while_a_watch_is_refused_and_passes_when_it_is_allowed_again(
    loadmaster: Component,
    cluster: Cluster,
    role: None,
    api: Client,
    namespace: str,
    make_nodes: MakeNodes,
) -> None:
    wait_until(lambda: livez(loadmaster) == 200, 10, "/livez passes")
    before = stalls(loadmaster)
    rules = json.loads(cluster.kubectl("get", "clusterrole", ROLE, "-o", "json"))["rules"]
    index = next(i for i, rule in enumerate(rules) if rule["resources"] == ["nodes"])

    patch_role(cluster, {"op": "replace", "path": f"/rules/{index}/verbs", "value": ["list"]})
    wait_until(lambda: livez(loadmaster) == 500, 15, "/livez fails")

    assert "[-]watches failed" in http_get(loadmaster.port, "/livez")[1]
    assert stalls(loadmaster) == before + 1
    (told,) = (line for line in loadmaster.log_tail(1000).splitlines() if "No progress" in line)
    assert " ERROR " in told
    assert 'resource="nodes"' in told

    patch_role(cluster, {"op": "replace", "path": f"/rules/{index}/verbs", "value": ["list", "watch"]})
    wait_until(lambda: livez(loadmaster) == 200, 15, "/livez passes again")
    (name,) = make_nodes(1)
    api.create(a_pod("web"), namespace)
    wait_until(lambda: node_of(api.get("Pod", "web", namespace)) == name, 10, "a pod is bound to a new node")


def test_livez_passes_while_the_api_server_is_away(loadmaster: Component, controlplane: ControlPlane) -> None:
    wait_until(lambda: livez(loadmaster) == 200, 10, "/livez passes")

    controlplane.apiserver.kill()
    answers = set()
    until = time.monotonic() + 3 * SECONDS
    while time.monotonic() < until:
        answers.add(livez(loadmaster))
        time.sleep(0.1)
    controlplane.apiserver.start()

    assert answers == {200}
    wait_until(lambda: livez(loadmaster) == 200, 20, "/livez passes")


def patch_role(cluster: Cluster, operation: dict[str, object]) -> None:
    cluster.kubectl("patch", "clusterrole", ROLE, "--type=json", f"--patch={json.dumps([operation])}")


def livez(loadmaster: Component) -> int:
    return http_get(loadmaster.port, "/livez")[0]


def stalls(loadmaster: Component) -> float:
    return metric(loadmaster.port, "loadmaster_watch_errors_total", resource="nodes", reason="stalled")
