"""Which nodes' drivers serve in-tree volumes: the columns that are kept say what the CSINodes say."""

import dataclasses
import random
from typing import Final

import numpy as np
import pytest

from plugins.volumes.csi_nodes import CsiNodeColumns, is_migrated
from scheduler.testing import a_node
from tests.unit.plugins.claims import World, a_claim, a_csi_node, a_pod_with, a_volume
from tests.unit.plugins.cluster import a_cluster
from tests.unit.plugins.storage import Storage

NODES: Final = tuple(f"n{i}" for i in range(8))
EBS: Final = "kubernetes.io/aws-ebs"
DISKS: Final = "kubernetes.io/gce-pd"


@pytest.mark.parametrize("seed", range(5))
def test_columns_follow_nodes_and_csi_nodes(seed: int) -> None:
    dice = random.Random(seed)
    table = a_cluster(*map(a_node, NODES[:3]))
    storage = Storage(table)
    handle = storage.handle
    migrated = CsiNodeColumns(handle)
    for _ in range(200):
        name = dice.choice(NODES)
        match dice.randrange(4):
            case 0:
                table.set_node(a_node(name))
            case 1:
                table.remove_node(name)
            case 2:
                storage.put(a_csi_node(name, dice.choice(("", EBS, f"x,{DISKS}", f"{EBS},{DISKS}"))))
            case _:
                if handle.objects.get("storage.k8s.io/CSINode", name) is not None:
                    storage.remove(a_csi_node(name))
        rows = np.flatnonzero(table.in_use)
        rows = np.array([row for row in rows.tolist() if dice.random() < 0.8], np.intp)

        for plugin in (EBS, DISKS)[: dice.randrange(3)]:
            expected = [is_migrated(plugin, table.names()[row], handle.objects) for row in rows.tolist()]
            assert migrated.of(plugin, rows).tolist() == expected


def test_a_node_is_asked_for_its_csi_node_again_only_after_a_change() -> None:
    table = a_cluster(*map(a_node, NODES))
    storage = Storage(table, a_csi_node("n1", EBS))
    asked: list[str] = []

    class Objects:
        def get(self, resource: str, name: str, namespace: str = "") -> object:
            asked.append(name)
            return storage.handle.objects.get(resource, name, namespace)

        def listen(self, resource: str, listener: object, reset: object) -> None:
            storage.handle.objects.listen(resource, listener)  # type: ignore[arg-type]

    migrated = CsiNodeColumns(dataclasses.replace(storage.handle, objects=Objects()))  # type: ignore[arg-type]
    rows = np.flatnonzero(table.in_use)
    migrated.of(EBS, rows)
    first, asked[:] = list(asked), []

    migrated.of(EBS, rows)
    storage.put(a_csi_node("n2", EBS))
    migrated.of(EBS, rows)

    assert (sorted(first), set(asked)) == (sorted(NODES), {"n2"})


def test_a_volume_whose_driver_asks_for_the_same_labels_is_in_reach_of_all_nodes() -> None:
    volume = a_volume(awsElasticBlockStore={"volumeID": "vol-1"})

    assert World(a_claim(volume="pv"), volume, a_csi_node("a", EBS)).refusals(a_pod_with("data")) == {}


def test_a_volume_that_no_driver_could_serve_is_an_error_only_where_a_driver_has_taken_over() -> None:
    objects = a_claim(volume="pv"), a_volume(awsElasticBlockStore={"volumeID": "aws://zone/odd/path"})

    assert World(*objects).refusals(a_pod_with("data")) == {}
    with pytest.raises(ValueError, match="could not translate pv: "):
        World(*objects, a_csi_node("a", EBS)).refusals(a_pod_with("data"))
