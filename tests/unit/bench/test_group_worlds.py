"""What gangs that wait in vain cost does not grow with their pods: counted, so that it is the same on every machine."""

import asyncio

from tests.bench.group_worlds import Crowd
from tests.fakes import run

GANGS = 10
EVENTS = 100


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
