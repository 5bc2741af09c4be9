"""Kueue's TestSchedule: who is admitted, with which flavors, and who is evicted for others."""

from typing import Any

from tests.unit.quota.kueue_cycle import KueueCycle
from tests.unit.quota.tables import of_cases, table

TABLE = table("kueue_schedule")


@of_cases(TABLE["cases"])
def test_a_cycle_ends_as_in_kueue_or_as_the_case_says(case: dict[str, Any]) -> None:
    found = KueueCycle(TABLE["base"], case).play()

    assert [found.admitted, sorted(found.preempted)] == case.get("here", [case["admitted"], case["preempted"]])
