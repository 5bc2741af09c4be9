"""The search for devices on one node: depth first, the first solution wins.

Order of trial, which makes the solution the same as kube-scheduler's: claims, requests and alternatives as they are
written; pools by driver and name, those with binding conditions last; slices by name; devices as listed. A request for
several devices takes them in that order only, since their order within a request means nothing. Rule:
k8s.io/dynamic-resource-allocation structured/internal/incubating/allocator_incubating.go at v0.37.2 (allocateOne).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple
from uuid import uuid4

from plugins.dynamic_resources.allocation.capacity import CapacityError, CapacityMath, Consumed, amounts
from plugins.dynamic_resources.allocation.constraints import CompatibilityGroups, Constraint, constraint_of
from plugins.dynamic_resources.allocation.pools import DeviceId, DevicesError, Pool, PoolId, SliceDevice
from plugins.dynamic_resources.allocation.requests import DeviceCandidate, Request
from plugins.dynamic_resources.gates import COMPATIBILITY, FRACTIONAL_RANGES, LISTS, OPTIONAL_OPERATIONS, DeviceGates
from scheduler.api.devices import MAX_RESULTS, ResourceClaim
from scheduler.api.objects import Node, Quantity
from scheduler.api.quantities.quantity import parse_quantity

CounterKey = tuple[PoolId, str, str]
"""Pool, counter set, counter."""


class TooManyDevices(Exception):
    """A claim would get more devices than a result can hold: backtrack further than for a device in use."""


@dataclass(slots=True)
class Allocated:
    """The devices that claims have."""

    whole: dict[DeviceId, int] = field(default_factory=dict)
    """Exclusively allocated: to how many claims, more than one only if schedulers conflicted."""
    shared: dict[DeviceId, int] = field(default_factory=dict)
    """How many claims share it."""
    capacity: dict[DeviceId, Consumed] = field(default_factory=dict)
    """The capacity that the claims sharing it have consumed."""

    def has(self, device: DeviceId) -> bool:
        return device in self.whole or device in self.shared or device in self.capacity


class TakenDevice(NamedTuple):
    """A device for a request."""

    request: Request
    device: SliceDevice
    share_id: str | None
    consumed: Mapping[str, Quantity] | None
    skipped: tuple[str, ...] | None
    """The operations that the kubelet may leave out."""


class DeviceIndices(NamedTuple):
    """The position of the search: kube-scheduler's deviceIndices."""

    claim: int = 0
    request: int = 0
    device: int = 0
    """How many devices the request has so far."""


Position = tuple[int, int, int]
"""Pool, slice, device: where to look next."""

_START: Position = (0, 0, 0)


class DeviceSearch:
    """One attempt on one node. `results` and `chosen` are the solution once `run` has returned True."""

    def __init__(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        requests: Iterable[Iterable[Iterable[Request]]],
        pools: Sequence[Pool],
        allocated: Allocated,
        gates: DeviceGates,
        check_time: Callable[[], None],
    ) -> None:
        """`requests`: for each claim and request its alternatives. `check_time` raises when it took too long."""
        self._node = node
        self._claims = claims
        self._written = requests
        self.requests: list[list[tuple[Request, ...]]] = []
        self._pools = pools
        self._allocated = allocated
        self._gates = gates
        self._math = CapacityMath(is_fractional=FRACTIONAL_RANGES in gates.names)
        self._compatible = CompatibilityGroups(allocated.has) if COMPATIBILITY in gates.names else None
        self._check_time = check_time
        self._constraints: list[list[Constraint]] = []
        self._taken_by: defaultdict[DeviceId, set[int]] = defaultdict(set)
        self._shared_capacity: dict[DeviceId, list[Consumed]] = {}
        self._counters: defaultdict[CounterKey, int] = defaultdict(int)
        self._available: dict[PoolId, dict[CounterKey, int]] = {}
        self._selected: dict[tuple[int, DeviceId], bool] = {}
        self.results: list[list[TakenDevice]] = [[] for _ in claims]
        self.chosen: dict[tuple[int, int], int] = {}
        """(claim, request) → which alternative."""

    def run(self) -> bool:
        """Return whether all claims can be allocated. Raises DevicesError where no other node would be better."""
        self._prepare()
        try:
            return self._next(DeviceIndices())
        except TooManyDevices as error:
            raise DevicesError("allocation max size exceeded") from error

    def _prepare(self) -> None:
        for claim, written_requests in zip(self._claims, self._written, strict=True):
            least = 0
            requests: list[tuple[Request, ...]] = []
            for written_alternatives in written_requests:
                alternatives = tuple(map(self._ready, written_alternatives))
                least += _checked(claim, alternatives, least)
                requests.append(alternatives)
            self.requests.append(requests)
            constraints = []
            for i, written in enumerate(claim.spec.devices.constraints or ()):
                constraint = constraint_of(written, has_lists=LISTS in self._gates.names)
                if constraint is None:
                    empty = "empty constraint (unsupported constraint type?)"
                    raise DevicesError(f"claim {claim}, constraint #{i}: {empty}")
                constraints.append(constraint)
            self._constraints.append(constraints)

    def _ready(self, request: Request) -> Request:
        if request.is_all:
            request.all_devices = list(self._all_for(request))
            request.count = len(request.all_devices)
        return request

    def _all_for(self, request: Request) -> Iterator[DeviceCandidate]:
        for pool in self._pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "currently being updated" if pool.is_incomplete else "currently invalid"
                raise DevicesError(f"{request.where}: asks for all devices, but resource pool {pool} is {state}")
            for view in pool.slices:
                for device in view.devices:
                    # One that is large enough but partly used is among them, so that the request is refused.
                    if self._selects(request, device) and self._has_capacity(request, device, {}, device.id.device):
                        yield DeviceCandidate(device, pool)

    def _next(self, indices: DeviceIndices, position: Position = _START, alternative: int | None = None) -> bool:
        """Find the rest of the devices. `alternative`: which one is being tried, None before one is chosen."""
        self._check_time()
        if indices.claim >= len(self._claims):
            return True
        requests = self.requests[indices.claim]
        if indices.request >= len(requests):
            try:
                return self._next(DeviceIndices(indices.claim + 1))
            except TooManyDevices:
                return False
        alternatives = requests[indices.request]
        if alternative is None and alternatives[0].parent:
            return self._any_of(indices, len(alternatives))
        request = alternatives[alternative or 0]
        if request.is_all and not request.all_devices:
            return False
        if indices.device >= request.count:
            return self._next(DeviceIndices(indices.claim, indices.request + 1))
        if len(self.results[indices.claim]) + request.count - indices.device > MAX_RESULTS:
            raise TooManyDevices
        if request.is_all:
            return self._take(indices, request, request.all_devices[indices.device], _START, alternative)
        return self._try_each(indices, request, position, alternative)

    def _any_of(self, indices: DeviceIndices, count: int) -> bool:
        too_many = 0
        for alternative in range(count):
            try:
                if self._next(indices, _START, alternative):
                    self.chosen[indices.claim, indices.request] = alternative
                    return True
            except TooManyDevices:
                too_many += 1
        if too_many == count:
            raise TooManyDevices
        return False

    def _try_each(self, indices: DeviceIndices, request: Request, position: Position, alternative: int | None) -> bool:
        first_pool, first_slice, first_device = position
        for p in range(first_pool, len(self._pools)):
            pool = self._pools[p]
            if pool.is_incomplete or pool.is_invalid:
                continue
            for s in range(first_slice if p == first_pool else 0, len(pool.slices)):
                devices = pool.slices[s].devices
                for d in range(first_device if (p, s) == (first_pool, first_slice) else 0, len(devices)):
                    device = devices[d]
                    if (
                        not self._is_in_use(indices, request, device.id)
                        and self._selects(request, device)
                        and self._has_capacity(request, device, self._consumed_of(device.id))
                        and self._take(indices, request, DeviceCandidate(device, pool), (p, s, d + 1), alternative)
                    ):
                        return True
        return False

    def _is_in_use(self, indices: DeviceIndices, request: Request, device: DeviceId) -> bool:
        if request.admin_access:
            return indices.claim in self._taken_by.get(device, ())
        return device in self._allocated.whole or bool(self._taken_by.get(device))

    def _selects(self, request: Request, device: SliceDevice) -> bool:
        key = id(request), device.id
        known = self._selected.get(key)
        if known is None:
            known = self._selected[key] = request.selects(device, self._node)
        return known

    def _has_capacity(self, request: Request, device: SliceDevice, consumed: Consumed, called: str = "") -> bool:
        """Raises DevicesError for a request that cannot be computed with; `called` is the device in its text."""
        capacity, requested = device.device.capacity, request.asked.capacity
        if device.has_plain_capacity and not consumed and (requested is None or not requested.requests):
            return True  # as a whole it fits into itself
        try:
            return self._math.fits(requested, capacity or {}, consumed)
        except CapacityError as error:
            where = f"{request.where}: checking capacity for device {called or device.id}"
            raise DevicesError(f"{where}: {error}") from error

    def _consumed_of(self, device: DeviceId) -> Consumed:
        total = dict(self._allocated.capacity.get(device, ()))
        for consumed in self._shared_capacity.get(device, ()):
            for name, amount in consumed.items():
                total[name] = total.get(name, 0) + amount
        return total

    def _take(
        self,
        indices: DeviceIndices,
        request: Request,
        candidate: DeviceCandidate,
        position: Position,
        alternative: int | None,
    ) -> bool:
        """Take a device and go on; say whether that led to a solution. If not, everything is undone."""
        undo: list[Callable[[], object]] = []
        try:
            further = DeviceIndices(indices.claim, indices.request, indices.device + 1)
            if self._try_take(indices, request, candidate, undo) and self._next(further, position, alternative):
                undo.clear()
                return True
        finally:
            for each in reversed(undo):
                each()
        return False

    def _try_take(
        self, indices: DeviceIndices, request: Request, candidate: DeviceCandidate, undo: list[Callable[[], object]]
    ) -> bool:
        """Return whether the device can be allocated. What has to be undone otherwise, or later, goes to `undo`."""
        device, claim = candidate.device, indices.claim
        is_shared = bool(device.device.allow_multiple_allocations)
        if not (is_shared and request.admin_access) and self._is_in_use(indices, request, device.id):
            return False
        if not self._gates.allow_operations(device.slice.spec, self._node):
            return False
        has_to_draw = device.device.consumes_counters and not (is_shared and self._is_shared_already(device.id))
        if has_to_draw and not self._draws_on_counters(candidate, undo):
            return False
        if not request.tolerates(device) or not self._meets_constraints(claim, request, device, undo):
            return False
        if not self._has_capacity(request, device, self._consumed_of(device.id)):
            return False
        consumed: Mapping[str, Quantity] | None = None
        if is_shared:
            consumed = self._math.consumption(request.asked.capacity, device.device.capacity or {})
            self._shared_capacity.setdefault(device.id, []).append(amounts(consumed))
            undo.append(lambda: self._unshare(device.id))
        else:
            self._taken_by[device.id].add(claim)
            undo.append(lambda: self._taken_by[device.id].discard(claim))
        skipped = device.slice.spec.skip_node_operations if OPTIONAL_OPERATIONS in self._gates.names else None
        self.results[claim].append(TakenDevice(request, device, str(uuid4()) if is_shared else None, consumed, skipped))
        undo.append(self.results[claim].pop)
        return True

    def _draws_on_counters(self, candidate: DeviceCandidate, undo: list[Callable[[], object]]) -> bool:
        if self._compatible is not None:
            leave = self._compatible.join(candidate.pool, candidate.device)
            if leave is None:
                return False
            undo.append(leave)
        self._count(candidate, 1)
        undo.append(lambda: self._count(candidate, -1))
        return self._enough_counters(candidate.pool)

    def _meets_constraints(
        self, claim: int, request: Request, device: SliceDevice, undo: list[Callable[[], object]]
    ) -> bool:
        for constraint in self._constraints[claim]:
            if not constraint.add(request, device):
                if request.is_all:
                    never = f"cannot add device {device.id} because a claim constraint would not be satisfied"
                    raise DevicesError(f"{request.where}: {never}")
                return False
            undo.append(partial(constraint.remove, request))
        return True

    def _is_shared_already(self, device: DeviceId) -> bool:
        """Return whether a claim has a share, so that the device's counters are counted."""
        allocated = self._allocated
        return device in allocated.capacity or device in allocated.shared or device in self._shared_capacity

    def _unshare(self, device: DeviceId) -> None:
        shares = self._shared_capacity[device]
        shares.pop()
        if not shares:
            del self._shared_capacity[device]

    def _count(self, candidate: DeviceCandidate, sign: int) -> None:
        for key, amount in _counters_of(candidate.pool.id, candidate.device):
            self._counters[key] += sign * amount

    def _enough_counters(self, pool: Pool) -> bool:
        available = self._available.get(pool.id)
        if available is None:
            available = self._available[pool.id] = self._left_in(pool)
        return all(self._counters.get(key, 0) <= left for key, left in available.items())

    def _left_in(self, pool: Pool) -> dict[CounterKey, int]:
        """The counters minus those of allocated devices, on any node."""
        left = {
            (pool.id, counter_set.name, name): parse_quantity(counter.value)
            for counter_set in pool.counter_sets.values()
            for name, counter in (counter_set.counters or {}).items()
        }
        for view in (*pool.slices, *pool.elsewhere):
            for device in view.devices:
                if self._allocated.has(device.id):
                    for key, amount in _counters_of(pool.id, device):
                        if key in left:
                            left[key] -= amount
        return left


def _checked(claim: ResourceClaim, alternatives: Sequence[Request], before: int) -> int:
    """Return how many devices one request needs at least. Raises DevicesError if these, too, are too many."""
    count = min(request.count for request in alternatives)
    if count > MAX_RESULTS - before:
        name = alternatives[0].parent or alternatives[0].name
        limit = f"exceeds the claim limit of {MAX_RESULTS}, with {before} already accounted for"
        raise DevicesError(f"claim {claim}, request {name}: adding {count} devices {limit}")
    return count


def _counters_of(pool: PoolId, device: SliceDevice) -> Iterator[tuple[CounterKey, int]]:
    for consumed in device.device.consumes_counters or ():
        for name, counter in (consumed.counters or {}).items():
            yield (pool, consumed.counter_set, name), parse_quantity(counter.value)
