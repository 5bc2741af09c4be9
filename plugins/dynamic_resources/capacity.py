"""Devices that several claims share, each with a part of the capacity.

Rule: k8s.io/dynamic-resource-allocation structured/internal/incubating/consumable_capacity.go at v0.37.2.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from scheduler.api.canonical_quantity import canonical, written_like
from scheduler.api.devices import Capacity, CapacityPolicy, CapacityRange, CapacityRequirements, Quantity
from scheduler.api.quantity import INT64_MAX, NANO, parse_quantity, value_of

_NOT_REPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"

Consumed: TypeAlias = dict[str, int]
"""Capacity → amount in billionths."""


class CapacityError(Exception):
    """A request for capacity on which no device may be tried: the attempt fails. The text is kube-scheduler's."""


def fits(requested: CapacityRequirements | None, capacity: Mapping[str, Capacity], consumed: Mapping[str, int]) -> bool:
    """Return whether a device has enough capacity for a request on top of `consumed`, and its policies allow it.

    A request for a capacity that the device has not does not fit. Raises CapacityError.
    """
    if not _requests(requested).keys() <= capacity.keys():
        return False
    for name, taken in consumption(requested, capacity).items():
        has, amount = capacity[name], parse_quantity(taken)
        if _violates(taken, amount, has.request_policy) or amount + consumed.get(name, 0) > parse_quantity(has.value):
            return False
    return True


def consumption(requested: CapacityRequirements | None, capacity: Mapping[str, Capacity]) -> dict[str, Quantity]:
    """Return what a request takes of each capacity of a device. Raises CapacityError."""
    wanted = _requests(requested)
    taken = {}
    for name, has in sorted(capacity.items()):
        try:
            taken[name] = _consumption(wanted.get(name), has)
            if parse_quantity(taken[name]) < 0:
                raise CapacityError("capacity value is negative")
        except CapacityError as error:
            raise CapacityError(f'capacity "{name}": {error}') from error
    return taken


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
    """Round up to the next step, counted from the least amount. Raises CapacityError."""
    if parse_quantity(wanted) < parse_quantity(least):
        return least
    if valid.step is None:
        return wanted
    if parse_quantity(wanted) > INT64_MAX * NANO:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {canonical(wanted)} exceeds MaxInt64")
    start, step = value_of(least), value_of(valid.step)
    rounded = start - (start - value_of(wanted)) // step * step
    if start >= 0 and rounded > INT64_MAX:
        beyond = f"rounding request {canonical(wanted)} up to the next step passes MaxInt64"
        raise CapacityError(f"{_NOT_REPRESENTABLE}: {beyond}")
    return written_like(rounded * NANO, valid.step)


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
