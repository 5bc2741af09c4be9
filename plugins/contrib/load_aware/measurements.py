"""Measurements of nodes, and faults in the data that was read."""

import math
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from scheduler import framework as fw

AHEAD: Final = timedelta(minutes=1)
"""How far a measurement may be in the future, as clocks differ. It counts as of now."""


class Usage(NamedTuple):
    """A node's usage of a resource, in thousandths of a core or bytes."""

    mean: float
    deviation: float = 0.0
    """The standard deviation over the time that was looked at."""


class Measurement(NamedTuple):
    """The usage of one node at one time."""

    at: datetime
    cpu: Usage | None
    """None where it was not measured, or not in a way that can be used."""

    memory: Usage | None


Measurements = Mapping[str, Measurement]
"""By node. Only nodes that were asked for are in it, whatever names an answer has."""


class Provider(Protocol):
    """A source of measurements."""

    async def read(self, nodes: Collection[str], now: datetime, faults: "Faults") -> Measurements:
        """Return the measurements of these nodes. Raises fw.ApiError, and Unreadable for an answer of another kind."""


class Faults:
    """Counts of unusable data, by reason, with an example of each."""

    def __init__(self, plugin: str, counter: fw.Counter) -> None:
        self._plugin = plugin
        self._counter = counter
        self.examples: dict[str, str] = {}

    def add(self, reason: str, example: object) -> None:
        """`reason`: one of a few words, as it is a label of the metric."""
        self._counter.labels(self._plugin, reason).inc()
        if reason not in self.examples:
            self.examples[reason] = f"{example!s:.200}"

    def summary(self) -> str:
        """An example of each in one line."""
        return "; ".join(f"{reason}: {self.examples[reason]}" for reason in sorted(self.examples))


def is_amount(value: float) -> bool:
    """Return whether a number can be an amount that is used: neither negative nor endless, nor no number at all."""
    return math.isfinite(value) and value >= 0
