"""Devices that have to be made ready before their pod may be bound.

Rule: dynamicresources/dynamicresources.go at v1.36.3 (isClaimReadyForBinding, isClaimTimeout).
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from scheduler import framework as fw
from scheduler.api.devices import DeviceCondition, DeviceResult, ResourceClaim


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
