"""Fixtures of the tests on a kind cluster: the one that `make kind` made. Without one they are skipped.

Loadmaster is installed as users do it: release `loadmaster` in kube-system, two replicas.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.chart import Helm
from tests.controlplane import Client, wait_until
from tests.controlplane.fixtures import api as api
from tests.controlplane.fixtures import new_namespace as new_namespace
from tests.kind import workload_images
from tests.kind.cluster import NODES, KindCluster, State
from tests.kind.release import HELM_SECONDS, NAMESPACE, RELEASE
from tests.kind.scheduler import Scheduler

GONE_SECONDS: Final = 150
OWNERS: Final = "deployments,jobs,statefulsets"
"""Of pods in tests: while they are being deleted, they make no new ones."""


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[KindCluster]:
    """The cluster; its `kubectl`, `helm`, `engine`, `stop_node`, `start_node` and `load` are what tests use most."""
    if (state := State.load()) is None:
        pytest.skip("there is no kind cluster: `make kind` makes one")
    with KindCluster(state) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def helm(cluster: KindCluster) -> Helm:
    """helm on the cluster."""
    return cluster.helm


@pytest.fixture
def namespace(cluster: KindCluster, api: Client, new_namespace: str) -> Iterator[str]:
    """A namespace of the test's own; it and what is in it are deleted afterwards."""
    yield new_namespace
    # The next test counts on empty nodes. A namespace would wait five seconds before it deletes its pods.
    for kinds in OWNERS, "pods":
        delete = ("delete", kinds, "--all", f"--namespace={new_namespace}", "--cascade=foreground", "--wait=false")
        cluster.kubectl(*delete)
    wait_until(lambda: not api.list("Pod", new_namespace), GONE_SECONDS, "the test's pods are gone", interval=0.2)
    cluster.kubectl("delete", "namespace", new_namespace, "--wait=false")


@pytest.fixture(scope="session", autouse=True)
def images(cluster: KindCluster) -> None:
    """What the workloads of tests and specs run."""
    workload_images.load(cluster)


@pytest.fixture(scope="session")
def loadmaster(cluster: KindCluster, api: Client) -> Scheduler:
    """Loadmaster as it was installed."""
    return Scheduler(cluster, api, NAMESPACE, RELEASE)


@pytest.fixture(autouse=True)
def as_at_first(cluster: KindCluster, loadmaster: Scheduler) -> Iterator[None]:
    """Each test begins with replicas that are ready, and ends with nodes that take pods."""
    loadmaster.wait_ready(HELM_SECONDS)
    yield
    cluster.kubectl("uncordon", *NODES)
