"""The Lease as the lock of `kubernetes.aio.leaderelection`; it has the last word on who may take it.

The library's elector reckons with the time of day, which may be set while it runs; it takes a Lease whose record is odd
at once; and it goes by its own lease duration, not by the holder's. So it does not decide:

    the Lease                                   the elector is shown   and does
    ours, or without a holder while we lead     no valid record        update: renew
    released, or `free_at` is past              no valid record        update: take over
    missing, and we lead or `free_at` is past   404                    create
    anything else                               a record               wait; `update` and `create` refuse in any case

`free_at` is the Lease's duration after we saw it change: its holder stops before that, see `Leadership`. An edit or a
deletion is no release, and is waited out in the same way. So is a Lease that was never there: we cannot know whether
one was deleted a moment ago. That costs the first start in a cluster one `leaseDuration`, and no other.

Each write carries the resource version of what it was decided on, so of several replicas one wins.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.baselock import BaseLock

from scheduler.api.versions import is_newer
from scheduler.config.types import LeaderElection
from scheduler.kube.election.installation import Leader, annotations_of, leader_of, ourselves
from scheduler.kube.election.leadership import Leadership, boot_time
from scheduler.kube.election.lease import RELEASED_SECONDS, Lease, micro_time, new_lease
from scheduler.kube.http.client import Client
from scheduler.kube.http.operations import CallLimit, Operation
from scheduler.kube.http.retries import Outcome

log = logging.getLogger(__name__)

MIN_TIMEOUT: Final = 1.0
"""Seconds for one call, however short the deadline is."""

CALLS_PER_DEADLINE: Final = 2
"""A call may take this part of `renewDeadline`, as in client-go: an update finds out that its connection is dead, and
there is as much time again for a read and an update over new ones."""

RELEASE_TRIES: Final = 3


class LeaseLock(BaseLock):
    """Reads and writes one Lease. Its methods named as the library's raise nothing."""

    def __init__(
        self,
        client: Client,
        settings: LeaderElection,
        identity: str,
        leadership: Leadership,
        now: Callable[[], float] = boot_time,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        """`client`: one of its own, not fenced, that never reuses an answer. `now`: the clock of `leadership`."""
        super().__init__(settings.resource_name, settings.resource_namespace, identity)
        self.changed = asyncio.Event()
        """Set when another process changed the Lease; cleared by the task that acts on it."""
        self._client = client
        self._settings = settings
        self._leadership = leadership
        self._now = now
        self._time_of_day = time_of_day
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        timeout = max(settings.renew_deadline / CALLS_PER_DEADLINE, MIN_TIMEOUT)
        # A 429 may not keep us from renewing for longer than we would wait anyway.
        limit = CallLimit(1, max_pause=settings.retry_period)
        self._get, self._put, self._post = (
            Operation(verb, "leases", limit, timeout, fenced=False) for verb in ("GET", "PUT", "POST")
        )
        self._lease: Lease | None = None
        self._is_certain = False
        """Whether `_lease` is the newest version that was seen."""
        self._claimed: str | None = None
        """The version, empty for none, at which we tried to take the Lease, as long as that may still succeed."""
        self._seen_at = math.inf
        """When we saw its last change; infinity before we know anything."""
        self._term_seconds = 0.0
        """The duration of the last holder's term."""
        self._acquired_at = ""
        self._transitions = 0
        self.ourselves = ourselves(identity)
        self._annotations = annotations_of(self.ourselves)

    # --- what the library calls ---

    async def get(
        self, name: str, namespace: str
    ) -> tuple[bool, LeaderElectionRecord] | tuple[bool, Exception] | tuple[bool, None]:
        """Show the elector what it may act on; read the Lease if we may not have its newest version."""
        if not self._is_certain and (problem := await self._read()) is not None:
            return False, problem
        lease = self._lease
        if lease is None and self._may_create():
            return False, _exception(HTTPStatus.NOT_FOUND, "not found")
        if lease is not None and self._may_update(lease):
            return True, None
        spec = {} if lease is None else lease.spec
        return True, LeaderElectionRecord(self.holder, "", str(spec.get("acquireTime")), str(spec.get("renewTime")))

    async def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        """Create the Lease with us as its holder, unless a leader may not know yet that it is gone."""
        if self._lease is not None or not self._may_create():
            return False
        sent_at = self._now()
        self._claimed = ""
        body = new_lease(self.name, self.namespace, self._annotations, **self._our_spec(self._transitions))
        return self._written(await self._client.attempt(self._post, self._path, body), sent_at)

    async def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        """Renew the Lease, or take it over, if that is right."""
        lease = self._lease
        if lease is None or not self._may_update(lease):
            return False
        sent_at = self._now()
        took_over = lease.holder != self.identity and not self._leadership.is_held()
        self._claimed = lease.version
        spec = self._our_spec(lease.transitions + 1 if took_over else lease.transitions)
        body = lease.with_spec(self._annotations, **spec)
        return self._written(await self._client.attempt(self._put, self._of_lease, body), sent_at)

    # --- what the watch and the elector call ---

    def observe(self, lease: Lease | None, version: str) -> None:
        """Take in what the watch reports: a version of the Lease, or None for its deletion at `version`."""
        if self._lease is not None and not is_newer(version, self._lease.version):
            return
        self._note(lease)
        if lease is None or lease.holder != self.identity:
            self.changed.set()

    def doubt(self) -> None:
        """Read the Lease before the next decision: nothing was heard of it for too long."""
        self._is_certain = False

    @property
    def holder(self) -> str:
        """The holder's identity as last seen; empty without a holder."""
        return "" if self._lease is None else self._lease.holder

    @property
    def leader(self) -> Leader:
        """The holder as last seen."""
        return leader_of(self.holder, {} if self._lease is None else self._lease.annotations)

    def seconds_to_wait(self) -> float:
        """How long the Lease cannot be taken if nothing happens to it; 0 if it can, or is not known."""
        return 0.0 if math.isinf(self._seen_at) else max(self._free_at() - self._now(), 0.0)

    async def release(self) -> bool:
        """Give the Lease up, if we hold it, so that another replica need not wait. The fence is closed before that.

        Whether it succeeded; otherwise it expires.
        """
        self._leadership.end()
        for _ in range(RELEASE_TRIES):
            if not self._is_certain and await self._read() is not None:
                continue
            lease = self._lease
            if lease is None or lease.holder != self.identity:
                return lease is not None and lease.is_released  # by a try whose answer was lost
            now = micro_time(self._time_of_day())
            body = lease.with_spec(
                holderIdentity="", leaseDurationSeconds=RELEASED_SECONDS, acquireTime=now, renewTime=now
            )
            if self._written(await self._client.attempt(self._put, self._of_lease, body), -math.inf):
                return True
        return False

    # --- internals ---

    def describe(self) -> str:
        """Its name for messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def _of_lease(self) -> str:
        return f"{self._path}/{self.name}"

    def _our_spec(self, transitions: int) -> dict[str, object]:
        now = micro_time(self._time_of_day())
        if not self._leadership.is_held():
            self._acquired_at = now
        return {
            "holderIdentity": self.identity,
            # Up, not down as in client-go: no replica may take over before a deadline with a fraction of a second.
            "leaseDurationSeconds": math.ceil(self._settings.lease_duration),
            "acquireTime": self._acquired_at,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    def _may_update(self, lease: Lease) -> bool:
        if self._leadership.ended.is_set():
            return False
        if self._leadership.is_held():
            return lease.holder in (self.identity, "")
        # In our name, but not by us, it was edited: another may still lead.
        return (lease.holder == self.identity and self._claimed is not None) or self._is_free()

    def _may_create(self) -> bool:
        return self._leadership.is_held() or self._is_free()

    def _is_free(self) -> bool:
        return not self._leadership.ended.is_set() and self._free_at() <= self._now()

    def _free_at(self) -> float:
        """The time at which the last leader has stopped for certain."""
        if self._lease is not None and self._lease.is_released:
            return self._seen_at
        return self._seen_at + max(self._term_seconds, self._settings.lease_duration)

    async def _read(self) -> ApiException | None:
        """Read the Lease; return what went wrong."""
        outcome = await self._client.attempt(self._get, self._of_lease)
        if outcome.status == HTTPStatus.NOT_FOUND:
            self._note(None)
            return None
        problem = "" if outcome.ok else outcome.message
        try:
            if outcome.ok:
                self._note(Lease.decode(outcome.body))
        except ValueError as error:
            problem = str(error)
        if not problem:
            return None
        log.warning("Error retrieving lease lock", extra={"lock": self.describe(), "err": problem})
        return _exception(outcome.status, problem)

    def _written(self, outcome: Outcome, sent_at: float) -> bool:
        """Evaluate the answer to a write. Except after a success, the Lease is read again: the write may have taken
        effect."""
        self._is_certain = False
        if not outcome.ok:
            log.warning("Failed to update lease", extra={"lock": self.describe(), "err": outcome.message})
            return False
        try:
            self._note(Lease.decode(outcome.body))
        except ValueError:
            return False
        return math.isinf(sent_at) or self._leadership.extend(sent_at + self._settings.renew_deadline)

    def _note(self, lease: Lease | None) -> None:
        """Take over what the API server says, and stop to lead if that is another holder."""
        known = self._lease
        if math.isinf(self._seen_at) or (lease and lease.term) != (known and known.term):
            self._seen_at = self._now()
        self._lease = lease
        self._is_certain = True
        version = "" if lease is None else lease.version
        if self.holder != self.identity and version != self._claimed:
            self._claimed = None
        if lease is not None:
            self._transitions = lease.transitions
            if lease.holder:
                self._term_seconds = lease.duration
            if self._leadership.began.is_set() and lease.holder not in (self.identity, ""):
                self._leadership.end()


def _exception(status: int, reason: str) -> ApiException:
    """An error as the library reads it: from the code in the body."""
    error = ApiException(status=status, reason=reason)
    error.body = f'{{"code":{status}}}'
    return error
