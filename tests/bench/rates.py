"""From the times at which pods were bound to pods per second. Pure."""

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SAMPLE_SECONDS: Final = 1.0
"""scheduler_perf's throughputSampleInterval."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """At a time (seconds, monotonic), so many pods had been seen bound."""

    time: float
    count: int


@dataclass(frozen=True, slots=True)
class Throughput:
    """Pods per second."""

    overall: float
    """All pods but the first batch, over the time from the first batch seen to the last."""

    average: float
    """The mean of the samples, as scheduler_perf's SchedulingThroughput has it; 0 if there was none."""

    p50: float
    p99: float
    """Percentiles of the samples by nearest rank, as there."""

    samples: tuple[float, ...]


def throughput(seen: Sequence[Sighting]) -> Throughput:
    """What the sightings amount to; times and counts are ascending."""
    taken = tuple(samples(seen))
    return Throughput(
        overall=overall(seen),
        average=statistics.fmean(taken) if taken else 0.0,
        p50=percentile(taken, 50),
        p99=percentile(taken, 99),
        samples=taken,
    )


def overall(seen: Sequence[Sighting]) -> float:
    """The rate between the first and the last sighting; 0 if they are one."""
    if len(seen) < 2:
        return 0.0
    first, last = seen[0], seen[-1]
    return (last.count - first.count) / (last.time - first.time)


def samples(seen: Sequence[Sighting]) -> list[float]:
    """The rate in each second, by the rules of throughputCollector in test/integration/scheduler_perf/util.go.

    The first second is skipped: it began before the first pod was bound. A second without any new pod is not a 0: it is
    merged with the next ones, until there is one, and their rate is counted as often as there were seconds. The last
    second counts only if it is full.
    """
    if not seen:
        return []
    times = [sighting.time for sighting in seen]
    rates: list[float] = []
    tick = times[0] + SAMPLE_SECONDS
    last_count = count_at(seen, times, tick)
    skipped = 0
    while (tick := tick + SAMPLE_SECONDS) <= times[-1]:
        count = count_at(seen, times, tick)
        if count == last_count:
            skipped += 1
            continue
        seconds = SAMPLE_SECONDS * (skipped + 1)
        rates += [(count - last_count) / seconds] * (skipped + 1)
        last_count = count
        skipped = 0
    return rates


def count_at(seen: Sequence[Sighting], times: Sequence[float], time: float) -> int:
    index = bisect_right(times, time)
    return seen[index - 1].count if index else 0


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest rank; 0 if there are no values."""
    if not values:
        return 0.0
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]
