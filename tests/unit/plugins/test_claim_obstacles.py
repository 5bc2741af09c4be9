"""What is told of claims, of volumes and of devices, to whoever asks why a pod is pending."""

from collections.abc import Sequence
from typing import Any

import pytest

from plugins.dynamic_resources.plugin import DynamicResources
from plugins.volumes.volume_binding import UNBOUND_IMMEDIATE
from scheduler import framework as fw
from scheduler.api.storage.volumes import SELECTED_NODE
from scheduler.testing import a_node, started
from tests.unit.plugins import devices
from tests.unit.plugins.claims import MADE, World, a_claim, a_class, a_pod_with, a_volume
from tests.unit.plugins.cluster import a_cluster


def facts(obstacles: Sequence[fw.Obstacle]) -> list[str]:
    return [each.fact for each in obstacles]


def on(world: World, pod: fw.Pod, node: str) -> list[str]:
    state = fw.CycleState()
    assert world.pre_filter(pod, state) is None
    row = world.table.row_of(node)
    assert row is not None
    return facts(world.plugin.obstacles(state, pod, world.table.info(row)))


def test_each_claim_is_told_that_cannot_be_used_on_the_node() -> None:
    bound = a_claim("one", volume="far"), a_claim("two", volume="gone")
    world = World(*bound, a_claim("three"), a_class(), a_volume("far", on={"host": ["a"]}, phase="Bound"))
    pod = a_pod_with("one", "two", "three")
    others = [
        "claim two is bound to the volume gone, which does not exist",
        "no volume of class static for claim three, and none can be made for the node",
    ]

    assert on(world, pod, "b") == ["volume far of claim one can be reached from nodes with host In [a] only", *others]
    assert on(world, pod, "a") == others


def test_a_volume_on_its_way_to_another_node_is_told() -> None:
    claim = a_claim(class_name=MADE, annotations={SELECTED_NODE: "a"})
    world = World(claim, a_class(MADE, provisioner="disks.example.com"))

    assert on(world, a_pod_with("data"), "b") == ["claim data gets a volume for the node a"]


@pytest.mark.parametrize(
    ("claim", "fact"),
    [
        (a_claim(class_name="gone"), "claim data of class gone is not bound"),
        (a_claim(class_name=None), "claim data is not bound, and it has no class that would make a volume for it"),
        (a_claim(volumeName="pv"), "claim data is not bound to its volume pv yet"),
    ],
)
def test_a_claim_that_nobody_has_bound_is_told_with_its_class(claim: Any, fact: str) -> None:
    world, pod = World(a_class(), claim), a_pod_with("data")

    assert facts(world.plugin.obstacles_anywhere(fw.CycleState(), pod, UNBOUND_IMMEDIATE)) == [fact]
    assert world.plugin.obstacles_anywhere(fw.CycleState(), pod, fw.unresolvable("another reason")) == ()


@pytest.mark.parametrize(
    ("claim", "fact"),
    [
        (devices.a_claim("mine", devices.a_request()), "too few free devices for ResourceClaim mine (class any)"),
        (
            devices.a_claim("mine", devices.a_request(), status=devices.allocated("n1/d0", node="n1")),
            "ResourceClaim mine has devices that cannot be used on the node",
        ),
    ],
    ids=["none", "elsewhere"],
)
def test_a_resource_claim_is_told_with_its_class(claim: Any, fact: str) -> None:
    nodes = a_cluster(a_node("n1"), a_node("n2"))
    handle, _, _ = devices.a_world(claim, devices.a_class("any"))
    plugin, state, pod = started(DynamicResources(), handle), fw.CycleState(), devices.claiming("p", "mine")
    assert plugin.pre_filter(state, pod, nodes) is None
    row = nodes.row_of("n2")
    assert row is not None

    assert facts(plugin.obstacles(state, pod, nodes.info(row))) == [fact]
