"""Leader election: `kubernetes.aio.leaderelection` with a sense of time, and one task for all of it.

    run:  acquire ──the Lease is ours──► renew ──every `retryPeriod`──► renew
             ▲ │ it is not: until it changes,                │
             └─┘ may be free, or `retryPeriod` has passed    └──another holds it, or the deadline is past──► returns

A replica that stands by has its tables filled and its queue full; it decides, binds, patches and evicts nothing. When
it has won, the watch may not have shown the last bindings of the previous leader yet, so it first compares lists that
it requests only then.

The order of the calls and the records that they write are the library's. Its two loops are replaced by ours: the
library's sleep through a release, measure with the time of day, and call without a limit. When `run` returns,
leadership was lost, and the program ends: its work cannot be continued safely, and a start takes seconds.

Rule: client-go's tools/leaderelection/leaderelection.go at v0.36.3, with ReleaseOnCancel, as kube-scheduler uses it.
"""

import asyncio
import logging
import math
import random
import socket
import time
import uuid
from collections.abc import Callable
from typing import Final

from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection as LibraryElection

from scheduler.config.types import JITTER_FACTOR, LeaderElection
from scheduler.kube.election.installation import strangers
from scheduler.kube.election.leadership import Leadership
from scheduler.kube.election.lease_lock import LeaseLock
from scheduler.kube.election.lease_watch import LeaseWatch
from scheduler.kube.http.client import Client
from scheduler.kube.informers.relister import Relister
from scheduler.kube.permissions import lease_permissions
from scheduler.kube.writes.single_events import Regarding, SingleEvents
from scheduler.process.metrics import Metrics

log = logging.getLogger(__name__)

NAME: Final = "loadmaster"
"""The label `name` of the metrics, where kube-scheduler's is `kube-scheduler`."""

TOLERATED_SECONDS: Final = 20.0
"""How long after the Lease's end the program should have ended at the latest, as in kube-scheduler."""

STOP_SECONDS: Final = 4.0
"""For the release. The kubelet kills 30 s after SIGTERM; bindings have 20 of them."""


class Elector(LibraryElection):
    """Acquires the Lease and keeps it. `run` and `watch.run` are tasks as long as the program runs, `release` ends it.

    Who leads is reported in Events, as client-go does it: `became leader`, `stopped leading`.
    """

    def __init__(
        self,
        client: Client,
        lock: LeaseLock,
        settings: LeaderElection,
        leadership: Leadership,
        controller: str,
        metrics: Metrics,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`client`: one of its own, not fenced, so that no other call delays a renewal.

        `controller`: the first profile's name, as in kube-scheduler.
        """
        # The library's own times decide nothing: a lease that lasts for ever is never taken over but on the lock's
        # word, and both loops are ours. Its Config refuses periods below a second, which kube-scheduler allows.
        super().__init__(Config(lock, math.inf, 1e9, 1.0, self._started, self._stopped))
        self._lock = lock
        self._settings = settings
        self._leadership = leadership
        lease = Regarding("coordination.k8s.io/v1", "Lease", lock.namespace, lock.name)
        self._events = SingleEvents(client, lease, controller, lock.identity)
        self.watch = LeaseWatch(client, lock, 2 * settings.lease_duration)
        self.permissions = lease_permissions(lock.namespace, lock.name)
        self._chance = chance
        self._slow_path = metrics.leader_election_slowpath.labels(NAME)
        self._slow_path.inc(0)
        metrics.watch_gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
            ("name",),
            lambda: [((NAME,), float(leadership.is_held()))],
        )
        self._reported = ""
        self._is_stopping = False

    def is_healthy(self) -> bool:
        """kube-scheduler's check `leaderElection`: false if a Lease that was lost did not end us."""
        if not self._leadership.began.is_set() or self._leadership.ended.is_set():
            return True
        over = self._settings.renew_deadline - self._settings.lease_duration - TOLERATED_SECONDS
        return self._leadership.seconds_left() >= over

    def leader(self) -> str:
        """The leader's identity, as in the Lease; empty if there is none."""
        return self._lock.holder

    async def won(self, relister: Relister) -> None:
        """Return once we lead and know all that the leader before us did."""
        await self._leadership.began.wait()
        began = time.monotonic()
        await relister.compare_again()
        log.info("Compared everything after taking over", extra={"seconds": round(time.monotonic() - began, 3)})

    async def acquire(self) -> bool:
        """Return once the Lease is ours."""
        log.info("Attempting to acquire leader lease", extra={"lock": self._lock.describe()})
        while not await self.try_acquire_or_renew():
            self._report_holder()
            period = self._settings.retry_period * (1 + JITTER_FACTOR * self._chance())
            # Not before the Lease may be free, and not long after.
            wait = self._lock.seconds_to_wait()
            if not await self._changes_within(min(wait, period) if wait else period):
                self._lock.doubt()
        return True

    async def renew_loop(self) -> None:
        """Renew for as long as we can; return when we do not lead any more."""
        clock = asyncio.get_running_loop()
        while self._leadership.is_held():
            began = clock.time()
            try:
                async with asyncio.timeout(self._leadership.seconds_left()):
                    await self._renew()
            except TimeoutError:
                break
            pause = began + self._settings.retry_period - clock.time()
            await self._changes_within(min(pause, self._leadership.seconds_left()))
        if not self._leadership.ended.is_set():
            log.error("Failed to renew lease", extra={"lock": self._lock.describe()})
        self._leadership.end()
        self._report_holder()

    async def release(self) -> None:
        """Stop to lead. Call it when nothing that needs leadership is under way; `run` then returns by itself."""
        if not self._leadership.is_held():
            return
        try:
            async with asyncio.timeout(STOP_SECONDS):
                released = await self._lock.release()
                log.info("Stopped leading", extra={"lock": self._lock.describe(), "released": released})
                await self._stopped()
        except TimeoutError:
            log.warning("The leader lease was not released in time", extra={"lock": self._lock.describe()})

    async def _renew(self) -> None:
        """Renew once. If the version that we know is outdated, with the one that there is: client-go's slow path."""
        if not await self.try_acquire_or_renew() and self._leadership.is_held():
            self._slow_path.inc()
            await self.try_acquire_or_renew()

    async def _changes_within(self, seconds: float) -> bool:
        """Wait for others to change the Lease; return whether they did."""
        changed = self._lock.changed
        try:
            async with asyncio.timeout(max(seconds, 0.0)):
                await changed.wait()
        except TimeoutError:
            return False
        changed.clear()
        return True

    def _report_holder(self) -> None:
        holder = self._lock.holder
        if holder != self._reported:
            self._reported = holder
            log.info("New leader elected", extra={"lock": self._lock.describe(), "identity": holder})
            if problem := strangers(self._lock.leader, self._lock.ourselves):
                log.warning(problem, extra={"lock": self._lock.describe()})

    async def _started(self) -> None:
        log.info("Successfully acquired lease", extra={"lock": self._lock.describe()})
        await self._report("became leader")

    async def _stopped(self) -> None:
        if self._is_stopping:
            return
        self._is_stopping = True
        await self._report("stopped leading")

    async def _report(self, what: str) -> None:
        note = f"{self._lock.identity} {what}"
        await self._events.send("Normal", "LeaderElection", "LeaderElection", note)


def new_identity() -> str:
    """Our identity in the Lease. Unique, so that two processes on one host never both take themselves for its
    holder."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"
