"""What gangs cost, counted, so that it is the same on every machine."""

import asyncio
import cProfile

import pytest

from tests.bench.counted import calls_of
from tests.bench.group_worlds import AMOUNTS, Crowd, World, bound_by, plain_pods
from tests.fakes import run

GANGS = 10
EVENTS = 100
PODS = 100


def calls_a_pod(gang: int) -> float:
    """Count the calls that pods cost which come in gangs of a size, 0 for pods without a gang."""
    world = World(20)
    for number in range(PODS // gang if gang else 0):
        world.create(f"g{number}", minimum=gang)
        world.pods(gang, group=f"g{number}", requests=AMOUNTS)
    if not gang:
        plain_pods(world.under_test, PODS)
    with cProfile.Profile() as profile:
        bound_by(world.under_test, PODS)
    found = calls_of(profile)
    return (found["Python calls"] + found["C calls"]) / PODS


@pytest.mark.parametrize(("gang", "most"), [(1, 1.7), (20, 1.45)])
def test_a_pod_of_a_gang_costs_little_more_than_one_without(gang: int, most: float) -> None:
    """Most of it is what plugins see twice, as with kube-scheduler; for a gang of one its condition comes to it."""
    assert calls_a_pod(gang) < most * calls_a_pod(0)


def test_no_pod_of_a_gang_is_decided_about_as_long_as_too_little_is_free_for_the_gang() -> None:
    async def play() -> None:
        crowd = Crowd(nodes=20, gangs=GANGS, size=8)
        decided = crowd.under_test.count("scheduler_scheduling_algorithm_duration_seconds_count")

        tries = sum(crowd.second(EVENTS)[1] for _ in range(10))

        assert decided > 0
        assert crowd.under_test.count("scheduler_scheduling_algorithm_duration_seconds_count") == decided
        assert 0 < tries < GANGS * EVENTS  # backoff lets none of them be looked at for each event
        await asyncio.sleep(0)
        crowd.check()

    run(play())
