"""Writes the node resources that a pod takes through devices into its status; clears them if it is not bound after all.

    PreBind: written ─► … ─► bound
                 └─ fails ─► Unreserve: cleared in the background ─► the pod's next PreBind waits for that

Rule: dynamicresources/nodeallocatabledynamicresources.go at v1.37.2 (patchNodeAllocatableResourceClaimStatus,
clearNodeAllocatableResourceClaimStatus).
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from plugins.dynamic_resources.claim_writer import WriteFailed
from scheduler import framework as fw
from scheduler.api.objects import ClaimAmounts

_logger = logging.getLogger(__name__)

_MAX_SECONDS: Final = 900.0
"""For one status in the background, with all its retries."""


class AmountsWriter:
    """Writes through a handle."""

    def __init__(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._jobs = handle.tasks.jobs("amounts of devices", _MAX_SECONDS)
        self._cleared: dict[str, asyncio.Event] = {}
        """UID of a pod whose status is being cleared → set when that has ended."""

    async def write(self, pod: fw.Pod) -> None:
        """Write what the pod's status is to say. Raises WriteFailed."""
        if pod.uid in self._cleared:
            await self._cleared[pod.uid].wait()
        try:
            await self._patch(pod, pod.status.node_allocatable_resource_claim_statuses or ())
        except fw.ApiError as error:
            raise WriteFailed(f"updating pod {pod} NodeAllocatableResourceClaimStatuses: {error}") from error

    def clear(self, pod: fw.Pod) -> None:
        """Clear it in the background."""
        self._cleared[pod.uid] = cleared = asyncio.Event()

        def ended(error: BaseException | None) -> None:
            cleared.set()
            if self._cleared.get(pod.uid) is cleared:
                del self._cleared[pod.uid]

        self._jobs.start(f"clear amounts of {pod}", self._clear(pod), ended)

    async def _clear(self, pod: fw.Pod) -> None:
        try:
            await self._patch(pod, ())
        except fw.ApiError as error:
            if error.status != 404:
                fields = {"pod": str(pod), "err": str(error)}
                _logger.error("Failed to clear NodeAllocatableResourceClaimStatuses on Unreserve", extra=fields)

    async def _patch(self, pod: fw.Pod, amounts: Sequence[ClaimAmounts]) -> None:
        """An empty list, unlike none, clears the field."""
        status: dict[str, Any] = {"nodeAllocatableResourceClaimStatuses": msgspec.to_builtins(amounts)}
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        await self._handle.api.patch(fw.POD, pod.name, pod.namespace, patch, "status")
