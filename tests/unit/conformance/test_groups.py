"""Our pod group cycle against recorded verdicts of kube-scheduler's. `make conformance` compares many more."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.conformance import groups_ours
from tests.conformance.edits import edit, edited_files, edits_of
from tests.conformance.generators import trees
from tests.conformance.generators.groups import GATES, generate
from tests.conformance.group_examples import EXAMPLES, Example
from tests.conformance.groups import GROUPS, Json, differences, outcome
from tests.conformance.links import link_all
from tests.conformance.recorded import read_cases
from tests.conformance.upstream_tables import find_sources
from tests.controlplane.toolchain import BuildError

RECORDED = {each["case"]["name"]: each for each in read_cases(GROUPS)}


@pytest.mark.parametrize("recorded", [pytest.param(each, id=name) for name, each in RECORDED.items()])
def test_what_becomes_of_a_group_is_what_kube_scheduler_makes_of_it(recorded: Json) -> None:
    found = differences(recorded["expected"], groups_ours.judge(recorded["case"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found)


@pytest.mark.parametrize("example", [pytest.param(each, id=each.name) for each in EXAMPLES])
def test_the_oracle_says_what_is_worked_out_by_hand(example: Example) -> None:
    recorded = RECORDED[example.name]
    (group,) = [each for each in recorded["expected"]["groups"] if each["name"] == "job"]

    assert recorded["case"] == example.case, "run python -m tests.conformance.record_groups"
    assert {member["name"]: member.get("node") or member["message"] for member in group["members"]} == example.members
    assert (group["code"], group["message"]) == (example.code, example.message)
    assert group["gated"] == example.gated
    assert group["victims"] == list(example.victims)
    assert group["waitingOnPreemption"] == example.waiting
    assert group["placement"] == example.placement
    assert {name: part["message"] for name, part in group.get("parts", {}).items()} == example.parts
    nominated = {each["name"]: each["nominatedNode"] for each in group["members"] if each["nominatedNode"]}
    assert nominated == example.nominated


def test_a_placed_group_has_a_condition_that_says_so() -> None:
    (group,) = RECORDED["a gang that fits is placed"]["expected"]["groups"]

    assert group["condition"] == {"status": "True", "reason": "Scheduled", "message": ""}


def test_the_recorded_cases_show_every_outcome() -> None:
    outcomes = {outcome(group) for each in RECORDED.values() for group in each["expected"].get("groups", ())}

    assert outcomes == {"gated", "not decided", "preempting", "placed", "placed in part", "failed", "rejected"}


def test_an_edit_is_made() -> None:
    assert edit("chance", [("chance", "name")], "a.go") == "name"


@pytest.mark.parametrize("text", ["", "chance chance"])
def test_an_edit_whose_place_is_not_there_once_fails(text: str) -> None:
    with pytest.raises(BuildError, match=r"a\.go has [02] times what is to be edited once: 'chance'"):
        edit(text, [("chance", "name")], "a.go")


def test_every_edit_finds_its_place_in_kube_scheduler() -> None:
    sources = find_sources()
    if sources is None:
        pytest.skip("kube-scheduler's sources are not in Go's module cache")

    edits = edits_of("groups")

    assert edited_files(sources.parents[1], edits).keys() == edits.keys()


def test_links_to_a_folder_leave_out_what_is_changed(tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "a" / "b").mkdir(parents=True)
    for name in ("a/b/x", "a/b/y", "a/z"):
        (there / name).write_text(name)

    link_all(there, tmp_path / "at", {"a/b/x": "other", "a/b/new": "more"})

    assert {path.name: path.read_text() for path in (tmp_path / "at" / "a" / "b").iterdir()} == {
        "x": "other",
        "y": "a/b/y",
        "new": "more",
    }
    assert (tmp_path / "at" / "a" / "z").is_symlink()
    assert (there / "a" / "b" / "x").read_text() == "a/b/x"


def test_what_differs_is_told_by_group_and_member() -> None:
    recorded = RECORDED["a gang that fits is placed"]["expected"]
    (group,) = recorded["groups"]
    elsewhere = [member | {"node": "n9"} for member in group["members"]]
    actual = {"groups": [group | {"members": elsewhere, "waitingOnPreemption": True}]}

    assert [each.where for each in differences(recorded, actual)] == [
        "default/job waitingOnPreemption",
        "default/job m0: node",
        "default/job m1: node",
    ]


def test_a_group_that_is_missing_is_a_difference() -> None:
    assert differences(RECORDED["a gang that fits is placed"]["expected"], {"groups": []})


def test_a_crash_is_a_difference() -> None:
    recorded = RECORDED["a gang that fits is placed"]["expected"]

    assert differences(recorded, {"error": "ValueError: lost count", "groups": []})


def test_a_seed_is_always_the_same_cluster() -> None:
    assert generate(3) == generate(3)
    assert generate(3) != generate(4)


def test_trees_have_two_to_four_levels_and_broken_ones_are_among_them() -> None:
    cases = [trees.generate(seed) for seed in range(300)]

    assert {tuple(case["gates"]) for case in cases} == {gates for gates, _ in trees.GATES}
    assert {depth for case in cases for depth in depths(case["objects"])} == {2, 3, 4, "cycle", "no parent"}


def depths(objects: Sequence[Json]) -> Iterator[int | str]:
    """Yield how many levels there are from each PodGroup of a tree up, or why nobody can say."""
    parents = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"].get("parentCompositePodGroupName")
        for each in of_kind(objects, "CompositePodGroup")
    }
    for each in of_kind(objects, "PodGroup"):
        levels, parent = 1, each["spec"].get("parentCompositePodGroupName")
        while parent and levels <= len(parents) and (each["metadata"]["namespace"], parent) in parents:
            levels, parent = levels + 1, parents[each["metadata"]["namespace"], parent]
        if levels > 1 or parent:
            yield levels if not parent else "cycle" if levels > len(parents) else "no parent"


def test_clusters_are_small_and_all_sets_of_gates_are_drawn() -> None:
    cases = [generate(seed) for seed in range(300)]

    assert {tuple(case["gates"]) for case in cases} == {gates for gates, _ in GATES}
    assert max(len(list(of_kind(case["objects"], "Node"))) for case in cases) == 12
    assert max(len(list(waiting(case, "job-0"))) for case in cases) == 10


def of_kind(objects: Sequence[Json], kind: str) -> Iterator[Json]:
    return (each for each in objects if each["kind"] == kind)


def waiting(case: Json, group: str) -> Iterator[Json]:
    for each in of_kind(case["objects"], "Pod"):
        spec = each["spec"]
        if spec.get("schedulingGroup", {}).get("podGroupName") == group and "nodeName" not in spec:
            yield each
