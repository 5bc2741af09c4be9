"""Recorded answers of extenders mean to us what they mean to Go."""

from tests.conformance.answers import RECORDED, differences
from tests.conformance.recorded import read_cases


def test_answers_of_extenders_mean_the_same_as_in_kube_scheduler() -> None:
    recorded = list(read_cases(RECORDED.parent))

    assert len(recorded) >= 200
    assert [line for each in recorded for line in differences(each["case"], each["expected"])] == []
