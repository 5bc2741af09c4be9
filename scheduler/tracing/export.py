"""Sends spans away, in a thread of OpenTelemetry's, and counts them.

    ended ──space─► queue (OTEL_BSP_MAX_QUEUE_SIZE) ──batch──► collector ──┬─ taken ───────────────────► sent
      └──none──► dropped                                                   └─ away, after its retries ──► failed

Nothing waits for a collector: what does not fit into the queue is dropped. The event loop counts what ends and what is
dropped, the thread what is sent and what failed, so each counter has one writer.
"""

import asyncio
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace import Tracer

from scheduler.framework.errors import ConfigError
from scheduler.process.metrics import Metrics
from scheduler.tracing.settings import Exporter

COMPONENT: Final = "loadmaster"

QUEUE_SIZE: Final = "OTEL_BSP_MAX_QUEUE_SIZE"
DEFAULT_QUEUE_SIZE: Final = 2048
"""Spans that wait to be sent: a MiB or two."""

BATCH: Final = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
DEFAULT_BATCH: Final = 512
"""Spans in one call. Both are OpenTelemetry's own defaults."""

CLOSE_SECONDS: Final = 2.0
"""For the last spans, when the program ends. Bindings and the Lease come first; a kubelet does not wait for ever."""


class Traces:
    """All spans of this process: `tracer` begins them, `close` sends the last ones."""

    def __init__(self, metrics: Metrics, version: str, exporter: SpanExporter) -> None:
        """Raises ConfigError for settings in the environment that contradict each other."""
        counted = _Counted(exporter, metrics)
        try:
            processor = _Bounded(counted, metrics)
            resource = Resource.create({SERVICE_VERSION: version})
        except ValueError as error:
            raise ConfigError([f"OTEL_BSP_…: {error}"]) from error
        if resource.attributes.get(SERVICE_NAME, "unknown_service").startswith("unknown_service"):  # type: ignore[union-attr]
            resource = resource.merge(Resource({SERVICE_NAME: COMPONENT}))
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self.tracer: Tracer = self._provider.get_tracer("loadmaster", version)

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Send the remaining spans, for so long; the thread does not keep the program from ending."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=shut_down, name="traces", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await done.wait()


def exporter_of(kind: Exporter) -> SpanExporter:
    """The exporter of spans, as configured by the environment."""
    if kind is Exporter.CONSOLE:
        return ConsoleSpanExporter()
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


class _Counted(SpanExporter):
    """Counts the outcomes of spans. Called by one thread."""

    def __init__(self, exporter: SpanExporter, metrics: Metrics) -> None:
        self._exporter = exporter
        self._sent, self._failed = (metrics.spans.labels(result) for result in ("sent", "failed"))
        self.taken = 0
        """How many have left the queue."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            (self._sent if result is SpanExportResult.SUCCESS else self._failed).inc(len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _Bounded(BatchSpanProcessor):
    """Drops the newest spans when the queue is full; the library would drop the oldest, with a log line for each."""

    def __init__(self, exporter: _Counted, metrics: Metrics) -> None:
        capacity = int(os.environ.get(QUEUE_SIZE, "").strip() or DEFAULT_QUEUE_SIZE)
        batch = int(os.environ.get(BATCH, "").strip() or min(DEFAULT_BATCH, capacity))
        super().__init__(exporter, max_queue_size=capacity, max_export_batch_size=batch)
        self._counted, self._capacity = exporter, capacity
        self._added = 0
        self._dropped = metrics.spans.labels("dropped")

    def on_end(self, span: ReadableSpan) -> None:
        if self._added - self._counted.taken >= self._capacity:
            self._dropped.inc()
            return
        self._added += 1
        super().on_end(span)
