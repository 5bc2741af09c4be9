"""The text of all metrics, made in pieces so that the event loop is never held for long.

A part of a family is read at one moment, whole children each; between parts others get their turn.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from scheduler.runtime.instruments import Registry

SLICE_SECONDS: Final = 0.002
"""For which the event loop is held, about."""

SAMPLES: Final = 200
"""Of one family, encoded at once; a millisecond."""

_END: Final = b"# EOF\n"
_HEADERS: Final = (b"# HELP ", b"# TYPE ", b"# UNIT ")


Encode = Callable[[Collector], bytes]


class Exposition:
    """Metrics in the format that a request accepts; one is made at a time."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._turn = asyncio.Lock()

    async def text(self, accept: str) -> tuple[bytes, str]:
        """The text and its content type. `accept`: the Accept header."""
        encode, content_type = choose_encoder(accept)
        is_openmetrics = content_type.startswith("application/openmetrics-text")
        pieces = []
        async with self._turn:
            until = time.perf_counter() + SLICE_SECONDS
            for family, parts in self._registry.families(SAMPLES):
                for piece in _pieces(family, parts, encode, in_order=is_openmetrics):
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


def _pieces(family: Metric, parts: Iterable[Sequence[Sample]], encode: Encode, *, in_order: bool) -> Iterator[bytes]:
    """The text of a family, part by part. `in_order`: as they are, as in OpenMetrics.

    Prometheus' own format puts `_created` behind all others, under a header of its own.
    """
    name_of_created = f"{family.name}_created"
    created: list[Sample] = []
    number = 0
    for number, part in enumerate(parts):
        family.samples = list(part)
        if not in_order:
            created += [each for each in part if each.name == name_of_created]
            family.samples = [each for each in part if each.name != name_of_created]
        text = encode(_Only(family))
        yield _without_header(text) if number else text
    if not number and not family.samples:
        yield encode(_Only(family))
    for first in range(0, len(created), SAMPLES):
        family.samples = created[first : first + SAMPLES]
        text = encode(_Only(family))
        yield _without_header(text) if first else text.split(b"\n", 2)[2]


def _without_header(piece: bytes) -> bytes:
    while piece.startswith(_HEADERS):
        piece = piece.partition(b"\n")[2]
    return piece
