"""Fixtures of the cluster tests."""

import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.chart import Helm
from tests.cluster.loadmaster import install_rbac, start
from tests.cluster.metrics_servers import MetricsServer, behind_an_api_service
from tests.cluster.proxied import own_address
from tests.controlplane import (
    BuildError,
    Client,
    Cluster,
    Component,
    ControlPlane,
    ProcessError,
    Settings,
    a_node,
    is_ready,
    wait_until,
)
from tests.controlplane.client import Object
from tests.controlplane.fixtures import api as api
from tests.controlplane.fixtures import new_namespace as new_namespace

MakeNodes = Callable[..., list[str]]

LONGEST = (
    "test_coscheduling.py",
    "test_pod_group_scenarios.py",
    "test_monitoring.py",
    "test_reload.py",
    "test_chart.py",
    "test_replay.py",
    "test_rotation.py",
    "test_chart_permissions.py",
    "test_binding.py",
    "test_extenders.py",
    "test_faulty_plugins.py",
)
"""Files that take about a minute or more. Workers begin with them: who begins one last keeps the others waiting."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first."""
    at = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: at.get(item.path.name, len(at)))


@pytest.fixture(scope="session")
def address() -> str:
    """Where the API server's service proxy finds a scheduler of this machine."""
    found = own_address()
    if not found:
        pytest.skip("the API server's proxy leads to no loopback address, and this machine has no other")
    return found


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """The cluster of the whole run, with controllers and kwok."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a first build takes minutes and shows how far it is
            controlplane = ControlPlane(Settings(controller_manager=True, kwok=True)).__enter__()
    except (BuildError, ProcessError) as error:
        pytest.exit(str(error), returncode=2)  # once, not for every test
    try:
        yield controlplane
    finally:
        controlplane.close()


@pytest.fixture(scope="session")
def kubernetes(cluster: Cluster) -> tuple[int, int]:
    """The version of the API server, such as (1, 36)."""
    said = json.loads(cluster.kubectl("get", "--raw=/version"))
    minor = re.match(r"\d+", said["minor"])  # some providers append a +
    assert minor is not None
    return int(said["major"]), int(minor[0])


@pytest.fixture(autouse=True)
def applies(request: pytest.FixtureRequest) -> None:
    """Skip a test that is marked as one of other versions of Kubernetes than the API server's."""
    for marker in request.node.iter_markers("kubernetes"):
        since, until, reason = (marker.kwargs.get(name) for name in ("since", "until", "reason"))
        version = request.getfixturevalue("kubernetes")
        if (since and version < as_version(since)) or (until and version > as_version(until)):
            pytest.skip(reason)


def as_version(text: str) -> tuple[int, int]:
    """From `1.36`."""
    major, minor = text.split(".")
    return int(major), int(minor)


@pytest.fixture
def controlplane(cluster: ControlPlane) -> Iterator[ControlPlane]:
    """The cluster as one whose components can be stopped; all of them run again afterwards."""
    yield cluster
    cluster.restore()


@pytest.fixture
def namespace(api: Client, new_namespace: str) -> Iterator[str]:
    """A namespace of the test's own; it and what is in it are deleted afterwards."""
    yield new_namespace
    api.delete("Namespace", new_namespace)
    api.delete_all("Pod", new_namespace)  # at once: the next test counts on empty nodes


@pytest.fixture
def make_nodes(api: Client) -> Iterator[MakeNodes]:
    """Create nodes, `make_nodes(3, zone="a", cpu="4")`, and return their names; they are deleted afterwards.

    Names are new in each test, so that nothing is left of another one's.
    """
    made: list[str] = []

    def make(count: int = 1, **wishes: object) -> list[str]:
        prefix = f"node-{secrets.token_hex(3)}"
        nodes: list[Object] = [a_node(f"{prefix}-{i}", **wishes) for i in range(count)]  # type: ignore[arg-type]
        names: list[str] = [node["metadata"]["name"] for node in nodes]
        made.extend(names)
        api.create_many(nodes)
        # With controllers a new node is tainted as not ready until they have seen it.
        wait_until(lambda: all(is_ready(api.get("Node", name)) for name in names), 30, "the nodes are ready")
        return names

    yield make
    api.delete_many("Node", made)


@pytest.fixture(scope="module")
def own() -> Iterator[ControlPlane]:
    """A control plane of the module's own, without controllers: what is made by hand stays as it is."""
    with ControlPlane() as controlplane:
        install_rbac(controlplane)
        yield controlplane


@pytest.fixture(scope="module")
def helm(cluster: Cluster) -> Helm:
    """helm as an administrator."""
    return Helm(cluster.directory / "helm", cluster.kubeconfig())


@pytest.fixture
def metrics_api(cluster: Cluster, tmp_path: Path) -> Iterator[MetricsServer]:
    """What the API server asks about metrics.k8s.io."""
    server = MetricsServer(tmp_path / "certificate.pem")
    with closing(server), behind_an_api_service(cluster, server):
        yield server


@pytest.fixture(scope="module")
def loadmaster(cluster: Cluster) -> Iterator[Component]:
    """The scheduler as it is shipped, for all tests of a module; some modules start one in another way."""
    install_rbac(cluster)
    with start(cluster) as process:
        yield process
