"""The resources of its node that a pod takes by the devices of its claims, as its status has them.

Rule: dynamicresources/nodeallocatabledynamicresources.go at v1.37.2 (buildNodeAllocatableDRAInfo).
"""

from collections.abc import Iterator, Sequence

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.allocation.pools import DeviceId, DevicesError, SliceView, node_matches
from plugins.dynamic_resources.allocation.searching import Searching
from plugins.dynamic_resources.claim_state import ClaimState
from plugins.dynamic_resources.gates import NODE_AMOUNTS
from scheduler import framework as fw
from scheduler.api.devices import (
    Allocation,
    Device,
    DeviceResult,
    NodeMapping,
    ResourceClaim,
    claim_name_of,
)
from scheduler.api.objects import ClaimAmounts, MappedAmount, Node, OverheadAmount, Quantity
from scheduler.api.quantities.canonical_quantity import written_like
from scheduler.api.quantities.quantity import NANO, parse_quantity


class AmountsOfClaims:
    """Finds them for one profile."""

    def __init__(self, catalog: DeviceCatalog, searching: Searching) -> None:
        self._catalog = catalog
        self._searching = searching
        self.are_counted = NODE_AMOUNTS in catalog.gates.names

    def mapped(self, claim_state: ClaimState) -> Iterator[int]:
        """Yield the index of each allocated claim with a device that stands for a resource of its node."""
        for i, claim in enumerate(claim_state.claims if self.are_counted else ()):
            allocation = claim.status.allocation
            results = (allocation.devices.results if allocation is not None else None) or ()
            devices = (self._catalog.device(DeviceId(each.driver, each.pool, each.device)) for each in results)
            if any(device is not None and _is_mapped(device) for device in devices):
                yield i

    def on(self, pod: fw.Pod, claim_state: ClaimState, row: int) -> tuple[ClaimAmounts, ...]:
        """Return what the pod takes on the node of `row`, where Filter found devices. Raises DevicesError."""
        node = claim_state.nodes.info(row).node
        views = list(self._catalog.slices_for(node))
        if not any(view.has_amounts for view in views):
            return ()
        devices = _DevicesOfNode(node, views)
        allocations = {
            claim.uid: (claim, claim.status.allocation) for claim in claim_state.claims if claim.status.allocation
        }
        for i, _, allocation in self._searching.allocate(claim_state, row):
            allocations[claim_state.claims[i].uid] = claim_state.claims[i], allocation
        found = [
            _amounts(claim, allocation, devices, _users(pod, claim_state, claim))
            for claim, allocation in allocations.values()
            if devices.have_amounts(allocation)
        ]
        return tuple(sorted(filter(None, found), key=lambda each: each.resource_claim_name))


def _is_mapped(device: Device) -> bool:
    return any(each.mapping is not None for each in (device.node_allocatable_resources or {}).values())


class _DevicesOfNode:
    def __init__(self, node: Node, views: Sequence[SliceView]) -> None:
        self._node = node
        self._views = views

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
        wanted = DeviceId(result.driver, result.pool, result.device)
        for view in self._views:
            if view.pool_id != (result.driver, result.pool) or result.device not in view.names:
                continue
            device = next(each.device for each in view.devices if each.id == wanted)
            if view.slice.spec.per_device_node_selection and not self._is_for_node(device):
                raise DevicesError(f"device {result.device} does not match node")
            return device
        raise DevicesError(f"device {result.device} not found in pool {result.pool} for driver {result.driver}")

    def _is_for_node(self, device: Device) -> bool:
        return node_matches(self._node, device.node_name, device.all_nodes, device.node_selector)


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


def _amounts(
    claim: ResourceClaim, allocation: Allocation, devices: _DevicesOfNode, users: tuple[str, ...]
) -> ClaimAmounts | None:
    """`users`: the containers that name the claim. Raises DevicesError."""
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
        resource_claim_name=claim.metadata.name,
        containers=users or None,
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


def _users(pod: fw.Pod, claim_state: ClaimState, claim: ResourceClaim) -> tuple[str, ...]:
    """Return the container of each use of a claim."""
    if claim.uid not in claim_state.containers:
        claim_state.containers[claim.uid] = tuple(_uses(pod, claim))
    return claim_state.containers[claim.uid]


def _uses(pod: fw.Pod, claim: ResourceClaim) -> Iterator[str]:
    spec = pod.spec
    names = {each.name for each in spec.resource_claims or () if claim_name_of(pod, each)[0] == claim.metadata.name}
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        for used in (container.resources.claims if container.resources is not None else None) or ():
            if used.name in names:
                yield container.name
