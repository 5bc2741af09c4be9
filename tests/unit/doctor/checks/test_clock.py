"""Clocks that are off."""

from datetime import timedelta

import pytest

from scheduler.doctor.checks import clock
from scheduler.doctor.findings import Level
from scheduler.kube.services.api_server import ApiServer
from tests.unit.doctor.fake_cluster import NOW, OK, UNKNOWN, WARNING, FakeCluster, a_lease, facts, levels


@pytest.mark.parametrize(
    ("ahead", "level", "words"),
    [
        (0.4, OK, "within a second of"),
        (-90.0, WARNING, "90 s ahead of"),
        (90.0, WARNING, "behind"),
        (None, UNKNOWN, ""),
    ],
)
async def test_a_clock_that_is_off_is_named(ahead: float | None, level: Level, words: str) -> None:
    findings = await clock.of_this_machine(facts(server=ApiServer("v1.36.3", ahead)), FakeCluster())

    assert levels(findings) == [level]
    assert words in findings[0].message


async def test_the_leaders_clock_is_the_one_in_the_lease() -> None:
    lease = a_lease(managedFields=[{"time": NOW - timedelta(seconds=30)}], renewed=0)

    findings = await clock.of_the_leader(facts(lease=lease), FakeCluster())

    assert levels(findings) == [WARNING]
    assert "the leader's clock is 30 s ahead of" in findings[0].message
