"""Groups of pods in a simulation: decided as a running scheduler decides them, and reported."""

from typing import Any

import plugins
from plugins.contrib import CONTRIB
from scheduler.config.feature_gates import read_gates
from scheduler.config.types import Config
from scheduler.simulate.engine import adopted, simulate
from scheduler.simulate.output import as_text
from tests.fakes.config import config_with
from tests.unit.simulate.what_if.world import Json, a_node, a_pod, a_spec, a_workload, cluster_with, on, placed

PLUGINS = {**plugins.IN_TREE, **CONTRIB}
OURS = config_with(PLUGINS, "Coscheduling")


GATES = "GenericWorkload=true,GangScheduling=true"


def config(gates: str = GATES) -> Config:
    read, _ = read_gates([gates])
    return config_with(plugins.IN_TREE, gates=read)


def a_group(name: str = "g", minimum: int = 3, **spec: Any) -> Json:
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {**policy, **spec},
    }


def member(name: str, group: str = "g", **fields: Any) -> Json:
    return a_pod(name, schedulingGroup={"podGroupName": group}, **fields)


def a_job(pods: int, group: str = "g", **fields: Any) -> Json:
    spec = a_spec(schedulingGroup={"podGroupName": group}, restartPolicy="Never")
    return a_workload("Job", "j", spec, "batch/v1", parallelism=pods, completions=pods, **fields)


def simulated(*objects: Json, gates: str = GATES, **options: Any) -> Json:
    cluster = cluster_with(*objects)
    return simulate(cluster.nodes, cluster.pods, config(gates), plugins.IN_TREE, cluster.others, **options)


def groups(document: Json) -> list[tuple[str, str, str]]:
    return [(each["name"], each["state"], each["text"]) for each in document["groups"]]


def test_a_gang_that_does_not_fit_takes_no_room_from_others() -> None:
    document = simulated(a_node("n1", 2), a_group(), *(member(f"m{i}") for i in range(3)), a_pod("other", 2))

    assert placed(document) == {"default/m0": None, "default/m1": None, "default/m2": None, "default/other": "n1"}
    expected = "3 pods are needed at once: 2 of 3 fit; 1 does not: Insufficient cpu (on 1 node)"
    assert groups(document) == [("g", "unschedulable", expected)]


def test_of_two_gangs_that_want_the_same_room_one_gets_all_of_it() -> None:
    both = [member(f"{name}{i}", name) for i in range(3) for name in ("a", "b")]

    document = simulated(a_node("n1", 4), a_group("a"), a_group("b"), *both)

    assert [state for _, state, _ in groups(document)] == ["placed", "unschedulable"]
    assert sum(node is not None for node in placed(document).values()) == 3


def test_a_gang_goes_before_a_pod_that_came_after_its_first_one() -> None:
    document = simulated(a_node("n1", 2), a_group(minimum=2), member("m0"), a_pod("lone"), member("m1"))

    assert placed(document) == {"default/m0": "n1", "default/lone": None, "default/m1": "n1"}


def test_a_gang_with_too_few_pods_is_not_tried_and_says_how_many_are_missing() -> None:
    document = simulated(a_node("n1"), a_group(), member("m0"), member("m1"))

    assert groups(document) == [("g", "incomplete", "3 pods are needed at once, and there are 2")]
    assert {pod["gated"] for pod in document["pods"]} == {"GangScheduling"}


def test_a_group_that_no_file_has_is_named() -> None:
    document = simulated(a_node("n1"), member("m0"))

    assert groups(document) == [("g", "missing", "1 pod waits for it, and it does not exist")]


def test_members_that_come_beyond_the_minimum_are_placed_as_they_fit() -> None:
    document = simulated(a_node("n1", 4), a_group(minimum=3), a_job(5))

    expected = "3 pods are needed at once: 4 of 5 get a node; 1 does not: Insufficient cpu (on 1 node)"
    assert groups(document) == [("g", "partly placed", expected)]


IMPORTANT = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "i"}, "value": 9}


def test_a_new_group_has_the_priority_of_its_class_and_preempts_by_it() -> None:
    document = simulated(
        *(a_node("n1", 2), on("n1", "old", cpu=2), IMPORTANT, a_group(minimum=2, priorityClassName="i")),
        *(member(f"m{number}", priorityClassName="i") for number in range(2)),
        gates=f"{GATES},WorkloadAwarePreemption=true",
    )

    (group,) = document["groups"]
    assert (group["priority"], group["state"], group["victims"]) == (9, "waiting for preemption", ("default/old",))
    assert group["text"].endswith("; it waits until 1 pod is evicted for it")


def test_a_tree_of_groups_has_the_priority_of_its_class_and_preempts_by_it() -> None:
    tree = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": "tree"},
        "spec": {"schedulingPolicy": {"gang": {"minGroupCount": 2}}, "priorityClassName": "i"},
    }

    document = simulated(
        *(a_node("n1", 2), on("n1", "old", cpu=2), IMPORTANT, tree),
        *(a_group(name, 1, parentCompositePodGroupName="tree") for name in ("a", "b")),
        *(member(f"{name}0", name, priorityClassName="i") for name in ("a", "b")),
        gates="GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true",
    )

    shown = [(group["priority"], group["state"], group["victims"]) for group in document["groups"]]
    assert shown == [(9, "waiting for preemption", ("default/old",))] * 2


def test_without_the_gates_each_pod_is_by_itself() -> None:
    document = simulated(a_node("n1", 2), a_job(3), gates="")

    assert "groups" not in document
    assert sum(node is not None for node in placed(document).values()) == 2


def test_groups_that_fit_are_placed_as_a_whole_and_have_a_table_below_that_of_the_pods() -> None:
    document = simulated(a_node("n1", 2), a_node("n2", 2), a_group(), a_job(3))

    assert all(placed(document).values())
    assert groups(document) == [("g", "placed", "3 pods are needed at once: 3 of 3 get a node")]
    table = as_text(document, explain=False).split("\n\n")[2].splitlines()
    assert table[0].split() == ["GROUP", "PODS", "FITS", "MESSAGE"]
    assert table[1].split(maxsplit=4)[:4] == ["default/g", "3", "of", "3"]


def test_the_verdicts_of_nodes_are_those_before_the_whole_group() -> None:
    document = simulated(a_node("n1", 2), a_group(minimum=2), member("m0"), member("m1"), explain=True)

    assert [pod["nodes"]["n1"]["code"] for pod in document["pods"]] == ["Success", "Success"]


def test_an_annotated_gang_is_placed_although_its_first_pods_waited_for_the_last() -> None:
    annotations = {"loadmaster.dev/pod-group": "g", "loadmaster.dev/pod-group-min-available": "3"}
    pods = [a_pod(f"m{number}") for number in range(3)]
    for pod in pods:
        pod["metadata"]["annotations"] = annotations
    cluster = cluster_with(a_node("n1", 4), *pods)

    document = simulate(cluster.nodes, tuple(adopted(cluster.pods, OURS)), OURS, PLUGINS, cluster.others)

    assert set(placed(document).values()) == {"n1"}
    assert not [pod for pod in document["pods"] if "gated" in pod]
    assert groups(document) == [("g", "placed", "3 pods are needed at once: 3 of 3 get a node")]
