"""The API server takes the objects of every attack, and plain pods are placed while they are there."""

import pytest

from tests.attacks.attack import Attack, Target
from tests.attacks.catalog import ATTACKS
from tests.cluster.conftest import MakeNodes
from tests.cluster.loadmaster import node_of
from tests.controlplane import Client, Component, a_pod, wait_until

PATIENCE = 60.0
"""Seconds for a plain pod beside hostile ones; without them it takes less than one."""

MOST = 200
"""Objects of an attack that are created here: what each may cost, not what thousands do."""


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_plain_pod_is_placed_during(
    attack: Attack, loadmaster: Component, api: Client, namespace: str, make_nodes: MakeNodes
) -> None:
    nodes = make_nodes(5)
    objects = [each for each, _ in zip(attack.objects(Target(namespace, nodes)), range(MOST), strict=False)]
    api.create_many(objects, namespace)

    api.create(a_pod("plain"), "default")

    try:
        wait_until(lambda: node_of(api.get("Pod", "plain", "default")), PATIENCE, "the plain pod has a node")
        assert loadmaster.running
    finally:
        api.delete("Pod", "plain", "default", grace=0)
        for each in objects:
            if each["kind"] != "Pod":
                api.delete(each["kind"], each["metadata"]["name"])
