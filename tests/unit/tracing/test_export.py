"""Spans on their way to a collector: sent, failed, dropped; and nobody waits."""

import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from scheduler.framework.errors import ConfigError
from scheduler.tracing.export import Traces, exporter_of
from scheduler.tracing.settings import Exporter
from tests.fakes import Metrics, sample
from tests.fakes.collector import Collector

LONG = 15.0
"""Seconds for the last spans, on a machine that has other things to do."""


class Stuck(SpanExporter):
    """Sends nothing before it is told to go on."""

    def __init__(self) -> None:
        self.began, self.go_on = threading.Event(), threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.began.set()
        self.go_on.wait(20)
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.go_on.set()


def count(metrics: Metrics, result: str) -> float:
    return sample(metrics, "loadmaster_spans_total", result=result)


def make_spans(traces: Traces, number: int) -> None:
    for _ in range(number):
        traces.tracer.start_span("x").end()


async def export(collector: Collector, spans: int, metrics: Metrics | None = None) -> None:
    with collector:
        traces = Traces(metrics or Metrics(), "1.2.3", exporter_of(Exporter.OTLP))
        make_spans(traces, spans)
        await traces.close(LONG)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    return collector


async def test_spans_come_to_the_collector_with_what_the_environment_says(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=platform")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    metrics = Metrics()
    await export(collector, 3, metrics)

    assert [span.name for span in collector.spans] == ["x"] * 3
    assert collector.headers[0]["x-team"] == "platform"
    assert collector.headers[0]["path"] == "/v1/traces"
    resource = collector.spans[0].resource
    assert resource["service.name"] == "loadmaster"
    assert resource["service.version"] == "1.2.3"
    assert resource["deployment.environment"] == "test"
    assert (count(metrics, "sent"), count(metrics, "failed"), count(metrics, "dropped")) == (3, 0, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_SERVICE_NAME", "my-scheduler"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=my-scheduler")],
)
async def test_a_service_name_of_the_environment_counts(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    await export(collector, 1)

    assert collector.spans[0].resource["service.name"] == "my-scheduler"


async def test_what_a_collector_refuses_is_counted(collector: Collector) -> None:
    collector.status = 400
    metrics = Metrics()
    await export(collector, 3, metrics)

    assert (count(metrics, "sent"), count(metrics, "failed")) == (0, 3)


async def test_what_does_not_fit_is_dropped_and_counted_and_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    metrics, stuck = Metrics(), Stuck()
    traces = Traces(metrics, "1.2.3", stuck)
    make_spans(traces, 4)
    assert stuck.began.wait(10)

    make_spans(traces, 10)
    dropped = count(metrics, "dropped")
    stuck.go_on.set()
    await traces.close(LONG)

    assert dropped == 6
    assert count(metrics, "sent") == 8


async def test_a_collector_that_hangs_keeps_nobody_from_ending() -> None:
    class Deaf(Stuck):
        def shutdown(self) -> None:
            """It does not heed that either."""

    deaf = Deaf()
    traces = Traces(Metrics(), "1.2.3", deaf)
    make_spans(traces, 1)

    await traces.close(0.1)

    assert not deaf.go_on.is_set()
    deaf.go_on.set()


def test_a_batch_that_does_not_fit_into_the_queue_is_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8")

    with pytest.raises(ConfigError) as raised:
        Traces(Metrics(), "1.2.3", Stuck())

    assert raised.value.problems == ("OTEL_BSP_…: max_export_batch_size must be less than or equal to max_queue_size.",)
