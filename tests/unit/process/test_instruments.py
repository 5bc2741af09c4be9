from collections.abc import Callable, Iterator

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from scheduler.process.instruments import Counter, Histogram

BOUNDS = (0.001, 0.5, 1.0, 8.0)
AMOUNTS = (0.0, 0.001, 0.0011, 0.5, 0.75, 1.0, 7.999999, 8.0, 8.1, 1e9, 3)


def shown(
    counter: type[prometheus_client.Counter],
    histogram: type[prometheus_client.Histogram],
    encode: Callable[[CollectorRegistry], bytes],
) -> str:
    """The text of the same counts."""
    registry = CollectorRegistry()
    plain = counter("plain", "Without labels.", registry=registry)
    labelled = counter("labelled", "With labels.", ("a", "b"), registry=registry)
    whole = histogram("whole_seconds", "Without labels.", buckets=BOUNDS, registry=registry)
    by_result = histogram("by_result", "With labels.", ("result",), buckets=BOUNDS, registry=registry)
    counter("untouched", "Nothing was counted.", registry=registry)
    histogram("untouched_seconds", "Nothing was observed.", buckets=BOUNDS, registry=registry)
    counter("never_labelled", "No child.", ("a",), registry=registry)
    plain.inc()
    plain.inc(2.5)
    labelled.labels("x", 'quo"ted').inc()
    labelled.labels(b="2", a=1).inc(3)
    labelled.labels("1", "2").inc()
    for amount in AMOUNTS:
        whole.observe(amount)
        by_result.labels("even" if amount == int(amount) else "odd").observe(amount)
    return encode(registry).decode()


@pytest.fixture
def without_creation() -> Iterator[None]:
    """prometheus_client without its `_created` series, which kube-scheduler does not have either."""
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    yield
    prometheus_client.enable_created_metrics()  # type: ignore[no-untyped-call]


@pytest.mark.usefixtures("without_creation")
@pytest.mark.parametrize("encode", [generate_latest, generate_openmetrics])
def test_what_is_shown_is_what_prometheus_client_shows(encode: Callable[[CollectorRegistry], bytes]) -> None:
    assert shown(Counter, Histogram, encode) == shown(prometheus_client.Counter, prometheus_client.Histogram, encode)


@pytest.mark.parametrize("encode", [generate_latest, generate_openmetrics])
def test_no_series_tells_when_another_was_created(encode: Callable[[CollectorRegistry], bytes]) -> None:
    assert "_created" not in shown(Counter, Histogram, encode)


def test_the_same_labels_are_the_same_counter_however_they_are_given() -> None:
    counter = Counter("calls", "Calls.", ("verb", "code"), registry=None)

    assert counter.labels("GET", 200) is counter.labels("GET", "200") is counter.labels(verb="GET", code="200")


@pytest.mark.parametrize("values", [(), ("GET",), ("GET", "200", "more")])
def test_a_wrong_number_of_labels_is_refused(values: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="label"):
        Histogram("calls", "Calls.", ("verb", "code"), registry=None).labels(*values)


def test_a_counter_does_not_shrink() -> None:
    counter = Counter("calls", "Calls.", registry=None)

    with pytest.raises(ValueError, match="only grows"):
        counter.inc(-1)


def test_a_counter_can_be_reset() -> None:
    registry = CollectorRegistry()
    counter = Counter("calls", "Calls.", registry=registry)
    counter.inc(5)

    counter.reset()

    assert registry.get_sample_value("calls_total") == 0
