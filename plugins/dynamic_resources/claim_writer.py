"""Writes allocations and reservations into ResourceClaims, and removes them.

Every write names the resource version that it was made for, so two that meet never mix: the later one is refused with
409 and made again for the version that the watch brings. Rule: dynamicresources/dynamicresources.go at v1.36.3
(bindClaim, Unreserve, PostFilter).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.claim_state import ClaimState
from plugins.dynamic_resources.gates import OF_GROUPS
from plugins.dynamic_resources.pod_claims import consumer
from scheduler import framework as fw
from scheduler.api.devices import CLAIM_FINALIZER, Allocation, ConsumerReference, ResourceClaim
from scheduler.api.versions import is_newer
from scheduler.api.wording.text import timestamp

_logger = logging.getLogger(__name__)

_RETRIES: Final = (0.01, 0.05, 0.2, 0.5, 1.0)
"""Seconds to wait, after a conflict, for the watch to bring the newest version."""

_RETRY_DEALLOCATION: Final = 5.0
"""Seconds after which a pod is tried again whose claim could not be deallocated: no event would bring it back."""

_MAX_SECONDS: Final = 900.0
"""For one change in the background, with all its retries and the wait for those of the same claim before it."""


class WriteFailed(fw.AttemptFailed):
    """A claim could not be written; the text says why."""


@dataclass(slots=True)
class _ClaimLock:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    """The number of tasks that hold the lock or wait for it."""


class ClaimWriter:
    """Writes through a handle."""

    def __init__(self, handle: fw.Handle, catalog: DeviceCatalog) -> None:
        self._handle = handle
        self._catalog = catalog
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._now = time.time
        self._locks: dict[str, _ClaimLock] = {}
        """UID → the lock of a claim that is being written."""
        self._jobs = handle.tasks.jobs("resourceclaim", _MAX_SECONDS)

    async def reserve(self, pod: fw.Pod, claim: ResourceClaim, allocation: Allocation | None) -> ResourceClaim:
        """Write the pod, or its group, into `reservedFor`, and the allocation if there is one. Return the stored claim.

        Raises WriteFailed.
        """

        group = self._handle.pod_groups.of(pod) if OF_GROUPS in self._catalog.gates.names else None
        reference = consumer(pod, claim, group)

        async def attempt(newest: ResourceClaim) -> ResourceClaim:
            return await self._reserve(reference, newest, allocation)

        return await self.change(claim, attempt)

    def unreserve(self, pod: fw.Pod, claim: ResourceClaim, uid: str = "") -> None:
        """Take the pod, or its group of this UID, out of `reservedFor`, in the background.

        If that fails, its next attempt finds it there.
        """
        self._jobs.start(f"unreserve {claim}", self._unreserve(pod, claim, uid or pod.uid))

    async def change(
        self, claim: ResourceClaim, attempt: Callable[[ResourceClaim], Awaitable[ResourceClaim]]
    ) -> ResourceClaim:
        """Make one change at a time per claim: pods that share one would only get conflicts.

        `attempt` gets the newest version, and is called again after a conflict. Raises WriteFailed.
        """
        claim_lock = self._locks.setdefault(claim.uid, _ClaimLock())
        claim_lock.users += 1
        try:
            async with claim_lock.lock:
                stored = await self._retried(self._newest(claim), attempt)
                self._catalog.allocations.assume(stored)
                return stored
        finally:
            claim_lock.users -= 1
            if not claim_lock.users:
                del self._locks[claim.uid]

    async def patch(
        self, claim: ResourceClaim, metadata: Mapping[str, Any], status: Mapping[str, Any] | None, what: str
    ) -> ResourceClaim:
        """Write one part of a claim. Raises fw.ApiError, with `what` before its text."""
        version = {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}
        patch: dict[str, Any] = {"metadata": {**version, **metadata}}
        if status is not None:
            patch["status"] = status
        subresource = "" if status is None else "status"
        name, namespace = claim.metadata.name, claim.metadata.namespace
        try:
            stored: ResourceClaim = await self._handle.api.patch(fw.RESOURCE_CLAIM, name, namespace, patch, subresource)
        except fw.ApiError as error:
            raise fw.ApiError(error.status, f"{what}: {error}") from error
        return stored

    def deallocate(self, pod: fw.Pod, claim: ResourceClaim) -> None:
        """Give the devices of a claim back, in the background; the event of that wakes `pod`."""

        def ended(error: BaseException | None) -> None:
            if error is not None:  # no event would bring it back
                self._handle.activator.activate((pod.uid,))

        self._jobs.start(f"deallocate {claim}", self._deallocate(pod, claim), ended)

    async def _reserve(
        self, reference: ConsumerReference, claim: ResourceClaim, allocation: Allocation | None
    ) -> ResourceClaim:
        if claim.metadata.deletion_timestamp is not None:
            raise WriteFailed(f"claim {claim} got deleted in the meantime")
        if allocation is None and claim.status.allocation is None:
            raise WriteFailed(f"claim {claim} got deallocated elsewhere in the meantime")
        if allocation is not None and allocation == _without_time(claim.status.allocation):
            allocation = None  # another pod of the group has written it
        if allocation is not None:
            if claim.status.allocation is not None:
                raise WriteFailed(f"claim {claim} got allocated elsewhere in the meantime")
            finalizers = claim.metadata.finalizers or ()
            if CLAIM_FINALIZER not in finalizers:
                claim = await self.patch(
                    claim, {"finalizers": [*finalizers, CLAIM_FINALIZER]}, None, f"add finalizer to claim {claim}"
                )
        others = [each for each in claim.status.reserved_for or () if each.uid != reference.uid]
        consumers = (*others, reference)
        status: dict[str, Any] = {"reservedFor": msgspec.to_builtins(consumers)}
        written = allocation or claim.status.allocation
        if allocation is not None:
            status["allocation"] = allocation
        if written is not None and written.allocation_timestamp is None:
            stamp = timestamp(self._now())
            status["allocation"] = (
                {"allocationTimestamp": stamp}
                if allocation is None
                else msgspec.structs.replace(allocation, allocation_timestamp=stamp)
            )
        what = "add allocation and reservation" if allocation is not None else "add reservation"
        return await self.patch(claim, {}, status, f"{what} to claim {claim}")

    async def _unreserve(self, pod: fw.Pod, claim: ResourceClaim, uid: str) -> None:
        async def attempt(newest: ResourceClaim) -> ResourceClaim:
            left = [each for each in newest.status.reserved_for or () if each.uid != uid]
            if len(left) == len(newest.status.reserved_for or ()):
                return newest
            return await self.patch(newest, {}, {"reservedFor": msgspec.to_builtins(left) or None}, "unreserve")

        try:
            await self.change(claim, attempt)
        except WriteFailed as error:
            _logger.error("unreserve", extra={"pod": str(pod), "resourceclaim": str(claim), "err": str(error)})

    async def _deallocate(self, pod: fw.Pod, claim: ResourceClaim) -> None:
        freed = {"reservedFor": None, "allocation": None, "devices": None}
        try:
            await self.patch(claim, {}, freed, "deallocate")
        except (WriteFailed, fw.ApiError) as error:
            fields = {"pod": str(pod), "resourceclaim": str(claim), "err": str(error)}
            _logger.error("Deallocation of ResourceClaim failed", extra=fields)
            await self._sleep(_RETRY_DEALLOCATION)
            self._handle.activator.activate((pod.uid,))

    def _newest(self, claim: ResourceClaim) -> ResourceClaim:
        meta = claim.metadata
        known = self._catalog.allocations.claim(meta.namespace, meta.name)
        if known is None or known.uid != claim.uid:
            return claim  # the API server will say so too
        return claim if is_newer(meta.resource_version, known.metadata.resource_version) else known

    async def _retried(
        self, claim: ResourceClaim, attempt: Callable[[ResourceClaim], Awaitable[ResourceClaim]]
    ) -> ResourceClaim:
        """Attempt a write, and after a conflict again with a newer version of the claim."""
        is_new = self._catalog.allocations.claim(claim.metadata.namespace, claim.metadata.name) is None
        conflict: fw.ApiError | None = None
        for wait in (*_RETRIES, 0.0):
            try:
                return await attempt(claim)
            except fw.ApiError as error:
                if error.status != 409:
                    raise WriteFailed(str(error)) from error
                conflict = error
            await self._sleep(wait)
            newest = self._catalog.allocations.claim(claim.metadata.namespace, claim.metadata.name)
            if newest is None and is_new:
                continue  # the watch has not shown it yet
            if newest is None or newest.uid != claim.uid:
                raise WriteFailed(f"claim {claim} got deleted in the meantime") from conflict
            claim, is_new = newest, False
        raise WriteFailed(str(conflict)) from conflict


def _without_time(allocation: Allocation | None) -> Allocation | None:
    return None if allocation is None else msgspec.structs.replace(allocation, allocation_timestamp=None)


DEALLOCATED: Final = fw.unschedulable("deallocation of PodGroup ResourceClaim completed")
UNRESERVED: Final = fw.unresolvable("ResourceClaim unreserved for PodGroup")


def release_of_group(
    group: fw.PodGroup, states: Sequence[tuple[ClaimState, fw.Pod]], groups: fw.PodGroups, writer: ClaimWriter
) -> fw.Status | None:
    """Give back one claim of a group of which no pod has a node; return None if there is none. `states`: one at least.

    First the devices of one that some node cannot use; else the group no longer reserves one.
    Rule: dynamicresources/dynamicresources.go at v1.37.2 (deallocatePodGroupClaims), with DRAWorkloadResourceClaims.
    """
    first = states[0][1]
    if groups.members(first).scheduled_count:
        return None
    for claim_state, pod in states:
        for claim in only_for(claim_state, group.uid):
            writer.deallocate(pod, claim)
            return DEALLOCATED
    for claim_state, pod in states:
        for claim in claim_state.users:
            reserved = {each.uid for each in claim.status.reserved_for or ()}
            is_in_use = claim.status.allocation is not None and reserved & {group.uid, first.uid}
            if is_in_use and consumer(pod, claim, group).uid == group.uid:
                writer.unreserve(pod, claim, group.uid)
                return UNRESERVED
    return None


def only_for(claim_state: ClaimState, uid: str) -> Iterator[ResourceClaim]:
    """Yield the claims whose devices some node cannot use, and that are reserved for nothing else."""
    for i in sorted(claim_state.unavailable):
        claim = claim_state.claims[i]
        if {each.uid for each in claim.status.reserved_for or ()} <= {uid}:
            yield claim
