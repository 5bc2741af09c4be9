"""Loadmaster's queueing hints against recorded answers of kube-scheduler's. `make conformance` asks many more."""

import pytest

from tests.conformance.hints import HINTS, differences, judge
from tests.conformance.recorded import Json, read_cases

RECORDED = list(read_cases(HINTS))


@pytest.mark.parametrize("recorded", [pytest.param(each, id=each["case"]["name"]) for each in RECORDED])
def test_an_event_means_what_it_means_to_kube_scheduler(recorded: Json) -> None:
    found = differences(recorded["case"], recorded["expected"], judge(recorded["case"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found)
