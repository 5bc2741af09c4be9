"""Constraints on the devices of a claim: attributes that must match, or be distinct.

Rule: k8s.io/dynamic-resource-allocation structured/internal/incubating/allocator_incubating.go (matchAttribute) and
constraint.go (distinctAttribute) at v0.37.2.
"""

from typing import Any, Protocol

from plugins.dynamic_resources.pools import SliceDevice
from scheduler.api.devices import Attribute, DeviceConstraint


class Constraint(Protocol):
    """Keeps track of the devices taken so far. Each `add` that succeeded has its `remove`, in reverse order."""

    def add(self, request: str, sub_request: str, device: SliceDevice) -> bool:
        """Return whether the device may be taken; then it counts."""

    def remove(self, request: str, sub_request: str, device: SliceDevice) -> None:
        """Undo `add`."""


def constraint_of(written: DeviceConstraint) -> Constraint | None:
    """Return a constraint with nothing taken; None for one of an unknown kind."""
    if written.match_attribute is not None:
        return _Match(frozenset(written.requests or ()), written.match_attribute)
    if written.distinct_attribute is not None:
        return _Distinct(frozenset(written.requests or ()), written.distinct_attribute)
    return None


class _OnAttribute:
    def __init__(self, requests: frozenset[str], attribute: str) -> None:
        self.requests = requests
        self.attribute = attribute

    def applies(self, request: str, sub_request: str) -> bool:
        """Return whether the constraint applies; without requests it applies to all."""
        if not self.requests or request in self.requests:
            return True
        return bool(sub_request) and f"{request}/{sub_request}" in self.requests

    def value(self, device: SliceDevice) -> Attribute | None:
        """The name may leave out the domain on the device's side, if that is its driver."""
        attributes = device.device.attributes or {}
        found = attributes.get(self.attribute)
        if found is None:
            domain, slash, name = self.attribute.partition("/")
            if slash and domain == device.id.driver:
                found = attributes.get(name)
        return found


class _Match(_OnAttribute):
    """All have the same value."""

    taken = 0
    common: Any = None

    def add(self, request: str, sub_request: str, device: SliceDevice) -> bool:
        if not self.applies(request, sub_request):
            return True
        attribute = self.value(device)
        if attribute is None:
            return False
        if self.taken == 0:
            self.common = _typed(attribute)
        elif _typed(attribute) is None or _typed(attribute) != self.common:
            return False
        self.taken += 1
        return True

    def remove(self, request: str, sub_request: str, device: SliceDevice) -> None:
        if self.applies(request, sub_request):
            self.taken -= 1


class _Distinct(_OnAttribute):
    """No two have the same value."""

    def __init__(self, requests: frozenset[str], attribute: str) -> None:
        super().__init__(requests, attribute)
        self.values: list[Any] = []

    def add(self, request: str, sub_request: str, device: SliceDevice) -> bool:
        if not self.applies(request, sub_request):
            return True
        attribute = self.value(device)
        if attribute is None:
            return False
        value = _typed(attribute)
        if self.values and (value is None or value in self.values):
            return False
        self.values.append(value)
        return True

    def remove(self, request: str, sub_request: str, device: SliceDevice) -> None:
        if self.applies(request, sub_request):
            self.values.pop()


def _typed(attribute: Attribute) -> tuple[str, Any] | None:
    """The value with its kind: 1 is not true, and a version is not a string. None if it has no known kind."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return None
