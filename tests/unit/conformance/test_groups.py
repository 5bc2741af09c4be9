"""Our pod group cycle against recorded verdicts of kube-scheduler's. `make conformance` compares many more."""

import pytest

from tests.conformance import groups_ours
from tests.conformance.edits import edited_files, edits_of
from tests.conformance.group_examples import EXAMPLES, Example
from tests.conformance.groups import GROUPS, Json, differences, outcome
from tests.conformance.recorded import read_cases
from tests.conformance.upstream_tables import find_sources

RECORDED = {each["case"]["name"]: each for each in read_cases(GROUPS)}


@pytest.mark.parametrize("recorded", [pytest.param(each, id=name) for name, each in RECORDED.items()])
def test_what_becomes_of_a_group_is_what_kube_scheduler_makes_of_it(recorded: Json) -> None:
    found = differences(recorded["expected"], groups_ours.judge(recorded["case"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found)


@pytest.mark.parametrize("example", [pytest.param(each, id=each.name) for each in EXAMPLES])
def test_the_oracle_says_what_is_worked_out_by_hand(example: Example) -> None:
    recorded = RECORDED[example.name]
    (group,) = [each for each in recorded["expected"]["groups"] if each["name"] == "job"]

    assert recorded["case"] == example.case, "run python -m tests.conformance.record groups"
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


def test_every_edit_finds_its_place_in_kube_scheduler() -> None:
    sources = find_sources()
    if sources is None:
        pytest.skip("kube-scheduler's sources are not in Go's module cache")

    edits = edits_of("groups")

    assert edited_files(sources.parents[1], edits).keys() == edits.keys()
