"""Creates and deletes the claims for extended resources, and writes into the pod which one is its own.

    created ─► finalizer ─► status: allocation and reservation (ClaimWriter) ─► status of the pod ─► bound
       └──────────┴──────────────────────────┴────────── fails ──────┴─► finalizer removed ─► deleted

Whatever fails, or is cut short by a restart, leaves an object that names the pod: the pod's next attempt finds and
deletes it, and if the pod is gone, the garbage collector does. Rule: dynamicresources/extendeddynamicresources.go at
v1.36.3 (createExtendedResourceClaimInAPI, patchPodExtendedResourceClaimStatus, deleteClaim).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from plugins.dynamic_resources.claim_writer import ClaimWriter, WriteFailed
from plugins.dynamic_resources.extended.claims import content_of, status_of
from plugins.dynamic_resources.extended.requests import RequestMapping
from scheduler import framework as fw
from scheduler.api.devices import CLAIM_FINALIZER, ResourceClaim

_logger = logging.getLogger(__name__)

_NAMES: Final = 3
"""Names to try for a new claim."""

_RETRY_DELETION: Final = 5.0
"""Seconds after which a pod is tried again whose claim could not be deleted."""

_MAX_SECONDS: Final = 900.0
"""For one deletion, with all its retries."""

_DROPPED: Final = "the API server dropped it: its feature gate DRAExtendedResource is off, the default before 1.36"


class ExtendedClaimWriter:
    """Writes through a handle."""

    def __init__(self, handle: fw.Handle, writer: ClaimWriter) -> None:
        self._handle = handle
        self._writer = writer
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._jobs = handle.tasks.jobs("extended resource claim", _MAX_SECONDS)

    async def create(self, pod: fw.Pod, claim: ResourceClaim) -> ResourceClaim:
        """Create the claim that is in memory so far. Raises WriteFailed."""
        for left in reversed(range(_NAMES)):
            try:
                created: ResourceClaim = await self._handle.api.create(fw.RESOURCE_CLAIM, content_of(pod, claim))
            except fw.ApiError as error:
                if error.status == 409 and left:
                    continue  # the name is taken
                self._count("failure")
                raise WriteFailed(f"create claim for extended resources {claim}: {error}") from error
            self._count("success")
            return created
        raise AssertionError("the last try returns or raises")

    def _count(self, status: str) -> None:
        self._handle.metrics.resource_claim_creates.labels(status, "false", "", "Pod").inc()

    async def write_mappings(self, pod: fw.Pod, claim: ResourceClaim, mappings: Iterable[RequestMapping]) -> None:
        """Write into the pod's status which claim it has. Raises WriteFailed, also where the API server drops it."""
        status = status_of(claim, mappings)
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            stored = await self._handle.api.patch(fw.POD, pod.name, pod.namespace, patch, "status")
        except fw.ApiError as error:
            raise WriteFailed(f"update pod {pod} ExtendedResourceClaimStatus: {error}") from error
        if not status.keys() <= stored.content.get("status", {}).keys():  # no kubelet would find the devices
            raise WriteFailed(f"update pod {pod} ExtendedResourceClaimStatus: {_DROPPED}")

    def delete(self, pod: fw.Pod, claim: ResourceClaim) -> None:
        """Delete a claim in the background. When it is gone the catalog wakes the pod; if that fails, this does."""

        def ended(error: BaseException | None) -> None:
            if error is not None:
                self._handle.activator.activate((pod.uid,))

        self._jobs.start(f"delete {claim}", self._delete(pod, claim), ended)

    async def _delete(self, pod: fw.Pod, claim: ResourceClaim) -> None:
        async def without_finalizer(newest: ResourceClaim) -> ResourceClaim:
            finalizers = newest.metadata.finalizers or ()
            if CLAIM_FINALIZER not in finalizers:
                return newest
            left = [each for each in finalizers if each != CLAIM_FINALIZER]
            return await self._writer.patch(newest, {"finalizers": left or None}, None, "remove finalizer")

        meta = claim.metadata
        try:
            await self._writer.change(claim, without_finalizer)
            await self._handle.api.delete(fw.RESOURCE_CLAIM, meta.name, meta.namespace, claim.uid)
        except (WriteFailed, fw.ApiError) as error:
            if _is_gone(error):
                return
            fields = {"pod": str(pod), "resourceclaim": str(claim), "err": str(error)}
            _logger.error("A claim for extended resources could not be deleted", extra=fields)
            await self._sleep(_RETRY_DELETION)
            self._handle.activator.activate((pod.uid,))


def _is_gone(error: BaseException) -> bool:
    cause = error if isinstance(error, fw.ApiError) else error.__cause__
    return isinstance(cause, fw.ApiError) and cause.status == 404
