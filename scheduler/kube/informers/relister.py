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

Resources are compared independently, as many at once as `AT_ONCE`, so that one list that hangs holds up no other. Only
before the start they take turns: nodes first, so that most pods find theirs, and pods last, after what plugins look up
for them. A page of a list is taken in at once at the start, and for a resource that is added later for new plugins: no
decision reads it yet. One that comes back is taken in whole, while no decision is made: with half of the claims, taken
devices look free.

A consistent read that is older than what was seen before means that the API server's data are of an older time: etcd
was restored from a backup. Then nothing that we know can be trusted, nor compared, as versions are given out again.
`Restored` ends the program, and its restart lists everything.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final
from urllib.parse import quote

from scheduler.api.decoding import Unreadable
from scheduler.framework.awaited import together
from scheduler.framework.errors import ClusterError
from scheduler.kube.gaps import Gaps
from scheduler.kube.http.client import BadStatus, Client
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import is_outage
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.deadlines import FIRST_COMPARISON, Deadlines
from scheduler.kube.informers.intake import NODES, POD_FIELD_SELECTOR, PODS, Intake
from scheduler.kube.informers.object_decoder import Page
from scheduler.process.metrics import Metrics
from scheduler.process.time_slice import TimeSlice

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 500
"""Objects per request. A page blocks the event loop while it is decoded, 5 ms."""

LIST_TIMEOUT: Final = 60.0

SETTLE_SECONDS: Final = 2.0
"""Differences are repaired after this time, if they persist: most changes were only late, not lost."""

MAX_DIFFERENT: Final = 2_000
"""Objects kept for that time. If more differ, the watch is far behind, and they are repaired page by page: memory must
not hold a second copy of all pods."""

AT_ONCE: Final = 16
"""Resources that are compared at the same time."""


class ListFailed(ClusterError):
    """A list from the API server cannot be read."""


class Relister:
    """Compares on request and every `interval` seconds (0: on request only). `run` it as a task."""

    def __init__(
        self,
        client: Client,
        intakes: Sequence[Intake[Any]],
        schedule: ComparisonSchedule,
        hold: Callable[[], AbstractContextManager[None]],
        deadlines: Deadlines,
        metrics: Metrics,
        interval: float = 300.0,
        settle: float = SETTLE_SECONDS,
        page_size: int = PAGE_SIZE,
    ) -> None:
        """`hold`: no decision is made within it."""
        self.synced = asyncio.Event()
        """Set once everything was compared for the first time: before that, there is nothing to decide on."""
        self.gaps = Gaps(settle)
        """The objects that the watches may have missed."""
        self._client = client
        self._intakes = {intake.resource: intake for intake in sorted(intakes, key=_turn)}
        self._schedule = schedule
        self._hold = hold
        self._deadlines = deadlines
        self._metrics = metrics
        self._interval = interval
        self._settle = settle
        self._page_size = page_size
        self._operations = {name: _listing(name) for name in self._intakes}
        self._under_way: set[str] = set()
        self._done: set[str] = set()
        self._absent: set[str] = set()
        self._to_drop: set[str] = set()
        """Absent, or absent a moment ago: what is known of them is to be dropped."""
        self._to_check: set[str] = set()
        """Resources whose watch went on: see `watch_opened`."""
        self._round = 0
        """Comparisons that began in an earlier one do not count as done."""
        self._to_read_again: Counter[str] = Counter()
        """The same for single resources."""
        self._advanced = asyncio.Event()

    def add(self, intake: Intake[Any]) -> None:
        """Compare another resource, too. No plugin at work reads it yet, so it is taken in page by page."""
        self._operations[intake.resource] = _listing(intake.resource)
        every = {**self._intakes, intake.resource: intake}
        self._intakes = {each.resource: each for each in sorted(every.values(), key=_turn)}

    async def remove(self, resource: str) -> None:
        """Compare a resource no longer. Returns when nothing of it is under way."""
        del self._intakes[resource]
        while resource in self._under_way:
            self._advanced.clear()
            await self._advanced.wait()
        self._schedule.take(resource)
        self.gaps.absent(resource)
        for known in (self._done, self._absent, self._to_drop, self._to_check):
            known.discard(resource)
        self._set_synced()

    def read_again(self, resource: str) -> None:
        """List a resource that is decoded into something else now, and take all of it; nothing counts as missed."""
        self._done.discard(resource)
        self._to_read_again[resource] += 1
        self._schedule.request(resource)

    async def compared(self, resources: Collection[str]) -> None:
        """Return once all of these were compared, or are not served."""
        while not self._done | self._absent >= frozenset(resources):
            self._advanced.clear()
            await self._advanced.wait()

    def request(self, resource: str) -> None:
        """Compare soon: kopf starts watching the resource from a new version."""
        self.gaps.listed(resource)
        self._absent.discard(resource)
        self._schedule.request(resource)

    async def compare_again(self) -> None:
        """Return once everything was compared with lists that began after this call.

        What differs is taken over at once, and not counted as missed: the watch may only be late.
        """
        self._done.clear()
        self._round += 1
        for resource in self._intakes.keys() - self._absent:
            self._schedule.request(resource)
        while not self._is_complete():
            self._advanced.clear()
            await self._advanced.wait()

    def absent(self, resource: str) -> None:
        """Note that the API server does not serve this resource, until it is requested again."""
        self.gaps.absent(resource)
        self._absent.add(resource)
        self._to_drop.add(resource)
        self._done.discard(resource)
        self._schedule.wake()
        self._set_synced()

    def watch_opened(self, resource: str) -> None:
        """Check that the API server has not gone back in time: it accepts a watch from a version yet to come."""
        self.gaps.opened(resource)
        if resource in self._done:
            self._to_check.add(resource)
            self._schedule.wake()

    def watch_interrupted(self, resource: str) -> None:
        """Note that the watch cannot be opened, or has ended, until `watch_opened` or `absent`."""
        self.gaps.interrupted(resource)

    async def run(self) -> None:
        """Compare until cancelled; a resource for the first time when kopf has listed it. Raises Restored."""
        ticks = [self._request_all()] if self._interval else []
        await together(*ticks, *(self._compare_in_turn() for _ in range(AT_ONCE)))

    async def _request_all(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            if self.synced.is_set():
                for resource in self._intakes.keys() - self._absent:
                    self._schedule.request(resource)

    async def _compare_in_turn(self) -> None:
        while True:
            intake = self._next_due()
            if intake is None:
                await self._schedule.wait()
                continue
            self._under_way.add(intake.resource)
            await self._settle_one(intake)
            self._under_way.discard(intake.resource)
            self._advanced.set()
            self._schedule.wake()

    def _next_due(self) -> Intake[Any] | None:
        under_way = self._under_way & self._intakes.keys()
        turn = min((_turn(self._intakes[each]) for each in under_way), default=0)
        for resource, intake in self._intakes.items():
            if resource in self._under_way:
                continue
            if resource in self._schedule or resource in self._to_drop or resource in self._to_check:
                waits = not self.synced.is_set() and self._under_way and _turn(intake) > turn
                return None if waits else intake
        return None

    async def _settle_one(self, intake: Intake[Any]) -> None:
        resource = intake.resource
        if resource in self._to_drop:
            await self._drop_all(intake)
        is_requested = self._schedule.take(resource)
        is_to_check = resource in self._to_check
        self._to_check.discard(resource)
        if resource in self._absent:
            return
        if is_requested:
            await self._compare(intake)
        elif is_to_check:
            await self._check(intake)

    async def _drop_all(self, intake: Intake[Any]) -> None:
        self._to_drop.discard(intake.resource)
        time_slice = TimeSlice()
        with self._hold():
            intake.expect_list()
            for uid in intake.uids():
                intake.drop(uid)
                await time_slice.give_way()

    async def _compare(self, intake: Intake[Any]) -> None:
        resource, began = intake.resource, (self._round, self._to_read_again[intake.resource])
        started = time.perf_counter()
        try:
            await self.compare(intake, first=resource not in self._done)
        except ClusterError as error:
            log.warning("Comparing with the API server failed", extra={"resource": resource, "err": str(error)})
            if is_outage(error):
                self._deadlines.excuse()
            self._schedule.request_later(resource)
            return
        self._metrics.resync_duration.observe(time.perf_counter() - started)
        # Else it is no longer served, or to be compared again.
        if resource not in self._to_drop and began == (self._round, self._to_read_again[resource]):
            self._done.add(resource)
        self._set_synced()
        if intake.is_dirty:
            self._schedule.request_later(resource)

    async def _check(self, intake: Intake[Any]) -> None:
        newest = intake.newest
        try:
            page = await self._page(intake, "", limit=1)
        except ClusterError as error:
            log.warning("Comparing with the API server failed", extra={"resource": intake.resource, "err": str(error)})
            self._schedule.request_later(intake.resource)
            return
        intake.check_age(page.metadata.resource_version, newest)

    def _is_complete(self) -> bool:
        return self._intakes.keys() <= self._done | self._absent

    def _set_synced(self) -> None:
        self._advanced.set()
        if self._is_complete():
            self.synced.set()
            self._deadlines.drop(FIRST_COMPARISON)

    async def compare(self, intake: Intake[Any], *, first: bool) -> None:
        """Compare one resource; the `first` time, differences are no repairs. Raises ClusterError, Restored."""
        intake.start_listing()
        try:
            if not first:
                await self._repair_differences(intake)
            elif intake.expects_list:
                await self._take_whole(intake)
            else:
                await self._take_by_page(intake)
        finally:
            intake.end_listing()

    async def _take_by_page(self, intake: Intake[Any]) -> None:
        listed: set[str] = set()
        version = ""
        async for page in self._pages(intake):
            version = page.metadata.resource_version
            listed.update(item.metadata.uid for item in page.items)
            await self._take(intake, page.items, version)
        await self._finish(intake, listed, version)

    async def _take_whole(self, intake: Intake[Any]) -> None:
        """The objects are held once, here or in our state: what differs is all that is listed."""
        listed: set[str] = set()
        version, items = "", []
        async for page in self._pages(intake):
            version = page.metadata.resource_version
            listed.update(item.metadata.uid for item in page.items)
            items += page.items
        with self._hold():
            await self._take(intake, items, version)
            await self._finish(intake, listed, version)

    async def _repair_differences(self, intake: Intake[Any]) -> None:
        listed: set[str] = set()
        different: list[Any] = []
        version = ""
        async for page in self._pages(intake):
            version = page.metadata.resource_version
            for item in page.items:
                listed.add(item.metadata.uid)
                if intake.difference(item, version):
                    different.append(item)
            if len(different) > MAX_DIFFERENT:
                await self._take(intake, different, version, are_repairs=True)
                different.clear()
        if different or any(intake.is_missing(uid, version) for uid in intake.uids() if uid not in listed):
            await asyncio.sleep(self._settle)
        await self._take(intake, different, version, are_repairs=True)
        await self._finish(intake, listed, version, are_repairs=True)

    async def _take(
        self, intake: Intake[Any], items: Sequence[Any], version: str, *, are_repairs: bool = False
    ) -> None:
        if intake.is_dirty:
            intake.mend()
        time_slice = TimeSlice()
        for item in items:
            kind = intake.difference(item, version)
            if kind is not None:
                if are_repairs:
                    self._count(intake, kind, item.metadata.name)
                intake.take(item)
            await time_slice.give_way()

    async def _finish(
        self, intake: Intake[Any], listed: Collection[str], version: str, *, are_repairs: bool = False
    ) -> None:
        time_slice = TimeSlice()
        for uid in intake.uids():
            if uid not in listed and intake.is_missing(uid, version):
                if are_repairs:
                    self._count(intake, "deleted", intake.name_of(uid))
                intake.drop(uid)
            await time_slice.give_way()
        intake.compared(version)

    def _count(self, intake: Intake[Any], kind: str, name: str) -> None:
        self._metrics.resync_repairs.labels(intake.resource, kind).inc()
        fields = {"resource": intake.resource, "object": name, "kind": kind}
        log.info("A change that was missed is made up for", extra=fields)

    async def _pages(self, intake: Intake[Any]) -> AsyncIterator[Page[Any]]:
        """Yield the pages of one list. Raises ClusterError, Restored."""
        newest, continue_ = intake.newest, ""
        while True:
            page = await self._page(intake, continue_, self._page_size)
            intake.check_age(page.metadata.resource_version, newest)
            yield page
            continue_ = page.metadata.continue_
            if not continue_:
                return

    async def _page(self, intake: Intake[Any], continue_: str, limit: int) -> Page[Any]:
        query = f"&fieldSelector={quote(POD_FIELD_SELECTOR)}" if intake.resource == PODS else ""
        if continue_:
            query += f"&continue={quote(continue_)}"
        reply = await self._client.page(self._operations[intake.resource], intake.api.path, limit, query)
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


def _listing(resource: str) -> Operation:
    return Operation("GET", resource, CallLimit(2), LIST_TIMEOUT)


def _turn(intake: Intake[Any]) -> int:
    """Nodes first, pods last, before the start."""
    return {NODES: 0, PODS: 2}.get(intake.resource, 1)
