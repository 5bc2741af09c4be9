"""Node resources that a pod takes through its devices, in addition to what its containers request.

Rule: k8s.io/component-helpers resource/helpers.go (addDRANodeAllocatableClaimResources) at v0.37.2.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from scheduler.api.objects import ClaimAmounts, PodStatus, Quantity
from scheduler.api.quantities.go_quantity import GoQuantity

Amount: TypeAlias = int | GoQuantity
"""In billionths, or as Go has it if one of a pod comes out beyond all proportion: all are of one kind then. Sums are
exact in both kinds; only what is left of them in an int64 may differ."""

Totals: TypeAlias = dict[str, Any]
"""Resource name → Amount."""

Read: TypeAlias = Callable[[Quantity], Amount]


def device_amounts(status: PodStatus, read: Read) -> Totals:
    """Return what a pod's status says. Raises ValueError for a quantity that cannot be read."""
    total: Totals = {}
    for claim in status.node_allocatable_resource_claim_statuses or ():
        try:
            add(total, _amounts_of(claim, read, len(claim.containers or ())))
        except ValueError as error:
            raise ValueError(f"resources by claim {claim.resource_claim_name}: {error}") from error
    return total


def amounts_of_container(status: PodStatus, container: str, read: Read) -> Totals:
    """Return how much of it one container may use. Rule: GetContainerDRAAllocations."""
    total: Totals = {}
    for claim in status.node_allocatable_resource_claim_statuses or ():
        if container in (claim.containers or ()):
            add(total, _amounts_of(claim, read, 1))
    return total


def _amounts_of(claim: ClaimAmounts, read: Read, users: int) -> Totals:
    found: Totals = {}
    for mapped in claim.mapping or ():
        if mapped.quantity is not None:
            add(found, {mapped.name: read(mapped.quantity)})
    for each in claim.overhead or ():
        add(found, {each.name: read(each.per_pod or 0)})
        add(found, {each.name: read(each.per_container or 0) * users})
    return found


def add(total: Totals, more: Totals) -> None:
    """Add amounts to a total."""
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount
