"""Constraints on the devices of a claim: attributes that must match, or be distinct.

With the gate DRAListTypeAttributes an attribute is a set of values: those that match have one in common, distinct ones
none. Rule: k8s.io/dynamic-resource-allocation structured/internal/experimental/allocator_experimental.go
(matchAttribute) and constraint.go (distinctAttribute) at v0.37.2.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from plugins.dynamic_resources.allocation.derived_attributes import derived_attribute
from plugins.dynamic_resources.allocation.pools import DeviceId, Pool, PoolId, SliceDevice
from plugins.dynamic_resources.allocation.requests import Request
from scheduler.api.devices import Attribute, CounterConsumption, DeviceConstraint

Values: TypeAlias = frozenset[tuple[str, Any]]
"""Each with its kind: 1 is not true, and a version is not a string. Empty for an unknown kind."""


class Constraint(Protocol):
    """Keeps track of the devices taken so far. Each `add` that succeeded has its `remove`, in reverse order."""

    def add(self, request: Request, device: SliceDevice) -> bool:
        """Return whether the device may be taken; then it counts. Raises DevicesError."""

    def remove(self, request: Request) -> None:
        """Undo `add`."""


def constraint_of(written: DeviceConstraint, *, has_lists: bool) -> Constraint | None:
    """Return a constraint with nothing taken; None for one of an unknown kind."""
    requests = frozenset(written.requests or ())
    if written.match_attribute is not None:
        return _Match(requests, written.match_attribute, has_lists=has_lists)
    if written.distinct_attribute is not None:
        return _Distinct(requests, written.distinct_attribute, has_lists=has_lists)
    return None


class _OnAttribute:
    def __init__(self, requests: frozenset[str], attribute: str, *, has_lists: bool) -> None:
        self._requests = requests
        self._attribute = attribute
        self._has_lists = has_lists
        self._taken: list[Values] = []

    def add(self, request: Request, device: SliceDevice) -> bool:
        if not self._applies(request):
            return True
        attribute = self._attribute_of(request, device)
        if attribute is None:
            return False
        values = (self._has_lists and _listed(attribute)) or _single(attribute)
        if not values and (self._has_lists or self._taken):
            return False
        remembered = self._joined(values)
        if remembered is None:
            return False
        self._taken.append(remembered)
        return True

    def remove(self, request: Request) -> None:
        if self._applies(request):
            self._taken.pop()

    def _joined(self, values: Values) -> Values | None:
        """Return what to remember of a device with these values; None if it may not be taken."""
        raise NotImplementedError

    def _applies(self, request: Request) -> bool:
        """Return whether the constraint applies; without requests it applies to all."""
        return not self._requests or not self._requests.isdisjoint((request.base_and_sub[0], request.full_name))

    def _attribute_of(self, request: Request, device: SliceDevice) -> Attribute | None:
        """The name may leave out the domain on the device's side, if that is its driver."""
        if self._attribute in request.derived:
            return derived_attribute(self._attribute, request.derived[self._attribute], device)
        attributes = device.device.attributes or {}
        found = attributes.get(self._attribute)
        if found is None:
            domain, slash, name = self._attribute.partition("/")
            if slash and domain == device.id.driver:
                found = attributes.get(name)
        return found


class _Match(_OnAttribute):
    """All devices have a value in common, which is remembered."""

    def _joined(self, values: Values) -> Values | None:
        return (self._taken[-1] & values) or None if self._taken else values


class _Distinct(_OnAttribute):
    """No two have a value in common."""

    def _joined(self, values: Values) -> Values | None:
        return values if all(map(values.isdisjoint, self._taken)) else None


def _listed(attribute: Attribute) -> Values:
    """The values of a list; empty for an attribute with one value."""
    for kind, values in (
        ("int", attribute.int_values),
        ("bool", attribute.bool_values),
        ("string", attribute.string_values),
        ("version", attribute.version_values),
    ):
        if values:
            return frozenset((kind, each) for each in values)
    return frozenset()


def _single(attribute: Attribute) -> Values:
    for kind, value in (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    ):
        if value is not None:
            return frozenset([(kind, value)])
    return frozenset()


Groups: TypeAlias = frozenset[str]

_WITHOUT: Final[Groups] = frozenset({""})
"""Devices without groups are compatible with each other, and with no others."""


class CompatibilityGroups:
    """The groups that the devices on each counter set have in common, in one search.

    Only such devices draw on one set together. Rule: compatibility_groups.go, next to allocator_experimental.go.
    """

    def __init__(self, is_allocated: Callable[[DeviceId], bool]) -> None:
        self._is_allocated = is_allocated
        self._common: dict[PoolId, dict[str, Groups]] = {}

    def join(self, pool: Pool, device: SliceDevice) -> Callable[[], None] | None:
        """Let a device draw on its counter sets; return how to undo it, None if it is not compatible."""
        common = self._common.get(pool.id)
        if common is None:
            common = self._common[pool.id] = self._of_allocated(pool)
        before = dict(common)
        for consumed in device.device.consumes_counters or ():
            if not common.get(consumed.counter_set, groups_of(consumed)) & groups_of(consumed):
                self._common[pool.id] = before
                return None
            _add(common, consumed)

        def undo() -> None:
            self._common[pool.id] = before

        return undo

    def _of_allocated(self, pool: Pool) -> dict[str, Groups]:
        common: dict[str, Groups] = {}
        for view in (*pool.slices, *pool.elsewhere):
            for device in view.devices:
                if device.device.consumes_counters and self._is_allocated(device.id):
                    for consumed in device.device.consumes_counters:
                        _add(common, consumed)
        return common


def groups_of(consumed: CounterConsumption) -> Groups:
    return frozenset(consumed.compatibility_groups or ()) or _WITHOUT


def _add(common: dict[str, Groups], consumed: CounterConsumption) -> None:
    """Count a device. Allocated ones may be incompatible, as slices change: then one without groups changes nothing."""
    groups = groups_of(consumed)
    known = common.setdefault(consumed.counter_set, groups)
    if _WITHOUT not in (known, groups):
        common[consumed.counter_set] = known & groups
