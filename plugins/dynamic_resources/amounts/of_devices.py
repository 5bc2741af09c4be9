"""The resources of a node that allocated devices stand for, or cost.

Rule: dynamicresources/nodeallocatabledynamicresources.go at v1.37.2 (buildNodeAllocatableDRAInfo).
"""

from collections.abc import Iterator

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.allocation.pools import DeviceId, DevicesError, is_for_node
from scheduler.api.devices import Allocation, Device, DeviceResult, NodeMapping, ResourceClaim
from scheduler.api.objects import ClaimAmounts, MappedAmount, Node, OverheadAmount, Quantity
from scheduler.api.quantities.quantity import NANO, parse_quantity, written_like


class DevicesOfNode:
    """The devices of all slices that may be for a node, whatever their pools."""

    def __init__(self, node: Node, catalog: DeviceCatalog) -> None:
        """Raises DevicesError."""
        self._node = node
        self._views = list(catalog.slices.slices_for(node))
        self.have_none = not any(view.has_amounts for view in self._views)
        """Whether none of them stands for resources of the node, or costs some."""

    def have_amounts(self, allocation: Allocation) -> bool:
        for result in allocation.devices.results or ():
            try:
                if self.get(result).node_allocatable_resources:
                    return True
            except DevicesError:
                continue
        return False

    def get(self, result: DeviceResult) -> Device:
        """Return an allocated device. Raises DevicesError if the node has no such device."""
        wanted = DeviceId.of(result)
        for view in self._views:
            if view.pool_id != (result.driver, result.pool) or result.device not in view.names:
                continue
            device = next(each.device for each in view.devices if each.id == wanted)
            if view.slice.spec.per_device_node_selection and not is_for_node(self._node, device):
                raise DevicesError(f"device {result.device} does not match node")
            return device
        raise DevicesError(f"device {result.device} not found in pool {result.pool} for driver {result.driver}")


class _Sums:
    """Sums by resource, each written as its first amount is."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, Quantity]] = {}

    def add(self, name: str, amount: Quantity, times: int = NANO) -> None:
        """Add an amount, multiplied by billionths."""
        known, example = self._sums.get(name, (0, amount))
        self._sums[name] = known - (-_read(amount) * times // NANO), example if known else amount

    def get(self, name: str) -> str | None:
        return None if name not in self._sums else written_like(*self._sums[name])

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._sums))


def amounts_of(claim: ResourceClaim, allocation: Allocation, devices: DevicesOfNode) -> ClaimAmounts | None:
    """Return what an allocation of a claim takes of a node, for any claim's name; None for nothing.

    Raises DevicesError.
    """
    if devices.have_none or not devices.have_amounts(allocation):
        return None
    mapped, per_pod, per_container = _Sums(), _Sums(), _Sums()
    for result in allocation.devices.results or ():
        try:
            device = devices.get(result)
        except DevicesError as error:
            where = f"claim {claim}, device {result.device}, driver {result.driver}"
            raise DevicesError(f"{where}: {error}") from error
        for name, amounts in (device.node_allocatable_resources or {}).items():
            _map(mapped, name, amounts.mapping, result, claim)
            overhead = amounts.overhead
            if overhead is not None and overhead.per_pod is not None:
                per_pod.add(name, overhead.per_pod)
            if overhead is not None and overhead.per_container is not None:
                per_container.add(name, overhead.per_container)
    costs = sorted({*per_pod, *per_container})
    if not [*mapped, *costs]:
        return None
    return ClaimAmounts(
        mapping=tuple(MappedAmount(name=name, quantity=mapped.get(name)) for name in mapped) or None,
        overhead=tuple(
            OverheadAmount(name=name, per_pod=per_pod.get(name), per_container=per_container.get(name))
            for name in costs
        )
        or None,
    )


def _map(total: _Sums, name: str, mapping: NodeMapping | None, result: DeviceResult, claim: ResourceClaim) -> None:
    """Add what a device stands for. Raises DevicesError. Rule: addDeviceMapping."""
    if mapping is None:
        return
    if not mapping.capacity_key:
        if mapping.device_multiplier is not None:
            total.add(name, mapping.device_multiplier)
        return
    if result.consumed_capacity is None:
        key = f"Capacity key '{mapping.capacity_key}' is set in NodeAllocatableResources for resource {name}"
        raise DevicesError(f"claim {claim}, device {result.device}: ConsumedCapacity is nil, but {key}")
    consumed = result.consumed_capacity.get(mapping.capacity_key)
    if consumed is not None:
        total.add(name, consumed, NANO if mapping.capacity_multiplier is None else _read(mapping.capacity_multiplier))


def _read(quantity: Quantity) -> int:
    try:
        return parse_quantity(quantity)
    except ValueError as error:
        raise DevicesError(f"resources of a device's node: {error}") from error
