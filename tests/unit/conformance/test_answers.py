"""Recorded answers of extenders mean to us what they mean to Go."""

from tests.conformance.answers import RECORDED, difference
from tests.conformance.recorded import read_cases


def test_answers_of_extenders_mean_the_same_as_in_kube_scheduler() -> None:
    recorded = list(read_cases(RECORDED.parent))

    assert len(recorded) >= 200
    assert [told for each in recorded if (told := difference(each["case"], each["expected"]))] == []


def test_another_meaning_is_a_difference() -> None:
    recorded = next(each for each in read_cases(RECORDED.parent) if each["expected"]["said"])
    expected = recorded["expected"] | {"said": "something else"}

    assert "something else" in difference(recorded["case"], expected)
