"""A profile of the scheduler as it is shipped, on the real control plane, for who may see it and nobody else."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.conftest import MakeNodes
from tests.cluster.https import http_get
from tests.cluster.loadmaster import ACCOUNT, NAMESPACE, install_rbac, node_of, start
from tests.cluster.prometheus import OPERATIONS
from tests.controlplane import Client, Cluster, Component, a_pod, wait_until
from tests.fakes import folded

PROFILE = "/debug/pprof/profile"


@pytest.fixture(scope="module")
def loadmaster(cluster: Cluster) -> Iterator[Component]:
    install_rbac(cluster)
    account = cluster.service_account_kubeconfig(NAMESPACE, ACCOUNT)
    with start(cluster, *(f"--{what}-kubeconfig={account}" for what in ("authentication", "authorization"))) as process:
        yield process


@pytest.fixture
def token(cluster: Cluster, namespace: str) -> Iterator[str]:
    """Of an account that has the role of docs/operations/port.md."""
    (text,) = (
        block
        for block in OPERATIONS.read_text().split("```yaml\n")
        if block.startswith("apiVersion: rbac") and "loadmaster-debug" in block
    )
    role = yaml.safe_load(text.partition("```")[0])
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(role))
    cluster.kubectl("create", "serviceaccount", "debugger", f"--namespace={namespace}")
    name = role["metadata"]["name"]
    cluster.kubectl(
        "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={namespace}:debugger"
    )
    yield cluster.kubectl("create", "token", "debugger", f"--namespace={namespace}").strip()
    cluster.kubectl("delete", "clusterrole,clusterrolebinding", name)


def test_a_profile_shows_where_the_scheduler_works(
    loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes, token: str
) -> None:
    make_nodes(3)
    api.create_many([a_pod(f"web-{number}", cpu="10m", memory="1Mi") for number in range(200)], namespace)

    status, text = http_get(loadmaster.port, f"{PROFILE}?seconds=2", token=token)
    wait_until(lambda: all(node_of(pod) for pod in api.list("Pod", namespace)), 30, "all pods are bound")

    assert status == 200
    found = list(folded.stacks(text))
    assert found, "nothing was done in two seconds in which pods came"
    assert {stack[0] for stack, _ in found} >= {"event loop"}
    assert any("scheduler/" in frame for stack, _ in found for frame in stack)
    assert sum(weight for stack, weight in found if stack[0] == "event loop") < 2_500_000


def test_memory_shows_what_is_kept(loadmaster: Component, make_nodes: MakeNodes, token: str) -> None:
    names = make_nodes(2)

    shown = json.loads(http_get(loadmaster.port, "/debug/memory", token=token)[1])

    assert shown["counts"]["nodes"] >= len(names)
    assert shown["residentBytes"] > 50_000_000


def test_nobody_else_sees_them(loadmaster: Component, cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "serviceaccount", "guest", f"--namespace={namespace}")
    guest = cluster.kubectl("create", "token", "guest", f"--namespace={namespace}").strip()

    for path in (PROFILE, "/debug/memory"):
        assert http_get(loadmaster.port, path, token=guest)[0] == 403
        assert http_get(loadmaster.port, path)[0] == 403
