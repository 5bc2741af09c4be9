"""The API server takes the objects of every attack, and plain pods are placed while they are there."""

import itertools
from collections.abc import Iterator

import pytest

from tests.attacks.attack import Attack, Target
from tests.attacks.catalog import ATTACKS
from tests.attacks.runner import create_all, delete_all
from tests.bench.api import Api
from tests.bench.wire import Server
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import node_of
from tests.controlplane import Client, Component, ControlPlane, a_pod, wait_until

pytestmark = pytest.mark.alone

PATIENCE = 60.0
"""Seconds for a plain pod beside hostile ones; without them it takes less than one."""

MOST = 200
"""Objects of an attack that are created here: what each may cost, not what thousands do."""


@pytest.fixture(scope="module")
def attacker(cluster: ControlPlane) -> Iterator[Api]:
    """Whoever attacks reads no answers: some are too deep for the client of the other tests."""
    credentials = cluster.credentials
    with Api(Server(cluster.apiserver.port, credentials.ca, credentials.tokens["admin"])) as api:
        yield api


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_plain_pod_is_placed_during(
    attack: Attack, loadmaster: Component, api: Client, attacker: Api, namespace: str, make_nodes: MakeNodes
) -> None:
    nodes = make_nodes(5)
    objects = list(itertools.islice(attack.objects(Target(namespace, nodes)), MOST))
    create_all(attacker, objects, namespace)

    name = f"plain-during-{attack.name}"  # kwok may still be deleting that of the attack before
    api.create(a_pod(name), "default")

    try:
        wait_until(lambda: node_of(api.get("Pod", name, "default")), PATIENCE, "the plain pod has a node")
        assert loadmaster.running
    finally:
        api.delete("Pod", name, "default", grace=0)
        delete_all(attacker, objects, namespace)
