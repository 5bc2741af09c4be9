"""Fixtures for modules whose tests each start a scheduler of their own, under the RBAC that is shipped."""

from collections.abc import Iterator

import pytest

from tests.cluster.loadmaster import install_rbac, start
from tests.controlplane import Cluster, Component


@pytest.fixture(scope="module", autouse=True)
def rbac(cluster: Cluster) -> None:
    install_rbac(cluster)


@pytest.fixture
def loadmaster(cluster: Cluster) -> Iterator[Component]:
    with start(cluster) as process:
        yield process
