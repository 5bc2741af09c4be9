"""Random life of pods, nodes and volumes: what is kept of a node says the same as counting it from scratch."""

import random
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from plugins.volumes.limits.csi import ClaimNotFound, CsiVolumes
from plugins.volumes.limits.on_node import NO_VOLUMES, NodeCounter, limits_of
from plugins.volumes.node_volume_limits import NodeVolumeLimits
from scheduler import framework as fw
from scheduler.testing import a_node, started
from tests.unit.plugins.claims import a_claim, a_class, a_pod_with, a_volume
from tests.unit.plugins.cluster import a_cluster
from tests.unit.plugins.storage import Storage, an_attachment, with_limits

DRIVERS: Final = ("disks.example.com", "ebs.csi.aws.com")
PROVISIONERS: Final = (*DRIVERS, "kubernetes.io/aws-ebs")
NODES: Final = tuple(f"n{i}" for i in range(6))
CLAIMS, CLASSES, VOLUMES = "abcd", "xy", ("pv-a", "pv-b", "pv-c")
DISK: Final[dict[str, Any]] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


class Life:
    """A cluster in which anything may happen."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.table = a_cluster(*map(a_node, NODES[:4]))
        self.storage = Storage(self.table)
        self._running: dict[str, tuple[str, fw.Pod]] = {}
        self._gone: list[fw.Pod] = []
        self._names = (f"p{i}" for i in range(10**6))

    def step(self) -> None:
        """Let one thing happen."""
        kinds = (self.put_object, self.put_object, self.put_object, self.add_pod, self.remove_pod, self.change_node)
        self.dice.choice(kinds)()

    def put_object(self) -> None:
        self.storage.put(self.dice.choice(list(self._objects())))

    def _objects(self) -> Iterator[Any]:
        dice = self.dice
        claim, volume, driver = dice.choice(CLAIMS), dice.choice(VOLUMES), dice.choice(DRIVERS)
        yield a_claim(claim, class_name=dice.choice(CLASSES))
        yield a_claim(claim, volume=volume, class_name="x")
        yield a_volume(volume, csi={"driver": driver, "volumeHandle": dice.choice("12")})
        yield a_volume(volume, **DISK)
        yield with_limits(dice.choice(NODES), {each: dice.randint(0, 4) for each in DRIVERS})
        yield an_attachment(dice.choice("uvw"), dice.choice(NODES), volume, driver)
        yield a_class(dice.choice(CLASSES), provisioner=dice.choice(PROVISIONERS))

    def a_pod(self, most: int) -> fw.Pod:
        claims = self.dice.sample(CLAIMS, self.dice.randint(0, most))
        return a_pod_with(*claims, name=next(self._names), **(DISK if self.dice.random() < 0.4 else {}))

    def add_pod(self) -> None:
        node = self.dice.choice(NODES)
        # A pod that is put back where it was is the same one.
        pod = self._gone.pop() if self._gone and self.dice.random() < 0.3 else self.a_pod(3)
        self._running[pod.uid] = node, pod
        self.table.add_pod(node, pod)

    def remove_pod(self) -> None:
        if self._running:
            node, pod = self._running.pop(self.dice.choice(sorted(self._running)))
            self.table.remove_pod(node, pod)
            self._gone.append(pod)

    def change_node(self) -> None:
        name = self.dice.choice(NODES)
        if self.table.node(name) is None:
            self.table.set_node(a_node(name))
        elif self.dice.random() < 0.3:
            self.table.remove_node(name)


def test_counts_follow_whatever_changes() -> None:
    life = Life(seed=5)
    plugin = started(NodeVolumeLimits(), life.storage.handle)
    refused = allowed = 0

    for step in range(1500):
        life.step()
        life.table.check_invariants()
        wanted = life.a_pod(1)
        rows = np.flatnonzero(life.table.in_use)
        if len(rows) < 2 or not wanted.storage.volumes or life.dice.random() < 0.3:
            continue
        expected = [from_scratch(wanted, life, row) for row in rows.tolist()]
        assert ask(plugin, wanted, life, rows) == expected, step
        assert [ask(plugin, wanted, life, rows[i : i + 1])[0] for i in range(len(rows))] == expected, step
        refused += expected.count(1)
        allowed += expected.count(0)

    assert refused > 100
    assert allowed > 100


def from_scratch(pod: fw.Pod, life: Life, row: int) -> int:
    """The code of one row: 2 for a claim that is not there, 1 for too many volumes."""
    handle, node = life.storage.handle, life.table.info(row)
    volumes, csi_node = CsiVolumes(handle), handle.objects.get(fw.CSI_NODE, node.name)
    try:
        new = volumes.of_pending(pod, has_csi_node=csi_node is not None)
    except ClaimNotFound:
        return 2
    if csi_node is None:
        return 0
    attachments = [each for each in handle.objects.list(fw.VOLUME_ATTACHMENT) if each.spec.node_name == node.name]
    counted = NodeCounter(handle.objects, volumes).count(node, attachments, NO_VOLUMES)
    return int(counted.exceeds(new, limits_of(csi_node)))


def ask(plugin: NodeVolumeLimits, pod: fw.Pod, life: Life, rows: fw.Rows) -> list[int]:
    """The codes for these rows."""
    codes = plugin.filter_nodes(fw.CycleState(), pod, life.table, rows)
    found: list[int] = [0] * len(rows) if codes is None else codes.tolist()
    return found
