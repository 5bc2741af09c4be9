"""A crowd of high priority, refused time and again and woken by every event, cannot hold the others back."""

import math
import random
from dataclasses import replace

import pytest

from tests.bench.starvation import Scenario, simulate
from tests.fakes import next_pod
from tests.unit.queue.fakes import FIT, NODE_ADD, QueueUnderTest, a_waiting_pod

CROWDED = Scenario(crowd=600, low=30, attempts_a_second=20, patience=60)
"""Backoff lets 600 pods ask for 60 attempts a second; there are 20."""


@pytest.mark.parametrize("events_a_second", [1, 10, 20])
@pytest.mark.parametrize("crowd", [600, 2_000])
def test_every_pod_of_low_priority_is_tried_in_bounded_time(crowd: int, events_a_second: int) -> None:
    scenario = replace(CROWDED, crowd=crowd, events_a_second=events_a_second)

    outcome = simulate(scenario)

    # They start to starve together, and of each four attempts one is theirs.
    bounds = [scenario.starvation_seconds + 4 * n / scenario.attempts_a_second for n in range(1, scenario.low + 1)]
    assert len(outcome.waits) == scenario.low
    assert all(wait <= bound for wait, bound in zip(outcome.waits, bounds, strict=True))


@pytest.mark.parametrize("crowd", [600, 2_000])
def test_with_strict_priority_the_same_crowd_holds_them_back(crowd: int) -> None:
    outcome = simulate(replace(CROWDED, crowd=crowd, starvation_seconds=math.inf))

    assert outcome.waits == []
    assert outcome.crowd_share == 1.0


def test_the_crowd_keeps_three_quarters_of_the_attempts_while_others_starve() -> None:
    outcome = simulate(CROWDED)
    since_they_starve = outcome.attempts - round(CROWDED.starvation_seconds * CROWDED.attempts_a_second)

    assert since_they_starve >= 4 * (CROWDED.low - 1)


def test_a_crowd_that_leaves_attempts_to_others_is_served_first() -> None:
    small = replace(CROWDED, crowd=50)

    outcome, strict = simulate(small), simulate(replace(small, starvation_seconds=math.inf))

    assert len(outcome.waits) == small.low
    assert outcome.waits == strict.waits


def test_where_no_pod_starves_the_order_is_that_of_priority() -> None:
    queue, chance = QueueUnderTest(), random.Random(1)
    for number in range(500):
        queue.clock.advance(0.05)
        if number % 4 == 0:
            queue.add(a_waiting_pod(str(number), priority=chance.randrange(5)))
        queue.move_all(NODE_ADD, None, None)
        queue.flush_backoff_completed()
        active = queue.pending_pods()["active"]
        queued = next_pod(queue)
        if queued is None:
            continue

        assert not active or queued.pod.priority == max(each.pod.priority for each in active)

        if chance.random() < 0.6:
            queue.fail(queued, FIT)
        else:
            queue.done(queued.pod.uid)
