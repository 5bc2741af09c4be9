"""Devices that several claims share, each with a part of the capacity.

Rule: k8s.io/dynamic-resource-allocation structured/internal/incubating/consumable_capacity.go at v0.37.2.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from scheduler.api.devices import Capacity, CapacityPolicy, CapacityRange, CapacityRequirements
from scheduler.api.objects import Quantity
from scheduler.api.quantities.quantity import INT64_MAX, NANO, canonical, parse_quantity, value_of, written_like

_NOT_REPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"

Consumed: TypeAlias = dict[str, int]
"""Capacity → amount in billionths."""


class CapacityError(Exception):
    """A request for capacity on which no device may be tried: the attempt fails. The text is kube-scheduler's."""


class CapacityMath:
    """The arithmetic of requests and policies."""

    def __init__(self, *, is_fractional: bool) -> None:
        """`is_fractional`: whether ranges are computed with in thousandths, as the gate DRAFractionalCapacityRange asks
        for, not in whole numbers."""
        self._is_fractional = is_fractional

    def fits(
        self, requested: CapacityRequirements | None, capacity: Mapping[str, Capacity], consumed: Mapping[str, int]
    ) -> bool:
        """Return whether a device has enough capacity for a request on top of `consumed`, and its policies allow it.

        A request for a capacity that the device has not does not fit. Raises CapacityError.
        """
        if not _requests(requested).keys() <= capacity.keys():
            return False
        for name, taken in self.consumption(requested, capacity).items():
            has, amount = capacity[name], parse_quantity(taken)
            if self._violates(taken, amount, has.request_policy):
                return False
            if amount + consumed.get(name, 0) > parse_quantity(has.value):
                return False
        return True

    def consumption(
        self, requested: CapacityRequirements | None, capacity: Mapping[str, Capacity]
    ) -> dict[str, Quantity]:
        """Return what a request takes of each capacity of a device. Raises CapacityError."""
        wanted = _requests(requested)
        taken = {}
        for name, has in sorted(capacity.items()):
            try:
                taken[name] = self._consumption(wanted.get(name), has)
                if parse_quantity(taken[name]) < 0:
                    raise CapacityError("capacity value is negative")
            except CapacityError as error:
                raise CapacityError(f'capacity "{name}": {error}') from error
        return taken

    def _consumption(self, wanted: Quantity | None, capacity: Capacity) -> Quantity:
        policy = capacity.request_policy
        if wanted is None:
            return capacity.value if policy is None or policy.default is None else policy.default
        if policy is None:
            return wanted
        if policy.valid_range is not None and policy.valid_range.min is not None:
            return self._up_into_range(wanted, policy.valid_range, policy.valid_range.min)
        if policy.valid_values is not None:
            amount = parse_quantity(wanted)
            return next((value for value in policy.valid_values if amount <= parse_quantity(value)), wanted)
        return wanted

    def _up_into_range(self, wanted: Quantity, valid: CapacityRange, least: Quantity) -> Quantity:
        """Round up to the next step, counted from the least amount. Raises CapacityError."""
        if parse_quantity(wanted) < parse_quantity(least):
            return least
        if valid.step is None:
            return wanted
        unit = self._unit_of(valid)
        requested = unit.amount(wanted)
        if requested is None:
            raise CapacityError(f"{_NOT_REPRESENTABLE}: request {canonical(wanted)} {unit.lacks_request}")
        start, step = unit.value(least), unit.value(valid.step)
        rounded = start - (start - requested) // step * step
        if start >= 0 and rounded > INT64_MAX:
            beyond = f"rounding request {canonical(wanted)} up to the next step passes {unit.limit}"
            raise CapacityError(f"{_NOT_REPRESENTABLE}: {beyond}")
        return written_like(rounded * unit.nanos, valid.step)

    def _violates(self, taken: Quantity, amount: int, policy: CapacityPolicy | None) -> bool:
        if policy is None or (policy.default is not None and amount == parse_quantity(policy.default)):
            return False
        if policy.valid_range is not None:
            return self._outside(taken, amount, policy.valid_range)
        if policy.valid_values:
            return all(amount != parse_quantity(value) for value in policy.valid_values)
        return False

    def _outside(self, taken: Quantity, amount: int, valid: CapacityRange) -> bool:
        if valid.max is not None and amount > parse_quantity(valid.max):
            return True
        if valid.step is None or valid.min is None:
            return False
        unit = self._unit_of(valid)
        if unit is _THOUSANDTHS and unit.amount(taken) is None:
            return True
        return (unit.value(taken) - unit.value(valid.min)) % unit.value(valid.step) != 0

    def _unit_of(self, valid: CapacityRange) -> "_Unit":
        """Rule: useMilli."""
        if not self._is_fractional:
            return _WHOLE
        given = [each for each in (valid.min, valid.max, valid.step) if each is not None]
        are_exact = all(_THOUSANDTHS.amount(each) is not None for each in given)
        has_step = valid.step is None or parse_quantity(valid.step) >= _THOUSANDTHS.nanos
        return _THOUSANDTHS if are_exact and has_step else _WHOLE


class _Unit(NamedTuple):
    """A unit in which the amounts of a range are counted, as int64."""

    nanos: int
    amount: Callable[[Quantity], int | None]
    """The count of a request; None if it cannot be counted."""
    value: Callable[[Quantity], int]
    lacks_request: str
    """Said of a request that cannot be counted."""
    limit: str
    """The name of the largest number."""


def _whole_of_request(quantity: Quantity) -> int | None:
    return None if parse_quantity(quantity) > INT64_MAX * NANO else value_of(quantity)


def _exact_thousandths(quantity: Quantity) -> int | None:
    """Rule: safeMilliValue."""
    found, rest = divmod(parse_quantity(quantity), _MILLI)
    return None if rest or not -INT64_MAX <= found <= INT64_MAX else found


_MILLI: Final = 1_000_000
_WHOLE: Final = _Unit(NANO, _whole_of_request, value_of, "exceeds MaxInt64", "MaxInt64")
_THOUSANDTHS: Final = _Unit(
    _MILLI,
    _exact_thousandths,
    lambda quantity: parse_quantity(quantity) // _MILLI,
    "is not a representable milli value",
    "the milli-value range",
)


def amounts(quantities: Mapping[str, Quantity]) -> Consumed:
    """Return quantities as amounts."""
    return {name: parse_quantity(value) for name, value in quantities.items()}


def _requests(requested: CapacityRequirements | None) -> Mapping[str, Quantity]:
    return (requested.requests if requested is not None else None) or {}
