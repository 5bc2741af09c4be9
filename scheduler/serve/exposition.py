"""The text of all metrics, made in pieces so that the event loop is never held for long.

A family is read at one moment; between families, and between parts of a large one's text, others get their turn.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

SLICE_SECONDS: Final = 0.002
"""For which the event loop is held, about."""

SAMPLES: Final = 200
"""Of one family, encoded at once; a millisecond."""

_END: Final = b"# EOF\n"
_HEADERS: Final = (b"# HELP ", b"# TYPE ", b"# UNIT ")


Encode = Callable[[Collector], bytes]


class Exposition:
    """Metrics in the format that a request accepts; one is made at a time."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._turn = asyncio.Lock()

    async def text(self, accept: str) -> tuple[bytes, str]:
        """The text and its content type. `accept`: the Accept header."""
        encode, content_type = choose_encoder(accept)
        is_openmetrics = content_type.startswith("application/openmetrics-text")
        pieces = []
        async with self._turn:
            until = time.perf_counter() + SLICE_SECONDS
            for family in self._registry.collect():
                for piece in _pieces(family, encode, in_order=is_openmetrics):
                    pieces.append(piece.removesuffix(_END))
                    if time.perf_counter() >= until:
                        await asyncio.sleep(0)
                        until = time.perf_counter() + SLICE_SECONDS
        if is_openmetrics:
            pieces.append(_END)
        return b"".join(pieces), content_type


class _Only(Collector):
    """As if it was all that is registered."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


def _pieces(family: Metric, encode: Encode, *, in_order: bool) -> Iterator[bytes]:
    """The text of a family, by up to `SAMPLES` samples. `in_order`: as they are, as in OpenMetrics.

    Prometheus' own format puts `_created` behind the others, under a header of its own.
    """
    samples = family.samples
    if len(samples) <= SAMPLES:
        yield encode(_Only(family))
        return
    created = [] if in_order else [each for each in samples if each.name == f"{family.name}_created"]
    others = [each for each in samples if each.name != f"{family.name}_created"] if created else samples
    for group, of_family in ((others, 0), (created, 2)):
        for first in range(0, len(group), SAMPLES):
            part = Metric(family.name, family.documentation, family.type, family.unit)
            part.samples = group[first : first + SAMPLES]
            text = encode(_Only(part))
            yield _without_header(text) if first else text.split(b"\n", of_family)[of_family]


def _without_header(piece: bytes) -> bytes:
    while piece.startswith(_HEADERS):
        piece = piece.partition(b"\n")[2]
    return piece
