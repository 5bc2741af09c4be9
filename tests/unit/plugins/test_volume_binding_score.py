"""VolumeBinding's score: how much of the storage behind a pod's unbound claims would be used."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from plugins.shared.shapes import UtilizationShapePoint
from plugins.volumes.volume_binding import VolumeBinding
from scheduler import framework as fw
from scheduler.framework.arguments import parse_arguments
from scheduler.testing import a_pod
from tests.unit.plugins.claims import MADE, STATIC, World, a_claim, a_class, a_driver, a_pod_with, a_volume, room
from tests.unit.plugins.cluster import every_row

OTHER = "other"
CLASSES = [a_class(MADE), a_class(OTHER), a_class(STATIC), a_driver(counts=True)]


def scores(pod: fw.Pod, *objects: Any, rows: Sequence[int] | None = None, shape: Any = None) -> list[int] | None:
    """The scores of the nodes a and b, or of `rows`."""
    world = World(*CLASSES, *objects)
    if shape is not None:
        world.plugin.shape = shape
    state = fw.CycleState()
    world.pre_filter(pod, state)
    world.plugin.filter_nodes(state, pod, world.table, every_row(world.table))
    asked = every_row(world.table) if rows is None else np.array(rows)
    assert world.plugin.pre_score(state, pod, world.table, asked) is None
    found = world.plugin.score_nodes(state, pod, world.table, asked)
    return None if found is None else found.tolist()


def on(node: str) -> dict[str, Any]:
    return {"nodeTopology": {"matchLabels": {"host": node}}}


def test_the_more_of_a_capacity_is_left_the_better() -> None:
    rooms = [room("r", capacity="10Gi", **on("a")), room("s", capacity="4Gi", **on("b"))]

    assert scores(a_pod_with("data"), a_claim(size="1Gi", class_name=MADE), *rooms) == [90, 75]
    assert scores(a_pod_with("data"), a_claim(size="1Gi", class_name=MADE), *rooms, rows=[1]) == [75]


def test_claims_of_one_class_share_a_capacity() -> None:
    claims = [a_claim(name, size="3Gi", class_name=MADE) for name in ("one", "two")]
    rooms = [room("r", capacity="10Gi", **on("a")), room("s", capacity="4Gi", **on("b"))]

    assert scores(a_pod_with("one", "two"), *claims, *rooms) == [40, 0]


def test_a_node_has_the_mean_of_its_classes() -> None:
    claims = [a_claim("one", size="1Gi", class_name=MADE), a_claim("two", size="1Gi", class_name=OTHER)]
    rooms = [room("r", capacity="10Gi", nodeTopology={}), room("s", OTHER, capacity="3Gi", nodeTopology={})]

    assert scores(a_pod_with("one", "two"), *claims, *rooms) == [79, 79]


def test_of_several_sufficient_capacities_the_first_by_name_counts() -> None:
    rooms = [
        room("a", capacity="512Mi", nodeTopology={}),
        room("c", capacity="10Gi", nodeTopology={}),
        room("b", capacity="2Gi", **on("a")),
    ]

    assert scores(a_pod_with("data"), a_claim(size="1Gi", class_name=MADE), *rooms) == [50, 90]


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([room("r", maximumVolumeSize="2Gi", nodeTopology={})], id="only maximumVolumeSize"),
        pytest.param([a_driver(counts=False), room("r", capacity="2Gi", nodeTopology={})], id="not tracked"),
    ],
)
def test_a_capacity_that_is_not_known_does_not_count(objects: list[Any]) -> None:
    assert scores(a_pod_with("data"), a_claim(size="1Gi", class_name=MADE), *objects) == [0, 0]


def test_existing_volumes_count_by_their_size_and_instead_of_capacities() -> None:
    claims = [a_claim("one", size="1Gi"), a_claim("two", size="3Gi"), a_claim("three", size="1Gi", class_name=MADE)]
    volumes = [a_volume("p", "2Gi"), a_volume("q", "4Gi"), a_volume("r", "10Gi", on={"host": ["b"]})]
    capacity = room("r", capacity="100Gi", nodeTopology={})

    assert scores(a_pod_with("one", "two"), *claims, *volumes) == [34, 34]
    assert scores(a_pod_with("one", "three"), *claims, *volumes, capacity) == [50, 50]
    assert scores(a_pod_with("two"), *claims, a_volume("r", "10Gi", on={"host": ["b"]}), rows=[1]) == [70]


def test_where_nothing_is_bound_the_capacity_counts() -> None:
    claim, there = a_claim(size="1Gi", class_name=MADE), a_volume("p", "2Gi", MADE, on={"host": ["a"]})

    assert scores(a_pod_with("data"), claim, there, room("r", capacity="10Gi", nodeTopology={})) == [50, 90]


def test_a_volume_that_names_the_claim_counts_or_another_where_that_is_taken() -> None:
    claims = [a_claim("one", size="1Gi"), a_claim("two", size="1Gi")]
    meant = a_volume("p", "4Gi", claim={"name": "one", "namespace": "default"})

    assert scores(a_pod_with("one", "two"), *claims, meant, a_volume("q", "2Gi")) == [67, 67]


def test_sizes_beyond_64_bits_are_computed_as_in_go() -> None:
    claim, volume = a_claim(size="200000T"), a_volume("p", "300000T")

    assert scores(a_pod_with("data"), claim, volume) == [95, 95]  # 100 times the request leaves little in 64 bits


def test_bound_claims_make_no_difference() -> None:
    assert scores(a_pod_with("data"), a_claim(volume="p"), a_volume("p")) is None


def test_every_pod_is_scored() -> None:
    plugin = World().plugin

    assert plugin.scores_all
    assert (plugin.concerns_score(a_pod()), plugin.concerns_score(a_pod_with("data"))) == (False, True)


def test_without_pre_filter_pods_with_volumes_fail() -> None:
    world = World()

    with pytest.raises(LookupError, match="not found"):
        world.plugin.pre_score(fw.CycleState(), a_pod_with("data"), world.table, every_row(world.table))


def test_a_shape_maps_what_is_used_to_scores() -> None:
    shape = (UtilizationShapePoint(0, 0), UtilizationShapePoint(20, 10), UtilizationShapePoint(100, 5))
    rooms = [room("r", capacity="10Gi", **on("a")), room("s", capacity="2Gi", **on("b"))]

    assert scores(a_pod_with("data"), a_claim(size="1Gi", class_name=MADE), *rooms, shape=shape) == [50, 82]


def test_the_default_prefers_what_is_empty() -> None:
    empty: tuple[dict[str, Any], ...] = ({}, {"shape": []}, {"shape": None})
    for given in empty:
        plugin = parse_arguments(VolumeBinding, given, "args", [])

        assert plugin is not None
        assert plugin.shape == (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


def test_a_wrong_shape_is_refused() -> None:
    problems: list[str] = []
    shape = [{"utilization": 50, "score": 11}, {"utilization": 50, "score": 0}, {"utilization": 101, "score": 0}]

    assert parse_arguments(VolumeBinding, {"shape": shape}, "args", problems) is None
    assert problems == [
        "args.shape[1].utilization: Invalid value: 50: values must be sorted in increasing order",
        "args.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
        "args.shape[2].utilization: Invalid value: 101: not in valid range [0, 100]",
    ]
