"""Attacks are objects that an API server would take, and each says what it attacks."""

import orjson
import pytest

from tests.attacks.attack import Attack, Target
from tests.attacks.catalog import ATTACKS

TARGET = Target("hostile", ["node-0", "node-1"])

ETCD_LIMIT = 3 * 512 * 1024
"""Bytes of an object that etcd takes, by default."""

each_attack = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)


@each_attack
def test_an_attack_says_what_it_attacks(attack: Attack) -> None:
    assert ATTACKS[attack.name] is attack
    assert attack.attacks.endswith(".")


@each_attack
def test_no_two_objects_of_an_attack_are_the_same(attack: Attack) -> None:
    keys = [(each["kind"], each["metadata"]["name"]) for each in attack.objects(TARGET)]

    assert keys
    assert len(keys) == len(set(keys))


@each_attack
def test_etcd_would_take_every_object_of_an_attack(attack: Attack) -> None:
    assert all(len(orjson.dumps(each)) < ETCD_LIMIT for each in attack.objects(TARGET))


@each_attack
def test_hostile_pods_that_run_do_so_on_nodes_that_exist(attack: Attack) -> None:
    pods = [each for each in attack.objects(TARGET) if each["kind"] == "Pod"]

    assert {pod["spec"].get("nodeName", "node-0") for pod in pods} <= set(TARGET.nodes)
