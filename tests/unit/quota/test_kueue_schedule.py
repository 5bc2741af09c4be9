"""Kueue's TestSchedule: who is admitted, with which flavors, and who is evicted for others."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.quota.kueue_cycle import KueueCycle

TABLE = json.loads(Path(__file__).with_name("kueue_schedule.json").read_text("utf-8"))
CASES = {name: case for name, case in TABLE["cases"].items() if "does not apply" not in case}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_cycle_ends_as_in_kueue_or_as_the_case_says(case: dict[str, Any]) -> None:
    found = KueueCycle(TABLE["base"], case).play()

    assert [found.admitted, sorted(found.preempted)] == case.get("here", [case["admitted"], case["preempted"]])


def test_the_table_is_whole_and_says_why_a_case_differs_or_does_not_apply() -> None:
    differing = [case for case in CASES.values() if "here" in case]

    assert len(TABLE["cases"]) == TABLE["count"] == 80
    assert (len(CASES), len(differing)) == (70, 11)
    assert all(case["why"] and case["here"] != [case["admitted"], case["preempted"]] for case in differing)
    assert all(case["does not apply"] for name, case in TABLE["cases"].items() if name not in CASES)
