"""VolumeBinding up to the decision: claims that can be used, nodes from which volumes can be reached, found or made."""

from typing import Any

import pytest

from plugins.volumes.volume_binding import VolumeBinding
from scheduler import framework as fw
from scheduler.framework.arguments import parse_arguments
from scheduler.testing import a_pod
from tests.unit.plugins.claims import (
    MADE,
    World,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_pod_with,
    a_volume,
    room,
)

NO_VOLUME = ("node(s) didn't find available persistent volumes to bind",)
NO_REACH = ("node(s) didn't match PersistentVolume's node affinity",)
GONE = ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",)


def refused_as_a_whole(world: World, pod: fw.Pod) -> str:
    status = world.pre_filter(pod)
    assert isinstance(status, fw.Status)
    assert status.code is fw.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return status.message


@pytest.mark.parametrize("pod", [a_pod(), a_pod_with(image={"reference": "data"})])
def test_pods_without_claims_are_skipped(pod: fw.Pod) -> None:
    assert World().pre_filter(pod) == fw.SKIP


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([a_claim(deleted=True)], 'persistentvolumeclaim "data" is being deleted'),
        (
            [a_claim(volumeName="pv", phase="Lost")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
        ),
        ([a_claim(class_name="gone")], "pod has unbound immediate PersistentVolumeClaims"),
        ([a_claim(class_name=None)], "pod has unbound immediate PersistentVolumeClaims"),
        ([a_class(mode="Immediate"), a_claim()], "pod has unbound immediate PersistentVolumeClaims"),
        ([a_class(), a_claim(volumeName="pv")], "pod has unbound immediate PersistentVolumeClaims"),
    ],
    ids=["missing", "deleted", "lost", "no class", "no class named", "immediate", "prebound"],
)
def test_a_claim_that_no_node_could_help_refuses_the_pod(objects: list[Any], message: str) -> None:
    assert refused_as_a_whole(World(*objects), a_pod_with("data")) == message


def test_a_class_without_a_binding_mode_is_an_error() -> None:
    with pytest.raises(ValueError, match='VolumeBindingMode not set for StorageClass "static"'):
        World(a_class(mode=None), a_claim()).pre_filter(a_pod_with("data"))


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        ([a_volume()], {}),
        ([a_volume(on={"zone": ["zone-a", "zone-c"]})], {"b": NO_REACH}),
        ([a_volume(on={"zone": ["zone-c"]})], {"a": NO_REACH, "b": NO_REACH}),
        ([a_volume(nodeAffinity={"required": {}})], {"a": NO_REACH, "b": NO_REACH}),
        ([], {"a": GONE, "b": GONE}),
    ],
    ids=["anywhere", "one zone", "nowhere", "no terms", "gone"],
)
def test_a_bound_claim_keeps_the_pod_where_its_volume_is(volumes: list[Any], expected: Any) -> None:
    world = World(a_claim(volume="pv"), *volumes)

    assert world.refusals(a_pod_with("data")) == expected


def test_fields_of_a_volume_s_affinity_name_no_node() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["nowhere"]}]
    affinity = {"required": {"nodeSelectorTerms": [{"matchFields": fields}]}}

    assert World(a_claim(volume="pv"), a_volume(nodeAffinity=affinity)).refusals(a_pod_with("data")) == {}


def test_the_first_obstacle_of_bound_claims_is_told_and_those_of_unbound_ones_besides() -> None:
    bound = a_claim("one", volume="far"), a_claim("two", volume="gone")
    world = World(*bound, a_claim("three"), a_class(), a_volume("far", on={"host": ["a"]}, phase="Bound"))

    assert world.refusals(a_pod_with("one", "two", "three")) == {"a": NO_VOLUME + GONE, "b": NO_REACH + NO_VOLUME}


def test_a_volume_of_a_kind_that_a_driver_has_taken_over_is_judged_by_the_driver_s_labels() -> None:
    nodes = {"old": {"topology.kubernetes.io/zone": "z"}, "new": {"topology.gke.io/zone": "z"}, "bare": {}}
    volume = a_volume(on={"topology.kubernetes.io/zone": ["z"]}, gcePersistentDisk={"pdName": "disk"})
    migrated = [a_csi_node(name, "kubernetes.io/gce-pd,x") for name in ("new", "bare")]
    world = World(a_claim(volume="pv"), volume, a_csi_node("old"), *migrated, nodes=nodes)

    assert world.refusals(a_pod_with("data")) == {"bare": NO_REACH}


@pytest.mark.parametrize(
    ("volume", "fits"),
    [
        (a_volume(size="2Gi"), True),
        (a_volume(size="1023Mi"), False),
        (a_volume(class_name=MADE), False),
        (a_volume(accessModes=["ReadOnlyMany"]), False),
        (a_volume(accessModes=["ReadOnlyMany", "ReadWriteOnce"]), True),
        (a_volume(volumeMode="Block"), False),
        (a_volume(volumeAttributesClassName="gold"), False),
        (a_volume(phase="Released"), False),
        (a_volume(deletionTimestamp="2026-01-01T00:00:00Z"), False),
        (a_volume(claim={"namespace": "default", "name": "other"}), False),
        (a_volume(claim={"namespace": "default", "name": "data"}, accessModes=[], phase="Released"), True),
        (a_volume(claim={"namespace": "default", "name": "data", "uid": "uid-data"}), True),
        (a_volume(claim={"namespace": "default", "name": "data", "uid": "older"}), False),
        (a_volume(claim={"namespace": "default", "name": "data"}, size="1Mi"), False),
        (a_volume(claim={"namespace": "default", "name": "data"}, class_name=MADE), False),
    ],
)
def test_only_volumes_of_use_are_found(volume: Any, fits: bool) -> None:
    refusals = World(a_class(), a_claim(), volume).refusals(a_pod_with("data"))

    assert refusals == ({} if fits else {"a": NO_VOLUME, "b": NO_VOLUME})


def test_a_wrong_selector_is_an_error() -> None:
    claim = a_claim(selector={"matchExpressions": [{"key": "tier", "operator": "Like"}]})
    world = World(a_class(), claim)

    with pytest.raises(ValueError, match="error creating internal label selector for claim: default/data: "):
        world.refusals(a_pod_with("data"))


def bindings(world: World, pod: fw.Pod, node: str) -> dict[str, str]:
    """Claim → volume, as decided for a node."""
    state = world.reserve(pod, node)
    found = state.read("VolumeBinding", object)
    return {claim.name: volume.name for claim, volume in found.assumed.static_bindings}  # type: ignore[attr-defined]


def test_the_smallest_volume_that_the_node_reaches_is_taken() -> None:
    volumes = [
        a_volume("small-b", "2Gi", on={"host": ["b"]}),
        a_volume("large", "9Gi"),
        a_volume("both", "5Gi", on={"zone": ["zone-a"], "host": ["a", "x"]}),
        a_volume("medium", "6Gi", on={"host": ["a"]}),
    ]

    assert bindings(World(a_class(), a_claim(), *volumes), a_pod_with("data"), "a") == {"data": "both"}
    assert bindings(World(a_class(), a_claim(), *volumes), a_pod_with("data"), "b") == {"data": "small-b"}


def test_the_claims_of_a_pod_get_different_volumes_the_smallest_claim_the_smallest() -> None:
    claims = a_claim("large", "4Gi"), a_claim("small", "1Gi"), a_claim("medium", "2Gi")
    volumes = [a_volume(f"v{size}", f"{size}Gi", on={"host": ["a", "b"]}) for size in (1, 4)]
    world = World(a_class(), *claims, *volumes, a_volume("v6", "6Gi"))
    pod = a_pod_with("large", "small", "medium")

    assert bindings(world, pod, "b") == {"small": "v1", "medium": "v4", "large": "v6"}


def test_a_pod_needs_as_many_volumes_as_it_has_claims() -> None:
    world = World(a_class(), a_claim("one"), a_claim("two"), a_volume("v1"), a_volume("v2", on={"host": ["b"]}))

    assert world.refusals(a_pod_with("one", "two")) == {"a": NO_VOLUME}


def test_a_volume_that_is_meant_for_the_claim_wins_over_smaller_ones() -> None:
    meant = a_volume("meant", "9Gi", claim={"namespace": "default", "name": "data"}, on={"host": ["a"]})
    world = World(a_class(), a_claim(), a_volume("small"), meant)

    assert world.refusals(a_pod_with("data")) == {"b": NO_VOLUME}
    assert bindings(world, a_pod_with("data"), "a") == {"data": "meant"}


def test_a_claim_that_two_volumes_use_asks_for_two_volumes_as_in_kube_scheduler() -> None:
    meant = a_volume("meant", claim={"namespace": "default", "name": "data"})
    pod = a_pod_with("data", "data")

    assert World(a_class(), a_claim(), meant).refusals(pod) == {"a": NO_VOLUME, "b": NO_VOLUME}
    assert World(a_class(), a_claim(), meant, a_volume("other", on={"host": ["a"]})).refusals(pod) == {"b": NO_VOLUME}


def test_what_one_pod_took_the_next_does_not_get_unless_it_is_given_back() -> None:
    world = World(a_class(), a_claim("one"), a_claim("two"), a_volume())
    first, second = a_pod_with("one", name="first"), a_pod_with("two", name="second")

    state = world.reserve(first, "a")
    assert world.refusals(second) == {"a": NO_VOLUME, "b": NO_VOLUME}
    assert world.refusals(first) == {}, "it is meant for its claim"

    world.plugin.unreserve(state, first, "a")
    assert world.refusals(second) == {}


def test_a_volume_comes_back_when_the_watch_shows_it_without_the_claim() -> None:
    volume = a_volume()
    world = World(a_class(), a_claim("one"), a_claim("two"), volume)
    world.reserve(a_pod_with("one"), "a")

    world.show(volume)

    assert world.refusals(a_pod_with("two")) == {}


def test_volumes_come_and_go() -> None:
    volume = a_volume()
    world = World(a_class(), a_claim())
    pod = a_pod_with("data")

    assert set(world.refusals(pod)) == {"a", "b"}
    world.put(volume)
    assert world.refusals(pod) == {}
    taken = world.show(volume, spec={"claimRef": {"namespace": "default", "name": "other", "uid": "x"}})
    assert set(world.refusals(pod)) == {"a", "b"}
    world.show(taken, spec={"claimRef": None})
    assert world.refusals(pod) == {}
    world.gone(volume)
    assert set(world.refusals(pod)) == {"a", "b"}


def test_a_claim_whose_volume_is_being_made_for_a_node_can_be_used_there_only() -> None:
    claim = a_claim(class_name=MADE, annotations={"volume.kubernetes.io/selected-node": "b"})

    assert World(a_class(MADE), claim).refusals(a_pod_with("data")) == {"a": NO_VOLUME}


def test_two_pods_with_one_claim_go_to_the_same_node() -> None:
    world = World(a_class(MADE), a_claim(class_name=MADE))

    world.reserve(a_pod_with("data", name="first"), "b")

    assert world.refusals(a_pod_with("data", name="second")) == {"a": NO_VOLUME}


def test_room_comes_and_goes() -> None:
    capacity = room("r", capacity="1Gi", nodeTopology={})
    world = World(a_class(MADE), a_claim(class_name=MADE), a_driver(counts=True), capacity)
    pod = a_pod_with("data")

    assert world.refusals(pod) == {}
    shrunk = world.show(capacity, capacity="1Mi")
    assert set(world.refusals(pod)) == {"a", "b"}
    world.show(shrunk, capacity="2Gi")
    assert world.refusals(pod) == {}
    world.gone(capacity)
    assert set(world.refusals(pod)) == {"a", "b"}


def test_a_negative_time_to_bind_is_wrong() -> None:
    problems: list[str] = []

    assert parse_arguments(VolumeBinding, {"bindTimeoutSeconds": -1}, "args", problems) is None
    assert problems == [
        "args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"
    ]


def test_ten_minutes_are_the_default_of_the_time_to_bind() -> None:
    plugin = parse_arguments(VolumeBinding, {"bindTimeoutSeconds": None}, "args", [])

    assert plugin is not None
    assert plugin.bind_timeout_seconds == 600
