"""Measurements of nodes, faults in the data that was read, and the task that reads it in the background."""

import logging
import math
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

from scheduler import framework as fw
from scheduler.api.decoding import Unreadable

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


_logger = logging.getLogger(__name__)


class Collector:
    """The measurements of the nodes that are in the cluster, no older than they may be, kept up to date.

    reading ──an answer──► newer measurements take the place of older ones ──┐
       └────no answer, or garbage──► logged when it is another fault than before ──┴──► what is too old is forgotten
    """

    def __init__(
        self, provider: Provider, expiration: timedelta, plugin: str, counter: fw.Counter, now: Callable[[], datetime]
    ) -> None:
        """`counter`: of faults, by plugin and reason."""
        self._provider = provider
        self._expiration = expiration
        self._plugin = plugin
        self._counter = counter
        self._now = now
        self._reported: frozenset[str] = frozenset()
        """Reasons of the faults of the last time."""
        self.measured: Measurements = {}

    async def refresh(self, nodes: Collection[str]) -> None:
        """Read the measurements of these nodes, and drop those that are too old. Faults are logged and counted."""
        faults = Faults(self._plugin, self._counter)
        found: Measurements = {}
        try:
            found = await self._provider.read(nodes, self._now(), faults)
        except fw.ApiError as error:
            faults.add("no answer" if error.status == 0 else f"HTTP {error.status // 100}xx", error)
        except Unreadable as error:
            faults.add("unreadable answer", error)
        now = self._now()
        measured = {name: each for name, each in self.measured.items() if name in nodes}
        for name, new in found.items():
            at = min(new.at, now) if new.at <= now + AHEAD else None
            if at is None:
                faults.add("from the future", f"{name}: {new.at.isoformat()}")
            elif name not in measured or at >= measured[name].at:
                measured[name] = new._replace(at=at)
        self.measured = {name: each for name, each in measured.items() if now - each.at <= self._expiration}
        self._report(faults, found, nodes)

    def _report(self, faults: Faults, found: Measurements, nodes: Collection[str]) -> None:
        """Log what has changed since the last time."""
        reasons = faults.examples.keys()
        if reasons - self._reported:
            fields = {"plugin": self._plugin, "err": faults.summary(), "nodes": len(nodes), "known": len(self.measured)}
            _logger.warning("The nodes' usage cannot be read as it should be", extra=fields)
        elif self._reported and not reasons:
            _logger.info("The nodes' usage can be read again", extra={"plugin": self._plugin, "nodes": len(found)})
        self._reported = frozenset(reasons)
