"""Devices that several claims share, each with a part of the capacity.

Rule: k8s.io/dynamic-resource-allocation structured/internal/incubating/consumable_capacity.go at v0.36.3.
"""

from collections.abc import Mapping
from typing import TypeAlias

from scheduler.api.devices import Capacity, CapacityPolicy, CapacityRange, CapacityRequirements, Quantity
from scheduler.api.quantity import parse_quantity, value_of

Consumed: TypeAlias = dict[str, int]
"""Capacity → amount in billionths."""


def fits(requested: CapacityRequirements | None, capacity: Mapping[str, Capacity], consumed: Mapping[str, int]) -> bool:
    """Return whether a device has enough capacity for a request on top of `consumed`, and its policies allow it.

    A request for a capacity that the device has not does not fit.
    """
    wanted = _requests(requested)
    if not wanted.keys() <= capacity.keys():
        return False
    for name, has in capacity.items():
        taken = _consumption(wanted.get(name), has)
        amount = parse_quantity(taken)
        if _violates(taken, amount, has.request_policy) or amount + consumed.get(name, 0) > parse_quantity(has.value):
            return False
    return True


def consumption(requested: CapacityRequirements | None, capacity: Mapping[str, Capacity]) -> dict[str, Quantity]:
    """Return what a request takes of each capacity of a device that it shares."""
    wanted = _requests(requested)
    return {name: _consumption(wanted.get(name), has) for name, has in capacity.items()}


def amounts(quantities: Mapping[str, Quantity]) -> Consumed:
    """Return quantities as amounts."""
    return {name: parse_quantity(value) for name, value in quantities.items()}


def _requests(requested: CapacityRequirements | None) -> Mapping[str, Quantity]:
    return (requested.requests if requested is not None else None) or {}


def _consumption(wanted: Quantity | None, capacity: Capacity) -> Quantity:
    policy = capacity.request_policy
    if wanted is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return wanted
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _up_into_range(wanted, policy.valid_range, policy.valid_range.min)
    if policy.valid_values is not None:
        amount = parse_quantity(wanted)
        return next((value for value in policy.valid_values if amount <= parse_quantity(value)), wanted)
    return wanted


def _up_into_range(wanted: Quantity, valid: CapacityRange, least: Quantity) -> Quantity:
    """Round up to the next step, counted from the least amount."""
    if parse_quantity(wanted) < parse_quantity(least):
        return least
    if valid.step is None:
        return wanted
    start, step = value_of(least), value_of(valid.step)
    return _binary(start - (start - value_of(wanted)) // step * step)


def _violates(taken: Quantity, amount: int, policy: CapacityPolicy | None) -> bool:
    if policy is None or (policy.default is not None and amount == parse_quantity(policy.default)):
        return False
    if policy.valid_range is not None:
        return _outside(taken, amount, policy.valid_range)
    if policy.valid_values:
        return all(amount != parse_quantity(value) for value in policy.valid_values)
    return False


def _outside(taken: Quantity, amount: int, valid: CapacityRange) -> bool:
    if valid.max is not None and amount > parse_quantity(valid.max):
        return True
    if valid.step is None or valid.min is None:
        return False
    return (value_of(taken) - value_of(valid.min)) % value_of(valid.step) != 0


def _binary(units: int) -> str:
    """Write a whole number as the API does in its binary form: 2147483648 → 2Gi."""
    for suffix in ("", "Ki", "Mi", "Gi", "Ti", "Pi"):
        if units == 0 or units % 1024:
            return f"{units}{suffix}"
        units //= 1024
    return f"{units}Ei"
