"""Lists the cluster again, compares, and repairs what the watch has missed.

The watch alone is not enough: when kopf has to list again, it never reports what was deleted meanwhile; a failed
handler has lost a change; and a scheduler with a wrong view of the cluster decides wrongly until it is restarted. So
lists are compared with our state: at the start (which fills the state: 20 µs per object, where kopf's own list costs
ten times that), whenever kopf lists, after a failed handler, and every few minutes. A resource that the API server does
not serve counts as compared: it has no objects.

Lists are consistent reads (no `resourceVersion` in the query), not reads from any old cache (`resourceVersion=0`): a
lagging API server must not take us back in time, least of all at the start, with nothing to compare with. Since
Kubernetes 1.34 the API server answers consistent reads from its watch cache, too, once that is fresh enough. A list is
older than the watch when it arrives: where the watch is newer, it wins, see `Intake`.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from scheduler.api.decoding import Unreadable
from scheduler.framework.errors import ClusterError
from scheduler.kube.client import BadStatus, CallLimit, Client, Operation
from scheduler.kube.deadlines import FIRST_COMPARISON, Deadlines
from scheduler.kube.intake import NODES, POD_FIELD_SELECTOR, PODS, Intake
from scheduler.kube.outages import is_outage
from scheduler.kube.retries import RetryPolicy
from scheduler.runtime.metrics import Metrics

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 500
"""Objects per request. A page blocks the event loop while it is decoded and compared, about 10 ms."""

LIST_TIMEOUT: Final = 60.0

SETTLE_SECONDS: Final = 2.0
"""Differences are repaired after this time, if they persist: most changes were only late, not lost."""

RETRIES: Final = RetryPolicy(first=1.0, limit=60.0)
"""Between a failure and the next comparison."""

CALM_SECONDS: Final = 300.0
"""After this time without a failure, waits start over."""


class ListFailed(ClusterError):
    """A list from the API server cannot be read."""


class Relister:
    """Compares on request and every `interval` seconds (0: on request only). `run` it as a task."""

    def __init__(
        self,
        client: Client,
        intakes: Sequence[Intake[Any]],
        deadlines: Deadlines,
        metrics: Metrics,
        interval: float = 300.0,
        settle: float = SETTLE_SECONDS,
        retries: RetryPolicy = RETRIES,
        page_size: int = PAGE_SIZE,
    ) -> None:
        self.synced = asyncio.Event()
        """Set once everything was compared for the first time: before that, there is nothing to decide on."""
        self._client = client
        self._intakes = {intake.resource: intake for intake in sorted(intakes, key=_turn)}
        self._deadlines = deadlines
        self._metrics = metrics
        self._interval = interval
        self._settle = settle
        self._retries = retries
        self._page_size = page_size
        self._operations = {name: Operation("GET", name, CallLimit(2), LIST_TIMEOUT) for name in self._intakes}
        self._requested: set[str] = set()
        self._wake = asyncio.Event()
        self._done: set[str] = set()
        self._absent: set[str] = set()
        self._scheduled: set[str] = set()
        self._round = 0
        """Comparisons that began in an earlier one do not count as done."""
        self._advanced = asyncio.Event()
        self._failures = 0
        self._failed_at = -CALM_SECONDS
        for intake in self._intakes.values():
            intake.failed = self.request_later

    def request(self, resource: str) -> None:
        """Compare soon."""
        self._absent.discard(resource)
        self._requested.add(resource)
        self._wake.set()

    async def compare_anew(self) -> None:
        """Return once everything was compared with lists that began after this call.

        What differs is taken over at once, and not counted as missed: the watch may only be late.
        """
        self._done.clear()
        self._round += 1
        for resource in self._intakes.keys() - self._absent:
            self.request(resource)
        while not self._is_complete():
            self._advanced.clear()
            await self._advanced.wait()

    def absent(self, resource: str) -> None:
        """Note that the API server does not serve this resource, until it is requested again."""
        self._absent.add(resource)
        self._requested.discard(resource)
        self._done.discard(resource)
        self._drop_all(self._intakes[resource])
        self._set_synced()

    def _drop_all(self, intake: Intake[Any]) -> None:
        for known in intake.all_known():
            intake.drop(known)

    def request_later(self, resource: str) -> None:
        """Compare after a failure: soon at first, later if failures persist."""
        if resource in self._scheduled:
            return
        now = asyncio.get_running_loop().time()
        if now - self._failed_at > CALM_SECONDS:
            self._failures = 0
        wait = self._retries.wait(self._failures)
        if now - self._failed_at > wait / 2:  # simultaneous failures count once
            self._failures += 1
        self._failed_at = now
        self._scheduled.add(resource)
        asyncio.get_running_loop().call_later(wait, self._request_scheduled, resource)

    def _request_scheduled(self, resource: str) -> None:
        self._scheduled.discard(resource)
        if resource not in self._absent:
            self.request(resource)

    async def run(self) -> None:
        """Compare until cancelled. The first comparison of a resource is made when kopf has listed it."""
        while True:
            try:
                await asyncio.wait_for(self._wake.wait(), self._interval or None)
            except TimeoutError:
                if self.synced.is_set():
                    self._requested.update(self._intakes.keys() - self._absent)
            self._wake.clear()
            for resource, intake in self._intakes.items():
                if resource in self._requested:
                    await self._compare(intake)

    async def _compare(self, intake: Intake[Any]) -> None:
        resource, round_ = intake.resource, self._round
        self._requested.discard(resource)
        started = time.perf_counter()
        try:
            await self.compare(intake, first=resource not in self._done)
        except ClusterError as error:
            log.warning("Comparing with the API server failed", extra={"resource": resource, "err": str(error)})
            if is_outage(error):
                self._deadlines.excuse()
            self.request_later(resource)
            return
        self._metrics.resync_duration.observe(time.perf_counter() - started)
        if resource in self._absent:
            self._drop_all(intake)  # no longer served since its list was requested
        elif round_ == self._round:
            self._done.add(resource)
        self._set_synced()

    def _is_complete(self) -> bool:
        return self._intakes.keys() <= self._done | self._absent

    def _set_synced(self) -> None:
        self._advanced.set()
        if self._is_complete():
            self.synced.set()
            self._deadlines.drop(FIRST_COMPARISON)

    async def compare(self, intake: Intake[Any], *, first: bool) -> None:
        """Compare one resource; the `first` time, differences do not count as repairs. Raises ClusterError."""
        listed: set[str] = set()
        different: list[Any] = []
        intake.start_listing()
        try:
            continue_ = version = ""
            while continue_ or not version:  # each page has a version
                page = await self._page(intake, continue_)
                for item in page.items:
                    listed.add(item.metadata.uid)
                    if intake.difference(item):
                        if first:
                            intake.take(item)
                        else:
                            different.append(item)
                continue_, version = page.metadata.continue_, page.metadata.resource_version
            if not first and (different or intake.missing(listed, version)):
                await asyncio.sleep(self._settle)
            self._repair(intake, different, listed, version, first=first)
            intake.compared(version)
        finally:
            intake.end_listing()

    def _repair(
        self, intake: Intake[Any], different: list[Any], listed: set[str], version: str, *, first: bool
    ) -> None:
        for item in different:
            kind = intake.difference(item)
            if kind is not None:
                self._count(intake, kind, item)
                intake.take(item)
        for known in intake.missing(listed, version):
            if not first:
                self._count(intake, "deleted", known)
            intake.drop(known)

    def _count(self, intake: Intake[Any], kind: str, item: Any) -> None:
        self._metrics.resync_repairs.labels(intake.resource, kind).inc()
        fields = {"resource": intake.resource, "object": item.metadata.name, "kind": kind}
        log.info("The watch had missed a change", extra=fields)

    async def _page(self, intake: Intake[Any], continue_: str) -> Any:
        query = f"&fieldSelector={quote(POD_FIELD_SELECTOR)}" if intake.resource == PODS else ""
        if continue_:
            query += f"&continue={quote(continue_)}"
        reply = await self._client.page(self._operations[intake.resource], intake.api.path, self._page_size, query)
        if not reply.ok:
            raise BadStatus(f"listing {intake.resource}", reply)
        try:
            page = intake.read_page(reply.body)
        except Unreadable as error:
            raise ListFailed(str(error)) from error
        if not page.metadata.resource_version:
            raise ListFailed(f"the list of {intake.resource} has no resource version")
        if continue_ and page.metadata.continue_ == continue_:
            raise ListFailed(f"the list of {intake.resource} has no end: a page names itself as the next one")
        self._deadlines.progress(FIRST_COMPARISON)
        return page


def _turn(intake: Intake[Any]) -> int:
    """Nodes first, so that most pods find theirs. Pods last, after what plugins look up for them."""
    return {NODES: 0, PODS: 2}.get(intake.resource, 1)
