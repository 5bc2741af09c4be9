"""Recorded values mean to us what they mean to apimachinery."""

from tests.conformance.recorded import read_cases
from tests.conformance.values import RECORDED, differences


def test_quantities_durations_and_selectors_mean_the_same_as_in_apimachinery() -> None:
    recorded = list(read_cases(RECORDED.parent))

    assert len(recorded) >= 200
    assert [line for each in recorded for line in differences(each["case"], each["expected"])] == []
