"""Which changes wake a pod that VolumeBinding refused."""

from typing import Any

import pytest

from scheduler import framework as fw
from scheduler.testing import a_node
from tests.unit.plugins.claims import MADE, World, a_claim, a_class, a_csi_node, a_driver, a_pod_with, a_volume, room
from tests.unit.plugins.hints import NODE_ADDED, NODE_LABELLED, NODE_TAINTED, wakes

POD = a_pod_with("data", ephemeral=True, csi={"driver": "inline.example.com"})
TOPOLOGY = {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}


def an_event(resource: str, old: Any) -> fw.ClusterEvent:
    return fw.ClusterEvent(resource, fw.Action.ADD if old is None else fw.Action.UPDATE_OTHER)


@pytest.mark.parametrize(
    ("resource", "old", "new", "woken"),
    [
        (fw.STORAGE_CLASS, None, a_class("any"), True),
        (fw.STORAGE_CLASS, a_class(), a_class(), False),
        (fw.STORAGE_CLASS, a_class(), a_class(allowedTopologies=[]), False),
        (fw.STORAGE_CLASS, a_class(), a_class(allowedTopologies=[TOPOLOGY]), True),
        (fw.PERSISTENT_VOLUME_CLAIM, None, a_claim(), True),
        (fw.PERSISTENT_VOLUME_CLAIM, a_claim(), a_claim(), True),
        (fw.PERSISTENT_VOLUME_CLAIM, None, a_claim("web-own"), True),
        (fw.PERSISTENT_VOLUME_CLAIM, None, a_claim("other"), False),
        (fw.PERSISTENT_VOLUME, None, a_volume(), True),
        (fw.PERSISTENT_VOLUME, a_volume(), a_volume(), True),
        (fw.CSI_NODE, None, a_csi_node("n"), True),
        (fw.CSI_NODE, a_csi_node("n"), a_csi_node("n"), False),
        (fw.CSI_NODE, a_csi_node("n"), a_csi_node("n", "kubernetes.io/gce-pd"), True),
        (fw.CSI_STORAGE_CAPACITY, None, room("r"), True),
        (fw.CSI_STORAGE_CAPACITY, room("r"), room("r", capacity="1"), True),
        (fw.CSI_STORAGE_CAPACITY, room("r", capacity="1Gi"), room("r", capacity="2Gi"), True),
        (fw.CSI_STORAGE_CAPACITY, room("r", capacity="2Gi"), room("r", capacity="2048Mi"), False),
        (fw.CSI_STORAGE_CAPACITY, room("r", capacity="2Gi"), room("r", capacity="3Gi", maximumVolumeSize="1Gi"), False),
        (fw.CSI_STORAGE_CAPACITY, room("r", capacity="2Gi"), room("r", MADE), False),
    ],
)
def test_a_change_wakes_the_pods_that_it_may_help(resource: str, old: Any, new: Any, woken: bool) -> None:
    assert wakes(World().plugin, POD, an_event(resource, old), old, new) is woken


@pytest.mark.parametrize(
    ("name", "before", "after", "woken"),
    [
        ("inline.example.com", True, False, True),
        ("inline.example.com", True, None, True),
        ("inline.example.com", True, True, False),
        ("inline.example.com", None, False, False),
        ("other.example.com", True, False, False),
    ],
)
def test_a_driver_that_keeps_account_no_longer_wakes_pods_with_its_own_volumes(
    name: str, before: bool | None, after: bool | None, woken: bool
) -> None:
    old, new = a_driver(counts=before, name=name), a_driver(counts=after, name=name)

    assert wakes(World().plugin, POD, an_event(fw.CSI_DRIVER, old), old, new) is woken


def test_nodes_wake_pods_when_they_come_or_get_other_labels() -> None:
    events = [each.event for each in World().plugin.events_to_register() if each.event.resource == fw.NODE]

    assert wakes(World().plugin, POD, NODE_ADDED, None, a_node("n"))
    assert wakes(World().plugin, POD, NODE_LABELLED, a_node("n"), a_node("n", labels={"zone": "a"}))
    assert not any(event.matches(NODE_TAINTED) for event in events)


@pytest.mark.parametrize(
    ("after", "name", "woken"),
    [
        (False, "disks.example.com", True),
        (None, "disks.example.com", True),
        (True, "disks.example.com", False),
        (False, "other.example.com", False),
    ],
)
def test_a_driver_that_keeps_account_no_longer_wakes_pods_whose_claims_it_serves(
    after: bool | None, name: str, woken: bool
) -> None:
    plugin = World(a_class(MADE), a_claim("data", class_name=MADE)).plugin
    old, new = a_driver(counts=True, name=name), None if after is None else a_driver(counts=after, name=name)
    event = fw.ClusterEvent(fw.CSI_DRIVER, fw.Action.DELETE) if new is None else an_event(fw.CSI_DRIVER, old)

    assert wakes(plugin, a_pod_with("data"), event, old, new) is woken
    assert not wakes(plugin, a_pod_with("missing"), event, old, new)


def test_a_deleted_csi_node_wakes_pods_if_its_drivers_had_taken_over_volumes() -> None:
    gone = fw.ClusterEvent(fw.CSI_NODE, fw.Action.DELETE)

    assert wakes(World().plugin, POD, gone, a_csi_node("n", "kubernetes.io/gce-pd"), None)
    assert not wakes(World().plugin, POD, gone, a_csi_node("n"), None)
