"""Throughput and latency, second by second: what the page draws as lines, kept for the minutes before it was opened."""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from scheduler.process.instruments import Histogram
from scheduler.process.metrics import Metrics
from scheduler.serve.page.messages import event

KEPT: Final = 600
"""Samples: ten minutes."""

RESULTS: Final = ("scheduled", "unschedulable", "error")

NAMES: Final = ("at", *RESULTS, "decision50", "decision99", "binding50", "binding99", "waited50", "waited99", "pending")
"""Of the columns: seconds since 1970; attempts a second by result; seconds in the middle, and of the slowest in a
hundred, for a decision, from there to the end of the binding, and from the queue to the binding; pods that wait."""


class Figures:
    """Samples, the oldest first."""

    def __init__(
        self, metrics: Metrics, pending: Callable[[], Mapping[str, int]], now: Callable[[], float] = time.time
    ) -> None:
        """`pending`: pods by part of the queue. `now`: seconds since 1970."""
        self._attempts = metrics.schedule_attempts
        self._waited = metrics.pod_scheduling_sli_duration
        self._pending = pending
        self._now = now
        self._samples: deque[Sequence[float | None]] = deque(maxlen=KEPT)
        self._before = self._counts()
        self._buckets_before = _buckets(self._waited)
        self._at = now()

    def sample(self, deciding: Sequence[float], binding: Sequence[float]) -> bytes:
        """Take one, and return its message. The seconds are those of `decisions.Looked`."""
        now, counts, buckets = self._now(), self._counts(), _buckets(self._waited)
        seconds = max(now - self._at, 0.001)
        rates = [round((counts[name] - self._before[name]) / seconds, 2) for name in RESULTS]
        before = self._buckets_before or [0.0] * len(buckets)
        new = [after - earlier for after, earlier in zip(buckets, before, strict=True)]
        bounds = _bounds(self._waited)
        waited = [quantile(bounds, new, share) for share in (0.5, 0.99)]
        latencies = [*_middle_and_slow(deciding), *_middle_and_slow(binding), *waited]
        self._before, self._buckets_before, self._at = counts, buckets, now
        values: list[float | None] = [round(now, 1), *rates, *latencies, sum(self._pending().values())]
        self._samples.append(values)
        return event("figures", dict(zip(NAMES, ([value] for value in values), strict=True)))

    def history(self) -> bytes:
        """Return the message with all of them."""
        columns: dict[str, Any] = {name: [sample[i] for sample in self._samples] for i, name in enumerate(NAMES)}
        return event("figures", columns)

    def _counts(self) -> dict[str, float]:
        counts = dict.fromkeys(RESULTS, 0.0)
        for (result, _), child in self._attempts.children():
            if result in counts:
                counts[result] += child.value
        return counts


def quantile(bounds: Sequence[float], counts: Sequence[float], share: float) -> float | None:
    """The value that `share` of what the buckets count is not above, between their bounds in proportion; None of none.

    Rule: Prometheus' histogram_quantile.
    """
    sums = list(accumulate(counts))
    if not sums or not sums[-1]:
        return None
    wanted = share * sums[-1]
    place = bisect_left(sums, wanted)
    high = bounds[place]
    low = bounds[place - 1] if place else 0.0
    if high == float("inf"):
        return low
    before = sums[place - 1] if place else 0.0
    return round(low + (high - low) * (wanted - before) / max(counts[place], 1e-9), 6)


def _middle_and_slow(seconds: Sequence[float]) -> tuple[float | None, float | None]:
    ordered = sorted(seconds)
    return _at(ordered, 0.5), _at(ordered, 0.99)


def _at(ordered: Sequence[float], share: float) -> float | None:
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 6) if ordered else None


def _bounds(histogram: Histogram) -> Sequence[float]:
    for _, child in histogram.children():
        return child.bounds
    return ()


def _buckets(histogram: Histogram) -> list[float]:
    found: list[float] = []
    for _, child in histogram.children():
        found = [a + b for a, b in zip(found, child.counts, strict=True)] if found else list(map(float, child.counts))
    return found
