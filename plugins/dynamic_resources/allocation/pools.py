"""The pools of devices that a node can use, from the ResourceSlices.

Rule: k8s.io/dynamic-resource-allocation structured/internal/incubating/pools_incubating.go at v0.37.2, the variant that
the default feature gates select.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from plugins.dynamic_resources.allocation.selectors import DeviceView, view_of
from scheduler import framework as fw
from scheduler.api.devices import CounterSet, Device, DeviceResult, ResourceSlice, SliceSpec
from scheduler.api.objects import Node
from scheduler.api.selectors import as_one_message, matches_any, problems_of, required_terms


class DeviceId(NamedTuple):
    driver: str
    pool: str
    device: str

    @classmethod
    def of(cls, result: DeviceResult) -> "DeviceId":
        return cls(result.driver, result.pool, result.device)

    def __str__(self) -> str:
        return "/".join(self)


PoolId: TypeAlias = tuple[str, str]
"""Driver and pool."""

TaintsOf: TypeAlias = Callable[[DeviceId], Iterable[fw.Taint]]


class DevicesError(fw.AttemptFailed):
    """Something about slices, claims or classes is wrong, and no other node would be better: the attempt fails."""


class SliceDevice:
    """A device of a slice, with values that are computed at most once."""

    __slots__ = ("_taints_of", "_view", "device", "has_plain_capacity", "id", "slice")

    def __init__(self, slice_: ResourceSlice, device: Device, taints_of: TaintsOf) -> None:
        self._taints_of = taints_of
        self.slice = slice_
        self.device = device
        self.id = DeviceId(slice_.spec.driver, slice_.spec.pool.name, device.name)
        self._view: DeviceView | None = None
        self.has_plain_capacity = all(
            each.request_policy is None and not str(each.value).startswith("-")
            for each in (device.capacity or {}).values()
        )

    @property
    def view(self) -> DeviceView:
        """The device as CEL expressions see it. Raises SelectorError."""
        if self._view is None:
            self._view = view_of(self.id.driver, self.device)
        return self._view

    @property
    def taints(self) -> Sequence[fw.Taint]:
        """Those of the slice, then those of DeviceTaintRules."""
        return *(self.device.taints or ()), *self._taints_of(self.id)


class SliceView:
    """A slice with its devices."""

    __slots__ = ("devices", "has_amounts", "is_ignored", "names", "slice")

    def __init__(self, slice_: ResourceSlice, taints_of: TaintsOf, *, may_have_groups: bool = False) -> None:
        """`taints_of`: what rules give to a device, whenever they are asked for."""
        self.slice = slice_
        self.devices = tuple(SliceDevice(slice_, device, taints_of) for device in slice_.spec.devices or ())
        self.names = frozenset(device.name for device in slice_.spec.devices or ())
        self.is_ignored = not may_have_groups and any(
            consumed.compatibility_groups
            for device in slice_.spec.devices or ()
            for consumed in device.consumes_counters or ()
        )
        """Whether a device has compatibility groups, although their gate is off: its pool is incomplete."""
        self.has_amounts = any(device.node_allocatable_resources for device in slice_.spec.devices or ())
        """Whether a device stands for resources of its node, or costs some."""

    @property
    def name(self) -> str:
        return self.slice.name

    @property
    def pool_id(self) -> PoolId:
        return self.slice.spec.driver, self.slice.spec.pool.name

    @property
    def generation(self) -> int:
        return self.slice.spec.pool.generation

    @property
    def has_counters(self) -> bool:
        return bool(self.slice.spec.shared_counters)


@dataclass(slots=True)
class Pool:
    """The part of a pool that a node can use. An incomplete or invalid one offers no devices."""

    driver: str
    name: str
    is_incomplete: bool = False
    is_invalid: bool = False
    slices: Sequence[SliceView] = ()
    """In the order in which devices are tried."""
    elsewhere: Sequence[SliceView] = ()
    """Slices for other nodes: their devices may consume the same counters."""
    counter_sets: dict[str, CounterSet] = field(default_factory=dict)

    @property
    def id(self) -> PoolId:
        return self.driver, self.name

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


def is_for_node(node: Node, place: SliceSpec | Device) -> bool:
    """Return whether a slice or device is for this node. Raises DevicesError for a selector that cannot be read."""
    if place.node_name:
        return node.name == place.node_name
    if place.all_nodes:
        return True
    if place.node_selector is None:
        return False
    terms = required_terms(place.node_selector)
    problems = problems_of(terms)
    if problems:
        raise DevicesError(f"failed to parse node selector: {as_one_message(problems)}")
    return matches_any(terms, node.labels, node.name)


def gather_pools(
    node: Node, for_node: Iterable[SliceView], of_pool: Mapping[PoolId, Mapping[str, SliceView]]
) -> list[Pool]:
    """Return the pools that have slices for a node, in the order in which they are tried.

    `for_node`: the slices of this node and those that name no node. `of_pool`: all slices of each pool, by UID. Raises
    DevicesError.
    """
    newest: dict[PoolId, list[SliceView]] = {}
    for view in for_node:
        if not view.is_ignored and _is_relevant(view, node):
            _add(newest, view)
    plain: list[Pool] = []
    with_conditions: list[Pool] = []
    for pool_id, slices in newest.items():
        pool = _pool(pool_id, slices, of_pool[pool_id].values())
        if pool is not None:
            conditions = any(d.device.binding_conditions is not None for view in pool.slices for d in view.devices)
            (with_conditions if conditions else plain).append(pool)
    for pools in (plain, with_conditions):
        pools.sort(key=lambda pool: (pool.driver, pool.name))
    return plain + with_conditions


def _is_relevant(view: SliceView, node: Node) -> bool:
    spec = view.slice.spec
    try:
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return is_for_node(node, spec)
        if spec.per_device_node_selection:
            return any(is_for_node(node, device) for device in spec.devices or ())
    except DevicesError as error:
        problem = f"failed to perform node selection for slice {view.name}: {error}"
        raise DevicesError(f"gather pool information: {problem}") from error
    return False


def _add(newest: dict[PoolId, list[SliceView]], view: SliceView) -> None:
    known = newest.get(view.pool_id)
    if known is None or view.generation > known[0].generation:
        newest[view.pool_id] = [view]
    elif view.generation == known[0].generation:
        known.append(view)


def _pool(pool_id: PoolId, slices: list[SliceView], of_pool: Collection[SliceView]) -> Pool | None:
    """None for a pool of which a newer generation is there that has nothing for the node."""
    expected = slices[0].slice.spec.pool.resource_slice_count
    if len(slices) == expected:
        return _built(pool_id, slices, slices)
    generation = slices[0].generation
    if any(view.generation > generation for view in of_pool):
        return None
    whole = [view for view in of_pool if view.generation == generation and not view.is_ignored]
    if len(whole) != expected:
        return Pool(*pool_id, is_incomplete=True)
    return _built(pool_id, slices, whole)


def _built(pool_id: PoolId, slices: list[SliceView], whole: list[SliceView]) -> Pool:
    """Return a pool of which `slices` are for the node, and `whole` are all."""
    with_devices = sorted((view for view in slices if not view.has_counters), key=lambda view: view.name.encode())
    counter_sets: dict[str, CounterSet] = {}
    invalid = Pool(*pool_id, is_invalid=True)
    names = [each.id.device for view in with_devices for each in view.devices]
    if len(names) != len(set(names)):
        return invalid
    for view in whole:
        for counter_set in view.slice.spec.shared_counters or ():
            if counter_set.name in counter_sets:
                return invalid
            counter_sets[counter_set.name] = counter_set
    here = {view.name for view in slices}
    elsewhere = [view for view in whole if view.name not in here and not view.has_counters]
    if not all(_counters_exist(view, counter_sets) for view in (*with_devices, *elsewhere)):
        return invalid
    return Pool(*pool_id, slices=with_devices, elsewhere=elsewhere, counter_sets=counter_sets)


def _counters_exist(view: SliceView, counter_sets: dict[str, CounterSet]) -> bool:
    return all(
        consumed.counter_set in counter_sets
        and (consumed.counters or {}).keys() <= (counter_sets[consumed.counter_set].counters or {}).keys()
        for each in view.devices
        for consumed in each.device.consumes_counters or ()
    )
