"""Loadmaster's queueing hints against recorded answers of kube-scheduler's. `make conformance` asks many more."""

import pytest

from tests.conformance.hints import HINTS, differences, judge
from tests.conformance.recorded import Json, read_cases

RECORDED = list(read_cases(HINTS))


@pytest.mark.parametrize("recorded", [pytest.param(each, id=each["case"]["name"]) for each in RECORDED])
def test_an_event_means_what_it_means_to_kube_scheduler(recorded: Json) -> None:
    found = differences(recorded["case"], recorded["expected"], judge(recorded["case"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found)


def test_a_wrong_answer_is_a_difference() -> None:
    recorded = next(each for each in RECORDED if "NodeResourcesFit" in each["expected"]["answers"][0]["hints"])
    actual = judge(recorded["case"])
    actual["answers"][0]["hints"]["NodeResourcesFit"] = {"0/0": "maybe"}

    assert [found.where for found in differences(recorded["case"], recorded["expected"], actual)] == [
        "[0] NodeResourcesFit"
    ]


def test_an_event_that_is_not_seen_is_a_difference() -> None:
    recorded = next(each for each in RECORDED if "UpdateNodeLabel" in str(each["expected"]["answers"][0]["changes"]))
    actual = judge(recorded["case"])
    actual["answers"][0]["changes"] = []

    assert "[0] changes" in [found.where for found in differences(recorded["case"], recorded["expected"], actual)]
