"""VolumeRestrictions: disks that only one pod of a node may use, claims that only one pod anywhere may use."""

from typing import Any

import pytest

from plugins.volumes.volume_restrictions import CLAIM_IN_USE, DISK_IN_USE, VolumeRestrictions
from scheduler import framework as fw
from scheduler.framework.events import NODE_DELETE
from scheduler.testing import a_node, a_pod, started
from tests.unit.plugins.claims import a_claim, a_pod_with
from tests.unit.plugins.cluster import a_cluster, every_row, refusals
from tests.unit.plugins.hints import wakes
from tests.unit.plugins.storage import Storage

EXCLUSIVE = a_claim("data", accessModes=["ReadWriteOncePod"])
SHARED = a_claim("data")


def gce(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, **more}}


def iscsi(iqn: str = "a", **more: Any) -> dict[str, Any]:
    return {"iscsi": {"targetPortal": "10.0.0.1", "iqn": iqn, "lun": 0, **more}}


def rbd(*monitors: str, pool: str = "p", image: str = "i", **more: Any) -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "pool": pool, "image": image, **more}}


def ebs(volume_id: str = "a", **more: Any) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": volume_id, **more}}


@pytest.mark.parametrize(
    ("wanted", "there", "refused"),
    [
        pytest.param(gce(), gce(), True, id="the same disk"),
        pytest.param(gce(), gce(readOnly=True), True, id="the pod writes"),
        pytest.param(ebs(readOnly=True), ebs(readOnly=True), True, id="EBS, read only"),
        pytest.param(iscsi(readOnly=True), iscsi(readOnly=True), False, id="iSCSI, read only"),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3"), True, id="Ceph, one monitor in common"),
        pytest.param(rbd("m1"), rbd("m1", pool="q"), False, id="Ceph, another pool"),
        pytest.param(rbd("m1"), rbd("m1", image="j"), False, id="Ceph, another image"),
        pytest.param({"cinder": {"volumeID": "a"}}, {"cinder": {"volumeID": "a"}}, False, id="a kind nobody guards"),
    ],
)
def test_a_disk_is_used_by_one_pod_a_node(wanted: dict[str, Any], there: dict[str, Any], refused: bool) -> None:
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [a_pod_with(name="there", **there)]})

    found = refusals(started(VolumeRestrictions(), Storage(table).handle), a_pod_with(**wanted), table)

    assert found == ({"a": DISK_IN_USE} if refused else {})


@pytest.mark.parametrize("pod", [a_pod(), a_pod_with("data"), a_pod_with(emptyDir={})], ids=["plain", "claim", "own"])
def test_a_pod_without_disks_whose_claims_are_free_is_skipped(pod: fw.Pod) -> None:
    table = a_cluster(a_node("a"))
    plugin = started(VolumeRestrictions(), Storage(table, EXCLUSIVE).handle)

    assert plugin.pre_filter(fw.CycleState(), pod, table) == fw.SKIP


def test_a_claim_for_one_pod_refuses_all_nodes_once_it_is_used() -> None:
    table = a_cluster(a_node("a"), a_node("b"), pods={"a": [a_pod_with("data", name="there")]})

    exclusive = refusals(started(VolumeRestrictions(), Storage(table, EXCLUSIVE).handle), a_pod_with("data"), table)
    shared = refusals(started(VolumeRestrictions(), Storage(table, SHARED).handle), a_pod_with("data"), table)

    assert exclusive == {"a": CLAIM_IN_USE, "b": CLAIM_IN_USE}
    assert shared == {}


def test_a_pod_on_a_node_that_is_gone_uses_no_claim() -> None:
    table = a_cluster(a_node("a"), pods={"gone": [a_pod_with("data", name="there")]})

    assert refusals(started(VolumeRestrictions(), Storage(table, EXCLUSIVE).handle), a_pod_with("data"), table) == {}


def test_a_missing_claim_refuses_the_pod() -> None:
    table = a_cluster(a_node("a"))

    status = started(VolumeRestrictions(), Storage(table).handle).pre_filter(fw.CycleState(), a_pod_with("data"), table)

    assert status == fw.unresolvable('persistentvolumeclaim "data" not found')


def test_a_claim_is_free_again_in_a_what_if_without_the_pod_that_uses_it() -> None:
    there = a_pod_with("data", name="there")
    table = a_cluster(a_node("a"), pods={"a": [there]})
    plugin = started(VolumeRestrictions(), Storage(table, EXCLUSIVE).handle)
    pod, state = a_pod_with("data"), fw.CycleState()
    assert plugin.pre_filter(state, pod, table) is None
    what_if = state.clone()

    plugin.remove_pod(what_if, pod, there, table.info(0))

    assert plugin.filter_nodes(what_if, pod, table, every_row(table)) is None
    assert plugin.filter_nodes(state, pod, table, every_row(table)) is not None
    plugin.add_pod(what_if, pod, there, table.info(0))
    assert plugin.filter_nodes(what_if, pod, table, every_row(table)) is not None


def test_filter_without_pre_filter_is_a_fault_unless_disks_decide() -> None:
    table = a_cluster(a_node("a"), pods={"a": [a_pod_with(name="there", **gce())]})
    plugin = started(VolumeRestrictions(), Storage(table).handle)

    found = plugin.filter_nodes(fw.CycleState(), a_pod_with(**gce()), table, every_row(table))

    assert found is not None
    assert found.tolist() == [1]
    with pytest.raises(LookupError, match='cannot read "PreFilterVolumeRestrictions" from cycleState'):
        plugin.filter_nodes(fw.CycleState(), a_pod_with(**gce("b")), table, every_row(table))


# Hints.


@pytest.mark.parametrize(
    ("deleted", "answer"),
    [
        pytest.param(a_pod_with("data", name="gone"), fw.QueueingHint.QUEUE, id="the same claim"),
        pytest.param(a_pod_with("other", name="gone"), fw.QueueingHint.SKIP, id="another claim"),
        pytest.param(a_pod_with(name="gone", **gce()), fw.QueueingHint.QUEUE, id="the same disk"),
        pytest.param(a_pod_with(name="gone", **gce("b")), fw.QueueingHint.SKIP, id="another disk"),
        pytest.param(a_pod_with("data", namespace="elsewhere"), fw.QueueingHint.SKIP, id="a claim elsewhere"),
        pytest.param(a_pod_with(namespace="elsewhere", **gce()), fw.QueueingHint.QUEUE, id="the disk, elsewhere"),
        pytest.param(a_pod(), fw.QueueingHint.SKIP, id="no volumes"),
    ],
)
def test_a_pod_that_goes_helps_if_it_had_what_the_pod_wants(deleted: fw.Pod, answer: fw.QueueingHint) -> None:
    after_pod, *_ = started(VolumeRestrictions(), Storage(a_cluster()).handle).events_to_register()

    assert after_pod.hint is not None
    assert after_pod.hint(a_pod_with("data", **gce()), deleted, None) is answer


def test_a_new_claim_helps_the_pods_that_name_it() -> None:
    _, _, after_claim, _ = started(VolumeRestrictions(), Storage(a_cluster()).handle).events_to_register()

    assert after_claim.hint is not None
    assert after_claim.hint(a_pod_with("data"), None, SHARED) is fw.QueueingHint.QUEUE
    assert after_claim.hint(a_pod_with("other"), None, SHARED) is fw.QueueingHint.SKIP
    assert after_claim.hint(a_pod(namespace="team"), None, SHARED) is fw.QueueingHint.SKIP


def test_a_deleted_node_helps_pods_that_wait_for_a_claim_for_one_pod() -> None:
    plugin = started(VolumeRestrictions(), Storage(a_cluster(), EXCLUSIVE, a_claim("shared")).handle)
    helped = {name: wakes(plugin, a_pod_with(name), NODE_DELETE, a_node("gone"), None) for name in ("data", "shared")}

    assert helped == {"data": True, "shared": False}
    assert not wakes(plugin, a_pod_with("missing"), NODE_DELETE, a_node("gone"), None)
