"""On a signal, logs what the scheduler believes, and how that differs from the API server.

Rule: pkg/scheduler/backend/cache/debugger/debugger.go at v1.36.3. Ours dumps before it compares: a dump is most
useful when the API server does not answer.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from scheduler.engine.dumper import Line
from scheduler.framework.errors import ClusterError
from scheduler.kube.informers.comparer import CacheComparison, Comparer, Difference
from scheduler.process.tasks import Tasks
from scheduler.process.time_slice import TimeSlice

MAX_SECONDS: Final = 600.0
"""For one run."""

MAX_NAMES: Final = 1_000
"""Objects named on one line; their number is always given."""

log = logging.getLogger(__name__)


class Debugger:
    """One run at a time. A failure costs that run only."""

    def __init__(
        self, dump: Callable[[], Iterable[Line]], comparer: Comparer, is_synced: Callable[[], bool], tasks: Tasks
    ) -> None:
        """`is_synced`: whether the first list is complete; before that, there is nothing to compare."""
        self._dump = dump
        self._comparer = comparer
        self._is_synced = is_synced
        self._jobs = tasks.jobs("debugger", MAX_SECONDS)

    def start(self) -> None:
        """Dump and compare in a task. Ignored, with a log line, while one is running. For signal handlers."""
        if self._jobs:
            log.warning("The debugger is running already; signal ignored")
            return
        self._jobs.start("debugger", self.run())

    async def close(self) -> None:
        """Cancel a running dump or comparison."""
        await self._jobs.finish(0)

    async def run(self) -> None:
        """Dump, then compare."""
        await self._write_dump()
        await self._compare()

    async def _write_dump(self) -> None:
        started, time_slice = time.perf_counter(), TimeSlice()
        for line in self._dump():
            log.info(line.message, extra=dict(line.fields))
            await time_slice.give_way()
        log.info("Dump finished", extra={"seconds": round(time.perf_counter() - started, 3)})

    async def _compare(self) -> None:
        if not self._is_synced():
            log.info("Cache comparer has nothing to compare before the first list is complete")
            return
        started = time.perf_counter()
        try:
            comparison = await self._comparer.compare()
        except ClusterError as error:
            log.warning("Cache comparer failed", extra={"err": str(error)})
            return
        self._log(comparison, time.perf_counter() - started)

    def _log(self, found: CacheComparison, seconds: float) -> None:
        for kind, difference in (("Nodes", found.nodes), ("Pods", found.pods)):
            if difference:
                log.info("Cache mismatch", extra=_fields(kind, difference))
        compared = {"nodes": found.listed_nodes, "pods": found.listed_pods, "seconds": round(seconds, 3)}
        log.info("Cache comparer finished", extra={"mismatch": bool(found), **compared})


def _fields(kind: str, difference: Difference) -> dict[str, object]:
    return {
        f"missed{kind}": _named(difference.missed),
        f"redundant{kind}": _named(difference.redundant),
        "missed": len(difference.missed),
        "redundant": len(difference.redundant),
    }


def _named(objects: dict[str, str]) -> list[str]:
    """Nodes by name, pods as `namespace/name (uid)`."""
    named = sorted(name if name == key else f"{name} ({key})" for key, name in objects.items())
    return named[:MAX_NAMES]
