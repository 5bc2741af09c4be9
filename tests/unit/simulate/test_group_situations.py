"""Situations of groups that were reported in public, as a simulation decides them."""

from typing import Any

import pytest

import plugins
from plugins.contrib import CONTRIB
from scheduler.simulate.engine import adopted, simulate
from tests.fakes.config import config_with
from tests.unit.simulate.what_if.world import (
    A_DEVICE,
    DEVICES,
    Json,
    a_node,
    a_pod,
    a_slice,
    an_object,
    cluster_with,
    on,
    placed,
)

PLUGINS = {**plugins.IN_TREE, **CONTRIB}
BLOCK, RACK, HOST = "example.com/block", "example.com/rack", "kubernetes.io/hostname"
CONFIG = config_with(PLUGINS, "Coscheduling", loadmaster={"topologyLevels": [BLOCK, RACK, HOST]})
LEAVING = {"deletionTimestamp": "2026-03-01T10:10:00Z"}


def group(minimum: int) -> Json:
    return an_object("PodGroup", "scheduling.x-k8s.io/v1alpha1", "g", spec={"minMember": minimum})


def node(name: str, rack: str = "", **fields: Any) -> Json:
    block = f"block of {rack}"
    return a_node(name, labels={RACK: rack, BLOCK: block} if rack else {}, **fields)


def member(pod: Json, minimum: int = 0, **annotations: str) -> Json:
    """With a label that names the group; with a minimum, with annotations instead."""
    metadata = pod["metadata"]
    own = {"pod-group": "g", "pod-group-min-available": str(minimum)} if minimum else {}
    spelled = {name.replace("_", "-"): value for name, value in annotations.items()}
    metadata["annotations"] = {
        (name if "/" in name else f"loadmaster.dev/{name}"): value for name, value in {**own, **spelled}.items()
    }
    if not minimum:
        metadata["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    return pod


def kueue(pod: Json, **wish: str) -> Json:
    """A member whose set of pods has a wish of its own."""
    ((name, label),) = wish.items()
    return member(pod, 0, **{f"kueue.x-k8s.io/podset-{name}-topology": label})


SITUATIONS: dict[str, tuple[list[Json], dict[str, str | None]]] = {
    "a job that is deleted and made again under its name starts as a whole or not at all": (
        [
            node("n0", cpu=2),
            node("n1", cpu=3),
            group(3),
            *(member(on("n0", f"old-{i}", metadata=LEAVING)) for i in range(2)),
            member(on("n1", "old-2", metadata=LEAVING)),
            *(member(a_pod(f"new-{i}")) for i in range(3)),
        ],
        {"new-0": None, "new-1": None, "new-2": None},
    ),
    "a gang leaves the rack that has died": (
        [
            node("n1", "r0", cpu=5),
            node("n2", "r1", cpu=5),
            node("n3", "r1", cpu=5),
            member(on("n1", "old", cpu=4, metadata=LEAVING), 2, required_topology=BLOCK),
            *(member(a_pod(f"new-{i}", 4), 2, required_topology=BLOCK) for i in range(2)),
        ],
        {"new-0": "n2", "new-1": "n3"},
    ),
    "Kueue's wishes for a set of pods may differ": (
        [
            node("n0", "r0", cpu=4),
            group(2),
            kueue(a_pod("launcher"), required=HOST),
            kueue(a_pod("worker"), preferred=BLOCK),
        ],
        {"launcher": "n0", "worker": "n0"},
    ),
    "a replacement says another minimum than the pods that run": (
        [node("n1"), member(on("n1", "old-0"), 2), member(on("n1", "old-1"), 2), member(a_pod("new"), 3)],
        {"new": "n1"},
    ),
    "pods without a node have to agree": (
        [node("n1"), *(member(a_pod(f"p-{i}"), 2 + i) for i in range(3))],
        {"p-0": None, "p-1": None, "p-2": None},
    ),
    "a pod behind a scheduling gate keeps its whole group waiting": (
        [node("n1"), member(a_pod("a"), 1), member(a_pod("b", schedulingGates=[{"name": "wait"}]), 1)],
        {"a": None, "b": None},
    ),
    "a pod that has succeeded counts as placed": (
        [
            node("n1"),
            member(on("n1", "ended", status={"phase": "Succeeded"}), 3),
            member(on("n1", "running"), 3),
            member(a_pod("new"), 3),
        ],
        {"new": "n1"},
    ),
    "pods that share a claim take over its devices, where these can be used": (
        [
            node("n1", cpu=1),
            node("n2", cpu=4),
            DEVICES,
            a_slice("n2"),
            an_object("ResourceClaim", "resource.k8s.io/v1", "shared", spec=A_DEVICE),
            *(
                member(a_pod(f"p-{i}", resourceClaims=[{"name": "s", "resourceClaimName": "shared"}]), 2)
                for i in range(2)
            ),
        ],
        {"p-0": "n2", "p-1": "n2"},
    ),
    "a narrower preferred level does not lead out of the required one": (
        [
            node("plain", cpu=2),
            node("racked", "r1", cpu=4),
            *(member(a_pod(f"p-{i}"), 2, required_topology=RACK, preferred_topology=HOST) for i in range(2)),
        ],
        {"p-0": "racked", "p-1": "racked"},
    ),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation_ends_as_it_should(name: str) -> None:
    objects, expected = SITUATIONS[name]
    cluster = cluster_with(*objects)

    document = simulate(cluster.nodes, tuple(adopted(cluster.pods, CONFIG)), CONFIG, PLUGINS, cluster.others)

    assert {name.removeprefix("default/"): node for name, node in placed(document).items()} == expected
