"""Allocates devices on a node to unallocated claims, as it is written into their status.

Rule: k8s.io/dynamic-resource-allocation structured/internal/incubating/allocator_incubating.go at v0.37.2 (Allocate).
"""

from collections.abc import Callable, Sequence

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.allocation.pools import DevicesError, Pool
from plugins.dynamic_resources.allocation.requests import Request, alternatives
from plugins.dynamic_resources.allocation.search import Allocated, DeviceSearch, TakenDevice
from scheduler.api.devices import (
    AllocatedConfiguration,
    Allocation,
    DeviceAllocation,
    DeviceResult,
    ResourceClaim,
)
from scheduler.api.objects import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from scheduler.api.selectors import IN, NODE_NAME_FIELD

INVALID_POOLS = "invalid resource pools were encountered"


class NoDevices(Exception):
    """This node cannot serve the claims, for the reason in the text; another may."""


class Solution:
    """Devices for all claims on one node. The allocations are computed only for the chosen node."""

    __slots__ = ("_allocations", "_chosen", "_claims", "_node", "_requests", "_results")

    def __init__(
        self,
        node: str,
        claims: Sequence[ResourceClaim],
        requests: Sequence[Sequence[tuple[Request, ...]]],
        search: DeviceSearch,
    ) -> None:
        self._node = node
        self._claims = claims
        self._requests = requests
        # Not the whole search: thousands of nodes may have a solution.
        self._results = search.results
        self._chosen = search.chosen
        self._allocations: list[Allocation] | None = None

    @property
    def allocations(self) -> list[Allocation]:
        """An allocation for each claim. Raises DevicesError if one cannot be written down."""
        if self._allocations is None:
            self._allocations = [
                Allocation(
                    devices=DeviceAllocation(
                        results=tuple(map(_result, self._results[i])) or None,
                        config=_config(claim, self._requests_of(i)),
                    ),
                    node_selector=_node_selector(claim, self._results[i], self._node),
                )
                for i, claim in enumerate(self._claims)
            ]
        return self._allocations

    def _requests_of(self, claim: int) -> list[Request]:
        return [each[self._chosen.get((claim, j), 0)] for j, each in enumerate(self._requests[claim])]


class Allocator:
    """Allocates the claims of one pod, on one node after the other, each as if it were the only one.

    For one attempt: what is taken does not change meanwhile.
    """

    def __init__(self, catalog: DeviceCatalog, claims: Sequence[ResourceClaim], allocated: Allocated) -> None:
        self._catalog = catalog
        self._claims = claims
        self._allocated = allocated
        self._requests: Sequence[Sequence[tuple[Request, ...]]] = ()
        """Those of each claim, once a search has looked at all."""

        self._last: tuple[Sequence[Pool], DeviceSearch | None] | None = None
        """The pools that were searched last, and the search if it found something."""

    def allocate(self, node: Node, check_time: Callable[[], None]) -> Solution | None:
        """Return devices for all claims, or None if the node has none for them.

        Raises NoDevices for a reason worth reporting, DevicesError where no other node would be better, and what
        `check_time` raises.
        """
        pools = self._catalog.slices.pools_for(node)
        if self._last is None or self._last[0] is not pools:
            requests = self._requests or (
                alternatives(claim, self._catalog.device_class, self._catalog.gates) for claim in self._claims
            )
            search = DeviceSearch(node, self._claims, requests, pools, self._allocated, self._catalog.gates, check_time)
            self._last = pools, search if search.run() else None
            self._requests = search.requests
        found = self._last[1]
        if found is not None:
            return Solution(node.name, self._claims, self._requests, found)
        if any(pool.is_invalid for pool in pools):
            raise NoDevices(INVALID_POOLS)
        return None


def _result(taken: TakenDevice) -> DeviceResult:
    request, device = taken.request, taken.device.device
    driver, pool, name = taken.device.id
    return DeviceResult(
        request=request.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if request.admin_access else None,
        tolerations=request.asked.tolerations,
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=taken.share_id,
        consumed_capacity=dict(taken.consumed) if taken.consumed else None,
        skip_node_operations=taken.skipped,
    )


def _config(claim: ResourceClaim, chosen: Sequence[Request]) -> tuple[AllocatedConfiguration, ...] | None:
    """The classes' configuration, each once with all requests of that class, then the claim's.

    An entry that applies to all requests names none.
    """
    by_class: dict[str, list[Request]] = {}
    for request in chosen:
        by_class.setdefault(request.cls.metadata.name, []).append(request)
    found: list[AllocatedConfiguration] = []
    for of_class in by_class.values():
        requests = None if len(of_class) == len(chosen) else tuple(request.full_name for request in of_class)
        written = of_class[0].cls.spec.config or ()
        found += [AllocatedConfiguration(source="FromClass", requests=requests, opaque=each.opaque) for each in written]
    for config in claim.spec.devices.config or ():
        names = frozenset(config.requests or ())
        applies = [not names.isdisjoint((request.full_name, request.base_and_sub[0])) for request in chosen]
        if not names or any(applies):
            requests = None if all(applies) else config.requests
            found.append(AllocatedConfiguration(source="FromClaim", requests=requests, opaque=config.opaque))
    return tuple(found) or None


def _node_selector(claim: ResourceClaim, taken: Sequence[TakenDevice], node: str) -> NodeSelector | None:
    """Return the nodes on which the devices can be used: this node only, or on those that all of their slices select,
    or anywhere."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for device in (each.device for each in taken):
        spec = device.slice.spec
        place = device.device if spec.per_device_node_selection else spec
        if place.node_name is not None or device.device.binds_to_node:
            here = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator=IN, values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
        terms = (place.node_selector.node_selector_terms if place.node_selector is not None else None) or ()
        if len(terms) > 1:
            problem = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise DevicesError(f"create NodeSelector for claim {claim.metadata.name}: {problem}")
        for term in terms:
            _add_new(term.match_fields or (), fields)
            _add_new(term.match_expressions or (), expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields) or None, match_expressions=tuple(expressions) or None)
    return NodeSelector(node_selector_terms=(term,))


def _add_new(requirements: Sequence[NodeSelectorRequirement], known: list[NodeSelectorRequirement]) -> None:
    for each in requirements:
        same = (each.key, each.operator, frozenset(each.values or ()))
        if same not in ((other.key, other.operator, frozenset(other.values or ())) for other in known):
            known.append(each)
