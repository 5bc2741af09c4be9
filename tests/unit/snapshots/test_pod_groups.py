"""Groups of pods in a snapshot: what it keeps of them places pods as the cluster does, also without names."""

import json
from typing import Any

import msgspec
import pytest

from scheduler.simulate.engine import simulate
from scheduler.snapshots.aliases import Aliases
from scheduler.snapshots.kept_fields import KINDS
from scheduler.snapshots.reduction import Reduction
from tests.unit.simulate.test_pod_groups import OURS, PLUGINS, a_group, config
from tests.unit.simulate.what_if.world import Json, a_node, a_pod, cluster_with

BY_KIND = {(kind.name, kind.api_version): kind for kind in KINDS}


def reduced(reduction: Reduction, obj: Json) -> Any:
    whole = {"apiVersion": "v1", **obj}
    whole["metadata"] = {
        "namespace": "default",
        "resourceVersion": "1",
        "uid": obj["metadata"]["name"],
        **obj["metadata"],
    }
    whole["metadata"] |= {} if obj["kind"] != "Node" else {"uid": ""}
    kind = BY_KIND[whole["kind"], whole["apiVersion"]]
    return msgspec.json.decode(reduction.reduced(json.dumps(whole).encode(), kind))


def pods(count: int, **fields: Any) -> list[Json]:
    meta = fields.pop("metadata", {})
    made = [a_pod(f"w-{number}", schedulerName="default-scheduler", **fields) for number in range(count)]
    return [{**each, "metadata": {**each["metadata"], **meta}} for each in made]


OLD = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "training"},
    "spec": {"minMember": 3, "minResources": {"cpu": "3"}, "scheduleTimeoutSeconds": 10},
}
ANNOTATIONS = {"loadmaster.dev/pod-group": "training", "loadmaster.dev/pod-group-min-available": "3"}


@pytest.mark.parametrize("aliases", [None, Aliases()], ids=["with names", "anonymised"])
@pytest.mark.parametrize(("cpu", "state"), [(2, "unschedulable"), (4, "placed")])
@pytest.mark.parametrize(
    ("objects", "settings"),
    [
        ([a_group("training"), *pods(3, schedulingGroup={"podGroupName": "training"})], config()),
        ([OLD, *pods(3, metadata={"labels": {"scheduling.x-k8s.io/pod-group": "training"}})], OURS),
        (pods(3, metadata={"annotations": ANNOTATIONS}), OURS),
    ],
    ids=["kubernetes", "scheduler-plugins", "annotations"],
)
def test_a_group_is_decided_as_in_the_cluster(
    aliases: Aliases | None, cpu: int, state: str, objects: list[Json], settings: Any
) -> None:
    reduction = Reduction(aliases)
    kept = [reduced(reduction, each) for each in (a_node("n1", cpu), *objects)]

    cluster = cluster_with(*kept)
    document = simulate(cluster.nodes, cluster.pods, settings, PLUGINS, cluster.others)

    (group,) = document["groups"]
    assert (group["state"], group["needed"], group["members"]) == (state, 3, 3)


def test_where_a_group_is_to_be_stays() -> None:
    topology: Json = {"schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]}}

    kept = reduced(Reduction(Aliases()), a_group("training", **topology))

    assert kept["spec"]["schedulingConstraints"] == topology["schedulingConstraints"]


@pytest.mark.parametrize("aliases", [None, Aliases()], ids=["with names", "anonymised"])
@pytest.mark.parametrize(
    ("version", "mode"),
    [("v1alpha2", "PodGroup"), ("v1alpha2", "Pod"), ("v1beta1", {"all": {}}), ("v1beta1", {"single": {}})],
)
def test_how_a_group_is_disrupted_stays_in_either_version(aliases: Aliases | None, version: str, mode: Any) -> None:
    group = {**a_group("training", disruptionMode=mode), "apiVersion": f"scheduling.k8s.io/{version}"}

    kept = reduced(Reduction(aliases), group)

    assert kept["spec"]["disruptionMode"] == mode


@pytest.mark.parametrize("mode", [["Pod"], 7, {"all": ["web"], "others": {}}], ids=["a list", "a number", "an object"])
def test_of_how_a_group_is_disrupted_nothing_else_is_kept(mode: Any) -> None:
    kept = reduced(Reduction(), a_group("training", disruptionMode=mode))

    assert kept["spec"].get("disruptionMode", {}) == {}
