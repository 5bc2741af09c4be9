"""What is told of volumes that cannot be attached, disks in use, and volumes elsewhere."""

from typing import Any

import pytest

from plugins.volumes.node_volume_limits import NodeVolumeLimits
from plugins.volumes.volume_restrictions import VolumeRestrictions
from plugins.volumes.volume_zone import VolumeZone
from scheduler import framework as fw
from scheduler.state.nodes.node_table import NodeTable
from scheduler.testing import a_node, a_pod, started
from tests.unit.plugins.claims import a_claim, a_pod_with, a_volume
from tests.unit.plugins.cluster import a_cluster, every_row
from tests.unit.plugins.storage import Storage, with_limits

DRIVER = "disks.example.com"
ZONE = "topology.kubernetes.io/zone"
EXCLUSIVE = a_claim("data", accessModes=["ReadWriteOncePod"])


def told(plugin: Any, table: NodeTable, pod: fw.Pod, node: str, *objects: Any) -> list[tuple[str, str]]:
    """Facts and examples of one node, after a decision."""
    plugin = started(plugin, Storage(table, *objects).handle)
    state = fw.CycleState()
    plugin.pre_filter(state, pod, table)
    plugin.filter_nodes(state, pod, table, every_row(table))
    row = table.row_of(node)
    assert row is not None
    return [(each.fact, each.example) for each in plugin.obstacles(state, pod, table.info(row))]


def test_a_driver_without_room_is_told_with_its_limit() -> None:
    table = a_cluster(a_node("a"), a_node("bare"), pods={"a": [a_pod_with("one", name="there")]})
    objects: list[Any] = [with_limits("a", {DRIVER: 2, "others.example.com": 0})]
    for name in ("one", "two", "three"):
        objects += [
            a_claim(name, volume=f"pv-{name}"),
            a_volume(f"pv-{name}", csi={"driver": DRIVER, "volumeHandle": name}),
        ]
    pod = a_pod_with("one", "two", "three")

    assert told(NodeVolumeLimits(), table, pod, "a", *objects) == [
        (f"the node takes 2 volumes of driver {DRIVER}, and the pod has 2 more", "1 are attached")
    ]
    assert told(NodeVolumeLimits(), table, pod, "bare", *objects) == []


@pytest.mark.parametrize(
    ("volume", "name"),
    [
        ({"gcePersistentDisk": {"pdName": "pd-1"}}, "pd-1"),
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "vol-1"),
        ({"rbd": {"monitors": ["m1", "m2"], "pool": "p", "image": "picture"}}, "picture"),
    ],
)
def test_a_disk_in_use_is_told_once_with_its_user(volume: dict[str, Any], name: str) -> None:
    table = a_cluster(a_node("a"), pods={"a": [a_pod("bystander"), a_pod_with(name="there", **volume)]})

    assert told(VolumeRestrictions(), table, a_pod_with(**volume), "a") == [
        (f"disk {name} is in use there", "by pod default/there")
    ]


def test_a_claim_for_one_pod_is_told_with_the_pod_that_has_it_wherever_that_is() -> None:
    there = a_pod_with("data", name="there")
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [there]})

    assert told(VolumeRestrictions(), table, a_pod_with("data"), "b", EXCLUSIVE) == [
        ("claim data is for one pod at a time (ReadWriteOncePod), and pod default/there on a uses it", "")
    ]


def test_a_volume_elsewhere_is_told_with_its_zones() -> None:
    table = a_cluster(a_node("near", labels={ZONE: "a"}), a_node("far", labels={ZONE: "c"}))
    objects = a_claim("data", volume="pv"), a_volume("pv", labels={ZONE: "b__a"})
    pod = a_pod_with("data")

    assert told(VolumeZone(), table, pod, "far", *objects) == [
        (f"volume pv of claim data is where {ZONE} is a or b", "")
    ]
    assert told(VolumeZone(), table, pod, "near", *objects) == []


def test_a_claim_that_is_gone_by_now_leaves_the_reason_to_say_it_all() -> None:
    table = a_cluster(a_node("far", labels={ZONE: "c"}))

    assert told(VolumeZone(), table, a_pod_with("data"), "far") == []
    assert told(NodeVolumeLimits(), table, a_pod_with("data"), "far", with_limits("far", {DRIVER: 0})) == []
