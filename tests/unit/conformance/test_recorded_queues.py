"""Our scheduling queue against recorded steps of kube-scheduler's. `make conformance` runs many more scripts."""

from collections.abc import Iterator, Sequence

import pytest

from tests.conformance.queue import QUEUES, answer, differences, shorten
from tests.conformance.queue_ours import run_script
from tests.conformance.queue_scripts import generate
from tests.conformance.recorded import Json, read_cases

RECORDED = list(read_cases(QUEUES))


@pytest.mark.parametrize("recorded", [pytest.param(each, id=each["case"]["name"]) for each in RECORDED])
def test_pods_go_where_kube_scheduler_puts_them(recorded: Json) -> None:
    found = differences(recorded["case"], recorded["expected"], run_script(recorded["case"]["queue"]))

    assert not found, "\n" + "\n".join(str(difference) for difference in found)


def test_the_first_step_that_differs_is_told() -> None:
    case = generate(1)
    steps = run_script(case["queue"])
    wrong = [*steps[:7], steps[7] | {"p1": "lost"}, {}, *steps[9:]]

    found = differences(case, {"steps": steps}, wrong)

    assert [each.where for each in found] == [f"[7] {case['queue']['operations'][7]['do']}: p1"]


def test_steps_that_are_missing_are_a_difference() -> None:
    case = generate(1)
    steps = run_script(case["queue"])

    assert differences(case, {"steps": steps}, steps[:3])


def test_a_crash_is_an_answer() -> None:
    def broken(script: Json) -> list[dict[str, str]]:
        raise ValueError("lost count")

    assert answer(generate(1), broken) == [{"(crash)": "ValueError: lost count"}]


def test_a_failing_script_is_made_as_short_as_it_can_be() -> None:
    def failing(cases: Sequence[Json]) -> Iterator[bool]:
        return ("pop" in kinds(case) and "fail" in kinds(case) for case in cases)

    assert sorted(kinds(shorten(generate(2), failing))) == ["fail", "pop"]


def test_a_seed_is_always_the_same_script() -> None:
    assert generate(3) == generate(3)
    assert generate(3) != generate(4)


def kinds(case: Json) -> list[str]:
    return [operation["do"] for operation in case["queue"]["operations"]]
