"""Our part in the election: the Lease's lock, watch and elector, put together for the composition root.

    tables are filled ─► run ─► won: the Lease is ours ─► all is listed once more ─► decisions … stop ─► release
                          │                                                             │
                          └─────────────────── it returns: lost, the program ends ──────┘

A replica that stands by has its tables filled and its queue full; it decides, binds, patches and evicts nothing. When
it has won, the watch may not have shown the last bindings of the previous leader yet, so it first compares lists that
it requests only then.
"""

import logging
import time

from scheduler.config.types import LeaderElection
from scheduler.kube.election.elector import Elector, new_identity
from scheduler.kube.election.leadership import Leadership
from scheduler.kube.election.lease_events import LeaseEvents
from scheduler.kube.election.lease_lock import LeaseLock
from scheduler.kube.election.lease_watch import LeaseWatch
from scheduler.kube.http.client import Client
from scheduler.kube.informers.relister import Relister
from scheduler.kube.permissions import Permission, lease_permissions
from scheduler.process.metrics import Metrics

log = logging.getLogger(__name__)


class Election:
    """One replica's part. `run` and `watch.run` are tasks for as long as the program runs; `release` ends it."""

    def __init__(
        self, client: Client, settings: LeaderElection, leadership: Leadership, controller: str, metrics: Metrics
    ) -> None:
        """`client`: one of its own, not fenced, so that no other call delays a renewal.

        `controller`: the name of the component that reports Events.
        """
        identity = new_identity()
        lock = LeaseLock(client, settings, identity, leadership)
        events = LeaseEvents(client, (settings.resource_namespace, settings.resource_name), identity, controller)
        self._leadership = leadership
        self._lock = lock
        self._elector = Elector(lock, settings, leadership, events, metrics)
        self.watch = LeaseWatch(client, lock, 2 * settings.lease_duration)
        self.permissions: tuple[Permission, ...] = lease_permissions(
            settings.resource_namespace, settings.resource_name
        )

    def is_healthy(self) -> bool:
        """kube-scheduler's check `leaderElection`: false if a Lease that was lost did not end us."""
        return self._elector.is_healthy()

    def leader(self) -> str:
        """The leader's identity, as in the Lease; empty if there is none."""
        return self._lock.holder

    async def run(self) -> None:
        """Stand by, lead, and return when leadership is lost."""
        await self._elector.run()

    async def won(self, relister: Relister) -> None:
        """Return once we lead and know all that the leader before us did."""
        await self._leadership.began.wait()
        began = time.monotonic()
        await relister.compare_again()
        log.info("Compared everything after taking over", extra={"seconds": round(time.monotonic() - began, 3)})

    async def release(self) -> None:
        """Give the Lease up. Call it when nothing that needs leadership is under way any more."""
        await self._elector.release()
