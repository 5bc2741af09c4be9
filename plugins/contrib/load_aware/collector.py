"""Keeps the known usage of the nodes up to date, in the background.

reading ──an answer──► newer measurements take the place of older ones ──┐
   └────no answer, or garbage──► logged when it is another fault than before ──┴──► what is too old is forgotten
"""

import logging
from collections.abc import Callable, Collection
from datetime import datetime, timedelta

from plugins.contrib.load_aware.measurements import AHEAD, Faults, Measurements, Provider
from scheduler import framework as fw
from scheduler.api.decoding import Unreadable

_logger = logging.getLogger(__name__)


class Collector:
    """The measurements of the nodes that are in the cluster, and no older than they may be."""

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
