"""The requests of claims, checked and made ready for the search for devices."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from plugins.dynamic_resources.allocation.pools import DevicesError, Pool, SliceDevice, is_for_node
from plugins.dynamic_resources.allocation.selectors import NotCompiled, SelectorError, compiled
from plugins.dynamic_resources.gates import DERIVED, DeviceGates
from scheduler.api.devices import DeviceClass, DeviceSelector, ExactRequest, ResourceClaim
from scheduler.api.objects import Node
from scheduler.api.pods.tolerations import first_untolerated
from scheduler.api.recent_caches import RecentCache

ALL, EXACT_COUNT = "All", "ExactCount"
_MAX_INT = 2**63 - 1
_CACHE_BYTES: Final = 32 << 20

FindClass: TypeAlias = Callable[[str], DeviceClass | None]


class DeviceCandidate(NamedTuple):
    device: SliceDevice
    pool: Pool


class Request:
    """A request, or one of its alternatives, on one node."""

    __slots__ = ("all_devices", "asked", "cls", "count", "derived", "is_all", "name", "parent", "selectors", "where")

    def __init__(self, claim: ResourceClaim, asked: ExactRequest, name: str, parent: str, cls: DeviceClass) -> None:
        """`parent`: the request that this is an alternative of, or empty."""
        self.asked = asked
        self.name = name
        self.parent = parent
        self.cls = cls
        self.where = f"claim {claim}, request {name}"
        self.is_all = asked.allocation_mode == ALL
        self.count = 0 if self.is_all else asked.count
        self.all_devices: list[DeviceCandidate] = []
        self.derived = {each.name: each.expression for each in asked.derived_attributes or ()}
        self.selectors = (
            *((f"class {cls.metadata.name}", i, each) for i, each in enumerate(cls.spec.selectors or ())),
            *((f"claim {claim}", i, each) for i, each in enumerate(asked.selectors or ())),
        )

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def base_and_sub(self) -> tuple[str, str]:
        """How constraints call it."""
        return (self.parent, self.name) if self.parent else (self.name, "")

    @property
    def admin_access(self) -> bool:
        """Whether devices in use may be allocated; never for an alternative."""
        return bool(self.asked.admin_access) and not self.parent

    def tolerates(self, device: SliceDevice) -> bool:
        """Return whether no taint keeps the device from being allocated. Rule: taintPreventsAllocation."""
        return first_untolerated(device.taints, self.asked.tolerations) is None

    def selects(self, device: SliceDevice, node: Node) -> bool:
        """Return whether class and request select the device, and it is for this node. Raises DevicesError."""
        for where, i, selector in self.selectors:
            if not _holds(device, where, i, selector):
                return False
        return not device.slice.spec.per_device_node_selection or is_for_node(node, device.device)


def class_selects(cls: DeviceClass, device: SliceDevice) -> bool:
    """Return whether the selectors of a class all hold for a device. Raises DevicesError."""
    where = f"class {cls.metadata.name}"
    selectors = enumerate(cls.spec.selectors or ())
    return all(_holds(device, where, i, each) for i, each in selectors if each.cel is not None)


def _holds(device: SliceDevice, where: str, index: int, selector: DeviceSelector) -> bool:
    if selector.cel is None:
        raise DevicesError(f"{where}: selector #{index}: CEL compile error: empty expression")
    expression = compiled(selector.cel.expression)
    key = expression.number, device
    known = _known.get(key)
    if known is None:
        try:
            known = _known.put(key, expression.matches(device.view))
        except NotCompiled as error:
            raise DevicesError(f"{where}: selector #{index}: {error}") from error
        except SelectorError as error:
            raise DevicesError(f"{where}: selector #{index} on device {device.id}: {error}") from error
    return known


_known: RecentCache[tuple[int, SliceDevice], bool] = RecentCache("selected devices", _CACHE_BYTES, lambda *_: 100)
"""Number of an expression and device → whether it holds."""


def alternatives(claim: ResourceClaim, find_class: FindClass, gates: DeviceGates) -> Iterator[Iterator[Request]]:
    """Yield for each request what may fulfil it: one Request, or those of `firstAvailable`.

    Both raise DevicesError: what comes before a fault is looked at first.
    """
    for written in claim.requests:
        if written.first_available:
            asked = [(each, each.name, written.name) for each in written.first_available]
        elif written.exactly is not None:
            asked = [(written.exactly, written.name, "")]
        else:
            raise DevicesError(f"claim {claim}, request {written.name}: missing device class name")
        yield (_checked(claim, *each, find_class, gates) for each in asked)


def _checked(
    claim: ResourceClaim, asked: ExactRequest, name: str, parent: str, find_class: FindClass, gates: DeviceGates
) -> Request:
    where = f"claim {claim}, request {name}"
    if asked.derived_attributes and DERIVED not in gates.names:
        raise DevicesError(f"{where}: cannot handle request with derived attributes, the feature is disabled")
    for i, selector in enumerate(asked.selectors or ()):
        if selector.cel is None:
            raise DevicesError(f"{where}, selector #{i}: CEL expression empty (unsupported selector type?)")
    class_name = asked.device_class_name
    if not class_name:
        raise DevicesError(f"{where}: missing device class name (unsupported request type?)")
    cls = find_class(class_name)
    if cls is None:
        missing = f'deviceclass.resource.k8s.io "{class_name}" not found'
        raise DevicesError(f"{where}: could not retrieve device class {class_name}: {missing}")
    if asked.allocation_mode not in (ALL, EXACT_COUNT):
        raise DevicesError(f"{where}: unsupported count mode {asked.allocation_mode}")
    if asked.count > _MAX_INT:
        raise DevicesError(f"{where}: exact count {asked.count} is too large")
    return Request(claim, asked, name, parent, cls)
