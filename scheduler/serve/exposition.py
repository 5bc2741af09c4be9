"""The text of all metrics, made in pieces so that the event loop is never held for long.

A family is read at one moment; between families, and between parts of a large one's text, others get their turn.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

SLICE_SECONDS: Final = 0.002
"""For which the event loop is held, about."""

SAMPLES: Final = 200
"""Of one family, encoded at once; a millisecond."""

_END: Final = b"# EOF\n"
_HEADERS: Final = (b"# HELP ", b"# TYPE ", b"# UNIT ")


class Exposition:
    """Metrics in the format that a request accepts; one is made at a time."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._turn = asyncio.Lock()

    async def text(self, accept: str) -> tuple[bytes, str]:
        """The text and its content type. `accept`: the Accept header."""
        encode, content_type = choose_encoder(accept)
        pieces = []
        async with self._turn:
            until = time.perf_counter() + SLICE_SECONDS
            for family in self._registry.collect():
                for number, part in enumerate(_parts(family)):
                    piece = encode(_Only(part)).removesuffix(_END)
                    pieces.append(_without_header(piece) if number else piece)
                    if time.perf_counter() >= until:
                        await asyncio.sleep(0)
                        until = time.perf_counter() + SLICE_SECONDS
        if content_type.startswith("application/openmetrics-text"):
            pieces.append(_END)
        return b"".join(pieces), content_type


class _Only:
    """As if it was all that is registered."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterable[Metric]:
        return (self._family,)


def _parts(family: Metric) -> Iterator[Metric]:
    """A family by up to `SAMPLES` samples."""
    samples = family.samples
    if len(samples) <= SAMPLES or any(sample.name.endswith("_created") for sample in samples):
        yield family  # the text puts `_created` in a place of its own
        return
    for first in range(0, len(samples), SAMPLES):
        part = Metric(family.name, family.documentation, family.type, family.unit)
        part.samples = samples[first : first + SAMPLES]
        yield part


def _without_header(piece: bytes) -> bytes:
    while piece.startswith(_HEADERS):
        piece = piece.partition(b"\n")[2]
    return piece
