"""Recorded expressions over devices are to us what they are to cel-go."""

from tests.conformance.recorded import read_cases
from tests.conformance.selectors import RECORDED, differences


def test_expressions_are_what_they_are_to_cel_go() -> None:
    recorded = list(read_cases(RECORDED.parent))

    assert len(recorded) >= 100
    assert [line for each in recorded for line in differences(each["case"], each["expected"])] == []
