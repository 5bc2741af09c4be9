"""Fixtures of the tests on a real node. `make node-test` runs them; by themselves they are skipped."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane import Client
from tests.controlplane.fixtures import api as api
from tests.controlplane.fixtures import new_namespace as new_namespace
from tests.node.release import Release, install
from tests.node.scheduler import Scheduler, apply_manifest
from tests.realnode import cgroups
from tests.realnode.__main__ import IMAGES, LACKS
from tests.realnode.images import Images
from tests.realnode.node import RealNode

ROTATING: Final = {
    "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
    "config": {"profiles": [{"schedulerName": "rotating"}]},
    "extraVolumes": [
        {
            "name": "token",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                ]
            },
        }
    ],
    # Where pods have their token: as something is mounted there, the API server does not add its own.
    "extraVolumeMounts": [
        {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    ],
}
KEPT_LOGS: Final = Path(__file__).parents[2] / "build" / "node-test"
"""Where the logs of a run with failures are kept."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "last: runs after all others, as it looks back or waits for something old")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session", autouse=True)
def node(request: pytest.FixtureRequest) -> Iterator[RealNode]:
    """The node and its control plane, for the whole run."""
    if lacks := os.environ.get(LACKS):
        pytest.skip(f"no real node can run here: {lacks}")
    if IMAGES not in os.environ:
        pytest.skip("needs images and namespaces: `make node-test` makes them")
    with RealNode(Images(Path(os.environ[IMAGES])), os.environ[cgroups.VARIABLE]) as node:
        yield node
        if request.session.testsfailed:
            node.keep_logs(KEPT_LOGS)
            print(f"\nLogs are kept in {KEPT_LOGS}")


@pytest.fixture(scope="session")
def cluster(node: RealNode) -> RealNode:
    """The node's control plane, by the name that shared fixtures know."""
    return node


@pytest.fixture
def namespace(node: RealNode, new_namespace: str) -> Iterator[str]:
    """A namespace of the test's own; it and what is in it are deleted afterwards."""
    yield new_namespace
    # Its pods are gone before the next test counts on an empty node.
    node.kubectl("delete", "namespace", new_namespace, "--wait", "--timeout=60s", timeout=90)


@pytest.fixture(scope="module")
def loadmaster(node: RealNode, api: Client) -> Iterator[Scheduler]:
    """Loadmaster from deploy/loadmaster.yaml, ready."""
    scheduler = Scheduler(node, api, "kube-system")
    apply_manifest(node)
    scheduler.wait_ready()
    yield scheduler
    scheduler.delete()


@pytest.fixture(scope="session", autouse=True)
def rotating(node: RealNode, api: Client) -> Release:
    """A release whose token lives for 600 s, the shortest that there is: installed first, looked at last."""
    return install(node, api, "rotating", ROTATING)
