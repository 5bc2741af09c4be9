"""Counters and histograms for the hot path: prometheus_client's own, without a lock and without a walk over buckets.

One event loop does all the counting and also answers the scrapes (`serve/port/`), so nothing can come between two steps
of an observation: a scrape sees whole ones, and a histogram's count equals its last bucket. Names, labels and format of
the output are left to prometheus_client, except for its `_created` series: kube-scheduler has none. A pod costs some
thirty of these calls.

A scrape reads them in parts (`Registry.families`), since hundreds of children take tens of milliseconds at once.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import prometheus_client
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString


class _OnOneLoop(MetricWrapperBase):
    """Counts on one event loop. Exemplars are not kept."""

    def labels(self, *labelvalues: object, **labelkwargs: object) -> Self:
        try:  # what was made before, if the values are strings
            return self._metrics[labelvalues]  # type: ignore[index,return-value]
        except (AttributeError, KeyError):
            return super().labels(*labelvalues, **labelkwargs)

    def children(self) -> Iterator[tuple[Sequence[str], Self]]:
        """Yield the values of the labels, and what was counted for them."""
        yield from tuple(self._metrics.items())  # type: ignore[misc]  # they are of its own class

    def samples_in_parts(self, size: int) -> Iterator[list[Sample]]:
        """The samples of whole children, as prometheus_client's `collect` gives them."""
        children = tuple(self._metrics.items()) if self._labelnames and not self._labelvalues else (((), self),)
        part: list[Sample] = []
        for values, child in children:
            labels = dict(zip(self._labelnames, values, strict=False))
            for sample in child._child_samples():
                name = self._name + sample.name
                part.append(Sample(name, {**labels, **sample.labels}, sample.value, sample.timestamp, sample.exemplar))
            if len(part) >= size:
                yield part
                part = []
        if part:
            yield part


class Counter(_OnOneLoop, prometheus_client.Counter):
    """Counts on one event loop. Exemplars are not kept."""

    value: float
    """Of a counter without labels, or of a child. Where every call counts, it is added to directly."""

    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        """Add `amount`. Raises ValueError if it is negative, AttributeError if labels are missing."""
        if amount < 0:
            raise ValueError("a counter only grows")
        self.value += amount

    def reset(self) -> None:
        self._metric_init()

    def _metric_init(self) -> None:
        self.value = 0.0

    def _child_samples(self) -> Iterable[Sample]:
        yield Sample("_total", {}, self.value, None, None)


class Histogram(_OnOneLoop, prometheus_client.Histogram):
    """Counts on one event loop. Exemplars are not kept."""

    bounds: Sequence[float]
    """The largest amount of each bucket."""
    counts: list[int]
    """Of each bucket by itself, in a histogram without labels, or a child. Where every call counts, they are added to
    directly."""
    total: float

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        """Count `amount` in the first bucket whose bound is not less. Raises AttributeError if labels are missing."""
        self.counts[bisect_left(self.bounds, amount)] += 1
        self.total += amount

    def _metric_init(self) -> None:
        self.bounds = self._upper_bounds
        self.counts = [0] * len(self.bounds)
        self.total = 0.0

    def _child_samples(self) -> Iterable[Sample]:
        count = 0
        for bound, amount in zip(self.bounds, self.counts, strict=True):
            count += amount
            le = floatToGoString(bound)  # type: ignore[no-untyped-call]
            yield Sample("_bucket", {"le": le}, float(count), None, None)
        yield Sample("_count", {}, float(count), None, None)
        yield Sample("_sum", {}, self.total, None, None)


def observe_all(*observations: tuple[Histogram, float]) -> None:
    """Observe several amounts, each with its own histogram, for the price of one call."""
    for histogram, amount in observations:
        histogram.counts[bisect_left(histogram.bounds, amount)] += 1
        histogram.total += amount


class Registry(CollectorRegistry):
    """The samples for `/metrics`."""

    def families(self, size: int) -> Iterator[tuple[Metric, Iterator[Sequence[Sample]]]]:
        """Each family, without its samples, and these in parts of about `size`; each part is of one moment."""
        for collector in tuple(self._collector_to_names):
            if isinstance(collector, _OnOneLoop):
                yield collector._get_metric(), collector.samples_in_parts(size)  # type: ignore[no-untyped-call]
            else:
                for family in collector.collect():
                    parts = (family.samples[first : first + size] for first in range(0, len(family.samples), size))
                    yield Metric(family.name, family.documentation, family.type, family.unit), parts
