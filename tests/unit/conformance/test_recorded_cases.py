"""Loadmaster against the recorded verdicts of kube-scheduler. `make conformance` compares many more, but needs Go."""

import pytest

from tests.conformance import ours
from tests.conformance.compare import differences
from tests.conformance.recorded import Json, read_cases


@pytest.mark.parametrize("recorded", [pytest.param(each, id=each["case"]["name"]) for each in read_cases()])
def test_the_verdict_is_that_of_kube_scheduler(recorded: Json) -> None:
    found = differences(recorded["expected"], ours.judge(recorded["case"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found[:10])
