"""Exact amounts of quotas: one that overflows 64 bits is more than MAX, not 0 as in Go."""

from typing import Final

from scheduler.api.objects import ResourceList
from scheduler.api.pods.requests import CPU, allocatable_of
from scheduler.api.quantities.quantity import NANO, parse_quantity

MAX: Final = 2**63 - 1


def amounts_in(resources: ResourceList | None) -> dict[str, int]:
    """Return the amounts of all resources that scheduling counts. Raises ValueError for one that cannot be read."""
    return {name: amount_of(name, resources[name]) for name in allocatable_of(resources)} if resources else {}


def amount_of(resource: str, quantity: str | int | float) -> int:
    """Return a quantity as pods count it: thousandths of cpu, units of all else, rounded up.

    Raises ValueError for one that cannot be read.
    """
    return -(-parse_quantity(quantity) // (NANO // 1000 if resource == CPU else NANO))
