"""Our pod group cycle against recorded verdicts of kube-scheduler's. `make conformance` compares many more."""

import pytest

from tests.conformance import groups_ours
from tests.conformance.edits import edited_files, edits_of
from tests.conformance.groups import GROUPS, Json, differences, outcome
from tests.conformance.recorded import read_cases
from tests.conformance.upstream_tables import find_sources

RECORDED = {each["case"]["name"]: each for each in read_cases(GROUPS)}


@pytest.mark.parametrize("recorded", [pytest.param(each, id=name) for name, each in RECORDED.items()])
def test_what_becomes_of_a_group_is_what_kube_scheduler_makes_of_it(recorded: Json) -> None:
    found = differences(recorded["expected"], groups_ours.judge(recorded["case"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found)


def test_the_recorded_cases_show_every_outcome() -> None:
    outcomes = {outcome(group) for each in RECORDED.values() for group in each["expected"].get("groups", ())}

    assert outcomes == {"gated", "not decided", "preempting", "placed", "placed in part", "failed", "rejected"}


def test_every_edit_finds_its_place_in_kube_scheduler() -> None:
    sources = find_sources()
    if sources is None:
        pytest.skip("kube-scheduler's sources are not in Go's module cache")

    edits = edits_of("groups")

    assert edited_files(sources.parents[1], edits).keys() == edits.keys()
