"""The text of metrics, made in pieces so that the event loop is never held for long.

A part of a family is read at one moment, always with whole children; between parts other tasks run. `/metrics` is made
as a whole, then sent: half a megabyte. `/metrics/resources` grows with the pods, so it is sent as it is made: memory
holds only a piece of it and what the connection has not sent yet. One reader at a time gets it; a reader that takes
nothing is cut off when the time of its request is over.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from scheduler.api.pods.pod import Pod
from scheduler.process.metrics import Metrics
from scheduler.process.process_metrics import BuildInfo, ProcessMetrics, StartTime
from scheduler.process.time_slice import TimeSlice
from scheduler.serve.endpoints.pod_resources import PodResourceMetrics
from scheduler.serve.port.answers import EMPTY, Answer
from scheduler.serve.port.http import Page

SAMPLES: Final = 200
"""Of one family, encoded at once; a millisecond."""

_END: Final = b"# EOF\n"
_HEADERS: Final = (b"# HELP ", b"# TYPE ", b"# UNIT ")


Encode = Callable[[Collector], bytes]


class Families(Protocol):
    """A source of metrics."""

    def families(self, size: int) -> Iterator[tuple[Metric, Iterator[Sequence[Sample]]]]:
        """Each family, without its samples, and these in parts of about `size`."""


class Exposition:
    """Metrics in the format that a request accepts; one text is made at a time."""

    def __init__(self, source: Families) -> None:
        self._source = source
        self._turn = asyncio.Lock()

    async def whole(self, accept: str) -> Answer:
        """The answer, made before it is sent. `accept`: the Accept header."""
        encode, content_type = choose_encoder(accept)
        return Answer(200, b"".join([piece async for piece in self._encoded(encode, content_type)]), content_type)

    async def streamed(self, accept: str) -> Answer:
        """The answer, made while it is sent."""
        encode, content_type = choose_encoder(accept)
        return Answer(200, self._encoded(encode, content_type), content_type)

    async def _encoded(self, encode: Encode, content_type: str) -> AsyncGenerator[bytes, None]:
        async with self._turn:
            time_slice = TimeSlice()
            for family, parts in self._source.families(SAMPLES):
                for piece in _pieces(family, parts, encode):
                    yield piece.removesuffix(_END)
                    await time_slice.give_way()
            if content_type.startswith("application/openmetrics-text"):
                yield _END


class _Only(Collector):
    """As if it was all that is registered."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


def _pieces(family: Metric, parts: Iterable[Sequence[Sample]], encode: Encode) -> Iterator[bytes]:
    is_first = True
    for part in parts:
        family.samples = list(part)
        text = encode(_Only(family))
        yield text if is_first else _without_header(text)
        is_first = False
    if is_first:
        family.samples = []
        yield encode(_Only(family))


def _without_header(piece: bytes) -> bytes:
    while piece.startswith(_HEADERS):
        piece = piece.partition(b"\n")[2]
    return piece


def metric_pages(metrics: Metrics, pods: Mapping[str, Pod], leads: Callable[[], bool]) -> dict[str, Page]:
    """The pages with metrics, by their paths as kube-scheduler has them.

    `pods`: all that are known, by UID. Only the replica that `leads` shows what pods ask for, or a sum over the
    replicas would count each pod several times.

    The metrics of the program are added to `metrics`; call it once.
    """
    metrics.registry.register(ProcessMetrics())
    metrics.registry.register(BuildInfo())
    metrics.slis.register(StartTime())
    resources = Exposition(PodResourceMetrics(pods))

    async def of_leader(accept: str) -> Answer:
        return await resources.streamed(accept) if leads() else EMPTY

    return {
        "/metrics": Exposition(metrics.registry).whole,
        "/metrics/slis": Exposition(metrics.slis).whole,
        "/metrics/resources": of_leader,
    }
