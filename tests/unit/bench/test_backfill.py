"""The promise of reservations, in a small version of the simulation: a gang does not starve among small pods."""

from dataclasses import replace

from tests.bench.backfill import Scenario, simulate

SMALL = Scenario(nodes=5, gang=3, load=1.2, arrival=600.0, hours=0.4, reservation_seconds=120.0)
LONGEST_RUN = 900.0
"""Of a small pod, in seconds."""


def test_a_gang_that_starves_among_small_pods_has_its_nodes_once_those_have_ended_that_ran_before() -> None:
    without = simulate(replace(SMALL, reservation_seconds=0.0))
    outcome = simulate(SMALL)

    assert without.gang_waited is None
    assert outcome.gang_waited is not None
    assert outcome.gang_waited <= SMALL.reservation_seconds + LONGEST_RUN + 30
    assert len(outcome.waits) > len(without.waits) / 2, "others are placed meanwhile, too"
