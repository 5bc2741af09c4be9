"""VolumeZone: pods go where the labels of their volumes say."""

from typing import Any

import pytest

from plugins.volumes.volume_zone import OTHER_ZONE, VolumeZone
from scheduler import framework as fw
from scheduler.testing import a_node, a_pod, started
from tests.unit.plugins.claims import a_claim, a_class, a_pod_with, a_volume
from tests.unit.plugins.cluster import a_cluster, every_row, refusals
from tests.unit.plugins.storage import Storage

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
BOUND = a_claim(volume="pv")


@pytest.mark.parametrize(
    ("of_volume", "of_node", "refused"),
    [
        pytest.param({ZONE: "a"}, {REGION: "r"}, True, id="a node that says only its region"),
        pytest.param({ZONE: "a__"}, {ZONE: "c"}, False, id="a list that cannot be read"),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "a"}, False, id="an old label, and today's on the node"),
        pytest.param({OLD_ZONE: "a"}, {OLD_ZONE: "b", ZONE: "a"}, True, id="the node's old label counts first"),
        pytest.param({ZONE: "a"}, {OLD_ZONE: "a"}, True, id="today's label, and an old one on the node"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, True, id="the zone but not the region"),
    ],
)
def test_nodes_in_other_places_than_the_volume_are_refused(
    of_volume: dict[str, str], of_node: dict[str, str], refused: bool
) -> None:
    table = a_cluster(a_node("n", labels=of_node), a_node("bare"))
    storage = Storage(table, BOUND, a_volume(labels=of_volume))

    found = refusals(started(VolumeZone(), storage.handle), a_pod_with("data"), table)

    assert found == ({"n": OTHER_ZONE} if refused else {})


def test_a_node_has_to_suit_all_volumes() -> None:
    table = a_cluster(a_node("a", labels={ZONE: "a"}), a_node("b", labels={ZONE: "b"}))
    first, second = a_volume(labels={ZONE: "a__b"}), a_volume("other", labels={ZONE: "b"})
    storage = Storage(table, BOUND, a_claim("more", volume="other"), first, second)

    assert refusals(started(VolumeZone(), storage.handle), a_pod_with("data", "more"), table) == {"a": OTHER_ZONE}


@pytest.mark.parametrize(
    ("claims", "objects"),
    [
        pytest.param((), [], id="no claim"),
        pytest.param(("data",), [BOUND, a_volume()], id="a volume without labels"),
        pytest.param(("data",), [a_claim(), a_class()], id="a claim that waits for its first pod"),
    ],
)
def test_pods_without_a_place_are_skipped(claims: tuple[str, ...], objects: list[Any]) -> None:
    table = a_cluster(a_node("a", labels={ZONE: "a"}))
    plugin = started(VolumeZone(), Storage(table, *objects).handle)

    assert plugin.pre_filter(fw.CycleState(), a_pod_with(*claims, emptyDir={}), table) == fw.SKIP


@pytest.mark.parametrize(
    ("name", "objects", "message"),
    [
        pytest.param("", [], "PersistentVolumeClaim had no name", id="no name"),
        pytest.param(
            "data",
            [a_claim(class_name=None)],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="neither volume nor class",
        ),
        pytest.param(
            "data", [a_claim(class_name="fast")], 'storageclass.storage.k8s.io "fast" not found', id="no class"
        ),
        pytest.param(
            "data",
            [a_claim(class_name="fast"), a_class("fast", mode="Immediate")],
            "PersistentVolume had no name",
            id="a claim that is to be bound at once",
        ),
    ],
)
def test_what_is_missing_refuses_the_pod(name: str, objects: list[Any], message: str) -> None:
    table = a_cluster(a_node("a"))
    plugin, pod, state = started(VolumeZone(), Storage(table, *objects).handle), a_pod_with(name), fw.CycleState()

    assert plugin.pre_filter(state, pod, table) == fw.unresolvable(message)
    codes = plugin.filter_nodes(state, pod, table, every_row(table))  # a profile may have Filter alone
    assert codes is not None
    assert plugin.status_of(state, pod, codes[0].item()) == fw.unresolvable(message)


# Hints.


def test_a_class_helps_if_it_waits_for_the_first_pod() -> None:
    after_class, _, _, _ = started(VolumeZone(), Storage(a_cluster()).handle).events_to_register()

    assert after_class.hint is not None
    assert after_class.hint(a_pod(), None, a_class()) is fw.QueueingHint.QUEUE
    assert after_class.hint(a_pod(), None, a_class(mode="Immediate")) is fw.QueueingHint.SKIP
    assert after_class.hint(a_pod(), None, a_class(mode=None)) is fw.QueueingHint.SKIP


def test_a_volume_helps_if_it_is_new_or_moved() -> None:
    *_, after_volume = started(VolumeZone(), Storage(a_cluster()).handle).events_to_register()
    here, there = a_volume(labels={ZONE: "a"}), a_volume(labels={ZONE: "b"})

    assert after_volume.hint is not None
    assert after_volume.hint(a_pod(), None, here) is fw.QueueingHint.QUEUE
    assert after_volume.hint(a_pod(), here, there) is fw.QueueingHint.QUEUE
    assert after_volume.hint(a_pod(), here, a_volume(labels={ZONE: "a", "app": "x"})) is fw.QueueingHint.SKIP


def test_a_claim_helps_the_pods_that_name_it() -> None:
    _, _, after_claim, _ = started(VolumeZone(), Storage(a_cluster()).handle).events_to_register()

    assert after_claim.hint is not None
    assert after_claim.hint(a_pod_with("data"), a_claim(), BOUND) is fw.QueueingHint.QUEUE
    assert after_claim.hint(a_pod_with("other"), a_claim(), BOUND) is fw.QueueingHint.SKIP
