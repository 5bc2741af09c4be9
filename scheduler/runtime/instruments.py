"""Counters and histograms for the hot path: prometheus_client's own, without a lock and without a walk over buckets.

One event loop does all the counting and also answers the scrapes (`serve/http.py`), so nothing can come between two
steps of an observation: a scrape sees whole ones, and a histogram's count equals its last bucket. What is shown, its
names, labels and format, is left to prometheus_client. A pod costs some thirty of these calls.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable
from typing import Self

import prometheus_client
from prometheus_client import metrics as exposed
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString


class Counter(prometheus_client.Counter):
    """Counts on one event loop. Exemplars are not kept."""

    def labels(self, *labelvalues: object, **labelkwargs: object) -> Self:
        try:  # what was made before, if the values are strings
            return self._metrics[labelvalues]  # type: ignore[index,return-value]
        except (AttributeError, KeyError):
            return super().labels(*labelvalues, **labelkwargs)

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        """Add `amount`. Raises ValueError if it is negative, AttributeError if labels are missing."""
        if amount < 0:
            raise ValueError("a counter only grows")
        self._count += amount

    def reset(self) -> None:
        self._metric_init()

    def _metric_init(self) -> None:
        self._count = 0.0
        self._created = time.time()

    def _child_samples(self) -> Iterable[Sample]:
        yield Sample("_total", {}, self._count, None, None)
        if exposed._use_created:
            yield Sample("_created", {}, self._created, None, None)


class Histogram(prometheus_client.Histogram):
    """Counts on one event loop. Exemplars are not kept."""

    def labels(self, *labelvalues: object, **labelkwargs: object) -> Self:
        try:
            return self._metrics[labelvalues]  # type: ignore[index,return-value]
        except (AttributeError, KeyError):
            return super().labels(*labelvalues, **labelkwargs)

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count `amount` in the first bucket whose bound is not less. Raises AttributeError if labels are missing."""
        self._counts[bisect_left(self._upper_bounds, amount)] += 1
        self._total += amount

    def _metric_init(self) -> None:
        self._counts = [0] * len(self._upper_bounds)
        self._total = 0.0
        self._created = time.time()

    def _child_samples(self) -> Iterable[Sample]:
        count = 0
        for bound, amount in zip(self._upper_bounds, self._counts, strict=True):
            count += amount
            le = floatToGoString(bound)  # type: ignore[no-untyped-call]
            yield Sample("_bucket", {"le": le}, float(count), None, None)
        yield Sample("_count", {}, float(count), None, None)
        yield Sample("_sum", {}, self._total, None, None)
        if exposed._use_created:
            yield Sample("_created", {}, self._created, None, None)
