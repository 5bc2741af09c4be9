"""From the times at which pods were bound to pods per second and to latencies. Pure."""

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SAMPLE_SECONDS: Final = 1.0
"""scheduler_perf's throughputSampleInterval."""

TIMELINE_POINTS: Final = 120


@dataclass(frozen=True, slots=True)
class Throughput:
    """Pods per second."""

    overall: float
    """All pods over the time from the start of the measurement, when the first is created, until the last is bound."""

    average: float
    """The mean of the samples, as scheduler_perf's SchedulingThroughput has it; 0 if there was none."""

    p50: float
    p90: float
    p95: float
    p99: float
    """Percentiles of the samples by nearest rank, as there."""

    samples: tuple[float, ...]


def throughput(start: float, bound: Sequence[float]) -> Throughput:
    """What the times of binding amount to; they are ascending and not before `start`."""
    taken = samples(start, bound)
    return Throughput(
        overall=len(bound) / (bound[-1] - start) if bound and bound[-1] > start else 0.0,
        average=statistics.fmean(taken) if taken else 0.0,
        p50=percentile(taken, 50),
        p90=percentile(taken, 90),
        p95=percentile(taken, 95),
        p99=percentile(taken, 99),
        samples=tuple(taken),
    )


def samples(start: float, bound: Sequence[float]) -> list[float]:
    """The rate in each second, by the rules of throughputCollector in test/integration/scheduler_perf/util.go.

    Seconds are counted from `start`. The first in which a pod was bound is skipped. A second without any new pod is not
    a 0: it is merged with the next ones, until there is one, and their rate is counted as often as there were seconds.
    Of the last second, which is not full, there the chance decides; here it never counts.
    """
    rates: list[float] = []
    last_count = skipped = 0
    seconds = 0
    while bound and start + (seconds := seconds + 1) * SAMPLE_SECONDS <= bound[-1]:
        count = bisect_right(bound, start + seconds * SAMPLE_SECONDS)
        if last_count == 0:
            last_count = count
        elif count == last_count:
            skipped += 1
        else:
            rates += [(count - last_count) / (SAMPLE_SECONDS * (skipped + 1))] * (skipped + 1)
            last_count, skipped = count, 0
    return rates


def percentile(values: Sequence[float], percent: int) -> float:
    """The nearest rank; 0 if there are no values."""
    if not values:
        return 0.0
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


def timeline(start: float, bound: Sequence[float]) -> list[tuple[float, int]]:
    """How many were bound at regular times after `start`, for a plot."""
    if not bound or bound[-1] <= start:
        return []
    step = (bound[-1] - start) / TIMELINE_POINTS
    times = [step * (number + 1) for number in range(TIMELINE_POINTS)]
    counts = [bisect_right(bound, start + at) for at in times[:-1]]
    return [(0.0, 0), *((round(at, 3), count) for at, count in zip(times, [*counts, len(bound)], strict=True))]
