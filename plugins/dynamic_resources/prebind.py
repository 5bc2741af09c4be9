"""PreBind: writes the reserved allocations, and waits for devices that have to be made ready.

    for each claim of the pod's spec: allocation and reservation ─► the claim for extended resources ─► the pod's status
        ─► what the pod takes by devices, in its status ─► all devices ready ─► the pod can be bound

Rule: dynamicresources/dynamicresources.go at v1.36.3 (PreBind, bindClaim, isPodReadyForBinding,
isClaimReadyForBinding, isClaimTimeout).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.amounts.writer import AmountsWriter
from plugins.dynamic_resources.claim_state import ClaimState
from plugins.dynamic_resources.claim_writer import ClaimWriter, WriteFailed
from plugins.dynamic_resources.extended.claims import is_in_memory
from plugins.dynamic_resources.extended.writer import ExtendedClaimWriter
from plugins.dynamic_resources.gates import NODE_AMOUNTS
from plugins.dynamic_resources.pod_claims import is_reserved
from scheduler import framework as fw
from scheduler.api.devices import DeviceCondition, DeviceResult, ResourceClaim

_POLL_SECONDS: Final = 5.0
"""How often a binding that waits for devices looks at their conditions."""


class PreBinding:
    """For one profile."""

    def __init__(
        self,
        handle: fw.Handle,
        catalog: DeviceCatalog,
        writer: ClaimWriter,
        extended_writer: ExtendedClaimWriter,
        amounts_writer: AmountsWriter,
        timeout: float,
    ) -> None:
        """`timeout`: how many seconds a binding waits for devices that have to be made ready."""
        self._handle = handle
        self._catalog = catalog
        self._writer = writer
        self._extended_writer = extended_writer
        self._amounts_writer = amounts_writer
        self._timeout = timeout
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self, pod: fw.Pod, claim_state: ClaimState, node_name: str) -> None:
        """Return once the pod can be bound. Raises WriteFailed, BindingFailed."""
        for i, claim in enumerate(claim_state.users):
            if is_reserved(pod, claim, self._catalog.gates):
                continue
            is_written = False
            try:
                claim_state.claims[i] = await self._writer.reserve(pod, claim, claim_state.reserved.get(i))
                is_written = True
            finally:
                # From here on the claim itself shows it, or the devices are free if no other pod of the group needs it.
                if claim_state.reserved.pop(i, None) is not None:
                    self._catalog.allocations.release(claim.uid, is_written=is_written)
        await self._write_extended(pod, claim_state)
        if pod.status.node_allocatable_resource_claim_statuses and NODE_AMOUNTS in self._catalog.gates.names:
            claim_state.is_amount_written = True
            await self._amounts_writer.write(pod)
        if any(map(needs_waiting, claim_state.claims)):
            note = f"waiting for binding conditions for device on node {node_name}"
            self._handle.events.event(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
            with waiting_counted(claim_state.claims, self._handle.metrics, self._handle.profile_name):
                await self._wait_until_ready(claim_state)

    async def _write_extended(self, pod: fw.Pod, claim_state: ClaimState) -> None:
        """Create the claim for extended resources, if the node needs one, and write into it and into the pod."""
        i = claim_state.of_extended
        allocation = claim_state.reserved.pop(i, None)
        if allocation is None:
            return
        claim = claim_state.claims[i]
        try:
            if not claim_state.mappings:  # what is asked for is no number of devices
                raise WriteFailed(f"nil or empty request mappings, no update of pod {pod} ExtendedResourceClaimStatus")
            created = claim_state.claims[i] = await self._extended_writer.create(pod, claim)
            self._catalog.allocations.created(claim.uid, created)
            claim = created
            written = claim_state.claims[i] = await self._writer.reserve(pod, created, allocation)
        except BaseException:
            self._catalog.allocations.release(claim.uid)
            raise
        self._catalog.allocations.assume_created(written)
        await self._extended_writer.write_mappings(pod, written, claim_state.mappings)

    async def _wait_until_ready(self, claim_state: ClaimState) -> None:
        deadline = time.monotonic() + self._timeout
        while not self._all_ready(claim_state):
            if time.monotonic() > deadline:
                raise BindingTimedOut("device binding timeout: context deadline exceeded")
            await self._sleep(_POLL_SECONDS)

    def _all_ready(self, claim_state: ClaimState) -> bool:
        for i, known in enumerate(claim_state.claims):
            if is_in_memory(known):
                continue  # the node offers what it is for
            claim = self._catalog.allocations.claim(known.metadata.namespace, known.metadata.name)
            if claim is None:
                raise WriteFailed(f'could not find ResourceClaim "{known}"')
            claim_state.claims[i] = claim
            if not is_ready(claim):
                if is_overdue(claim, self._timeout, time.time()):
                    raise BindingTimedOut(f"device binding timeout: claim={claim.metadata.name}")
                return False
        return True


class BindingFailed(fw.AttemptFailed):
    """A driver says that a device will not become ready."""


class BindingTimedOut(BindingFailed):
    """Devices were not made ready in time."""


def needs_waiting(claim: ResourceClaim) -> bool:
    """Return whether any device of the claim has conditions."""
    return any(result.binding_conditions for result in claim.results)


def is_ready(claim: ResourceClaim) -> bool:
    """Return whether all conditions of all devices are true. Raises BindingFailed if a failure condition is."""
    if claim.status.allocation is None:
        return False
    for result in claim.results:
        if not result.binding_conditions:
            continue
        conditions = _conditions_of(claim, result)
        if conditions is None:
            return False
        for name in result.binding_failure_conditions or ():
            condition = conditions.get(name)
            if condition is not None and condition.status == "True":
                why = f'reason={condition.reason}, message="{condition.message}"'
                raise BindingFailed(f"device binding failed: claim={claim.metadata.name}, {why}")
        if not all(name in conditions and conditions[name].status == "True" for name in result.binding_conditions):
            return False
    return True


def is_overdue(claim: ResourceClaim, timeout: float, now: float) -> bool:
    """Return whether the claim was allocated longer than `timeout` seconds ago. `now`: seconds since 1970."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    if all(result.binding_conditions is None for result in claim.results):
        return False
    return datetime.fromisoformat(allocation.allocation_timestamp).timestamp() + timeout < now


@contextmanager
def waiting_counted(claims: Sequence[ResourceClaim], metrics: fw.Metrics, profile: str) -> Iterator[None]:
    """Count and time a wait, the body of the `with` statement, by the drivers of the claims as they are at its end."""
    started, status = time.monotonic(), "error"
    try:
        yield
        status = "success"
    except BindingTimedOut:
        status = "timeout"
        raise
    except BindingFailed:
        status = "failure"
        raise
    finally:
        seconds = time.monotonic() - started
        for result in (each for claim in claims for each in claim.results):
            metrics.dra_binding_conditions_wait_duration.labels(profile, result.driver, status).observe(seconds)
            if result.binding_conditions:
                metrics.dra_binding_conditions_allocations.labels(profile, result.driver, status).inc()


def _conditions_of(claim: ResourceClaim, result: DeviceResult) -> dict[str, DeviceCondition] | None:
    """The conditions that the driver reports of a device, by type; None if it reports nothing."""
    for device in claim.status.devices or ():
        if (device.driver, device.pool, device.device) == (result.driver, result.pool, result.device):
            return {condition.type: condition for condition in device.conditions or ()}
    return None
