"""How many groups like one fit: each copy is a whole group."""

from typing import Any

import pytest

from scheduler.simulate.what_if.answers import answered, is_short
from scheduler.simulate.what_if.questions import Questions
from scheduler.simulate.what_if.screen import lines_of
from tests.unit.simulate.test_pod_groups import OURS, PLUGINS, a_group, a_job, config, member
from tests.unit.simulate.what_if.world import Json, a_node, a_spec, a_workload, asked, cluster_with, on


def copies(*objects: Json, **questions: Any) -> Json:
    told: Json = asked(*objects, config=config(), **questions)["whatIf"]["copies"]
    return told


def test_as_many_groups_are_counted_as_fit_whole() -> None:
    told = copies(a_node("n1", 4), a_node("n2", 4), a_group(), a_job(3), fill=True)

    assert (told["of"], told["groupSize"], told["placed"]) == ("job/default/j", 3, 2)
    assert sum(told["nodes"].values()) == 6
    assert told["next"]["group"]["text"] == (
        "3 pods are needed at once: 2 of 3 fit; 1 does not: Insufficient cpu (on 2 nodes)"
    )


@pytest.mark.parametrize(("asked_for", "is_too_much"), [(2, False), (3, True)])
def test_a_number_of_groups_fits_or_is_too_much(asked_for: int, is_too_much: bool) -> None:
    document = asked(a_node("n1", 6), a_group(), a_job(3), config=config(), count=asked_for)

    assert document["whatIf"]["copies"]["placed"] == 2
    assert is_short(document) is is_too_much


def test_a_group_that_fits_only_in_part_is_none() -> None:
    told = copies(a_node("n1", 7), a_group(minimum=2), a_job(4), fill=True)

    assert (told["placed"], told["nodes"]) == (1, {"n1": 4})
    assert told["next"]["group"]["text"].startswith("2 pods are needed at once: 3 of 4 get a node; 1 does not:")


def test_the_pods_of_the_cluster_stay_in_the_group_that_they_have() -> None:
    running = [on("n1", f"old-{number}", schedulingGroup={"podGroupName": "g"}) for number in range(3)]

    told = copies(a_node("n1", 9), a_group(), *running, member("m0"), of="pod/m0", fill=True)

    assert (told["groupSize"], told["placed"]) == (4, 1)


def test_a_gang_has_as_many_pods_as_it_needs() -> None:
    told = copies(a_node("n1", 7), a_group(), member("m0"), fill=True)

    assert (told["groupSize"], told["placed"], told["nodes"]) == (3, 2, {"n1": 6})


SIZED: Json = {"loadmaster.dev/pod-group": "g", "loadmaster.dev/pod-group-min-available": "3"}
OLD: Json = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 3},
}


@pytest.mark.parametrize(
    ("groups", "metadata"),
    [
        pytest.param([OLD], {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, id="scheduler-plugins"),
        pytest.param([], {"annotations": SIZED}, id="annotations"),
        pytest.param([], {"annotations": {"loadmaster.dev/gang": "owner"}}, id="a workload"),
    ],
)
def test_groups_of_others_are_copied_too(groups: list[Json], metadata: Json) -> None:
    job = a_workload("Job", "j", a_spec(), "batch/v1", parallelism=3)
    job["spec"]["template"]["metadata"] = metadata

    cluster = cluster_with(a_node("n1", 7), *groups, job)
    told = answered(cluster, Questions(fill=True), OURS, PLUGINS)["whatIf"]["copies"]

    assert (told["groupSize"], told["placed"], told["nodes"]) == (3, 2, {"n1": 6})


def test_it_is_said_that_each_copy_is_a_group() -> None:
    document = asked(a_node("n1", 4), a_group(), a_job(3), config=config(), fill=True)

    lines = list(lines_of(document["whatIf"]))

    assert lines[1] == "1 copy of job/default/j fit, each a group of 3 pods"
    assert lines[2].split() == ["NODE", "PODS"]
    assert any(line.startswith("the next one, default/g-2: 3 pods are needed at once: 1 of 3 fits;") for line in lines)
