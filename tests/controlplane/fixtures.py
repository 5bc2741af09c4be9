"""Fixtures for tests on any cluster: a folder has a fixture `cluster`, and imports these into its conftest.py."""

import secrets
from collections.abc import Iterator

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.sync import Client


@pytest.fixture(scope="session")
def api(cluster: Cluster) -> Iterator[Client]:
    """An administrator's client."""
    with cluster.client() as client:
        yield client


@pytest.fixture
def new_namespace(cluster: Cluster) -> str:
    """A namespace of the test's own. Who asks for it deletes it."""
    name = f"test-{secrets.token_hex(4)}"
    cluster.create_namespace(name)
    return name
