"""What is behind feature gates, against recorded verdicts of kube-scheduler with these on."""

import pytest

from tests.conformance import ours
from tests.conformance.compare import differences
from tests.conformance.gated import GATED, TOPICS, Json, gates_matter
from tests.conformance.recorded import read_cases

RECORDED = list(read_cases(GATED))


@pytest.mark.parametrize("recorded", [pytest.param(each, id=each["case"]["name"]) for each in RECORDED])
def test_the_verdict_is_that_of_kube_scheduler_with_these_gates(recorded: Json) -> None:
    found = differences(recorded["expected"], ours.judge(recorded["case"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found[:10])
    assert gates_matter(recorded)


def test_each_set_of_gates_has_its_cases() -> None:
    assert {tuple(each["case"]["gates"]) for each in RECORDED} == set(TOPICS)
