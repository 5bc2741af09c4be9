"""Node resources that a pod takes through the devices of its claims, as its status lists them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from typing import TypeAlias

import msgspec
import numpy as np

from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.allocation.pools import DeviceId
from plugins.dynamic_resources.allocation.searching import Searching
from plugins.dynamic_resources.amounts.of_devices import DevicesOfNode, amounts_of
from plugins.dynamic_resources.claim_state import ClaimState
from plugins.dynamic_resources.gates import NODE_AMOUNTS
from scheduler import framework as fw
from scheduler.api.devices import Device, ResourceClaim, claim_name_of
from scheduler.api.objects import ClaimAmounts

Found: TypeAlias = tuple[tuple[int, ClaimAmounts], ...]
"""Index of a claim, and what its devices take of one node."""


class AmountsOfClaims:
    """Finds them for one profile."""

    def __init__(self, catalog: DeviceCatalog, searching: Searching) -> None:
        self._catalog = catalog
        self._searching = searching
        self.are_counted = NODE_AMOUNTS in catalog.gates.names

    def mapped(self, claim_state: ClaimState) -> Iterator[int]:
        """Yield the index of each allocated claim with a device that stands for a resource of its node."""
        for i, claim in enumerate(claim_state.claims if self.are_counted else ()):
            devices = (self._catalog.slices.device(DeviceId.of(each)) for each in claim.results)
            if any(device is not None and _is_mapped(device) for device in devices):
                yield i

    def on(self, pod: fw.Pod, claim_state: ClaimState, row: int) -> tuple[ClaimAmounts, ...]:
        """Return what the pod takes on the node of `row`, where Filter found devices. Raises DevicesError."""
        devices = DevicesOfNode(claim_state.nodes.info(row).node, self._catalog)
        if devices.have_none:
            return ()
        new = (
            (i, amounts_of(claim, allocation, devices))
            for i, claim, allocation in self._searching.allocate(claim_state, row)
        )
        return _named(pod, claim_state, (*_of_allocated(claim_state, devices), *new))

    def by_amounts(
        self, pod: fw.Pod, claim_state: ClaimState, rows: fw.Rows
    ) -> Iterator[tuple[tuple[ClaimAmounts, ...], fw.Rows]]:
        """Yield what the pod takes where Filter found devices, with the part of `rows` where it is that.

        Raises DevicesError.
        """
        nodes, where_allocated = claim_state.nodes, self._rows_of_allocated(claim_state)
        for needed, places in claim_state.by_need(rows):
            searches = claim_state.searches.get(needed)
            taken = {} if searches is None else searches.availability.taken
            alike: defaultdict[tuple[tuple[ClaimAmounts | None, ...], Found], list[int]] = defaultdict(list)
            for place in places.tolist():
                row = int(rows[place])
                old: Found = ()
                if (where_allocated is None or row in where_allocated) and nodes.in_use[row]:
                    old = tuple(_of_allocated(claim_state, DevicesOfNode(nodes.info(row).node, self._catalog)))
                new = taken.get(row, ())
                if new or old:
                    alike[new, old].append(place)
            for (new, old), those in alike.items():
                indices = [] if searches is None else [i for i, _ in searches.claims]
                yield _named(pod, claim_state, (*old, *zip(indices, new, strict=False))), np.array(those, np.intp)

    def _rows_of_allocated(self, claim_state: ClaimState) -> Set[int] | None:
        """Return the rows whose nodes may have devices of allocated claims that take something; None for all."""
        pools = {(each.driver, each.pool) for claim in claim_state.claims for each in claim.results}
        names = self._catalog.slices.nodes_with_amounts(pools)
        return None if names is None else {row for name in names if (row := claim_state.nodes.row_of(name)) is not None}


def _is_mapped(device: Device) -> bool:
    return any(each.mapping is not None for each in (device.node_allocatable_resources or {}).values())


def _of_allocated(claim_state: ClaimState, devices: DevicesOfNode) -> Iterator[tuple[int, ClaimAmounts]]:
    for i, claim in enumerate(claim_state.claims):
        allocation = claim.status.allocation
        found = None if allocation is None else amounts_of(claim, allocation, devices)
        if found is not None:
            yield i, found


def _named(
    pod: fw.Pod, claim_state: ClaimState, found: Iterable[tuple[int, ClaimAmounts | None]]
) -> tuple[ClaimAmounts, ...]:
    """Return the entries of the status, with names. A pod may name a claim twice: the last allocation counts."""
    by_uid = {claim_state.claims[i].uid: (claim_state.claims[i], amounts) for i, amounts in found}
    named = [
        msgspec.structs.replace(
            amounts,
            resource_claim_name=claim.metadata.name,
            containers=_users(pod, claim_state, claim) or None,
        )
        for claim, amounts in by_uid.values()
        if amounts is not None
    ]
    return tuple(sorted(named, key=lambda each: each.resource_claim_name))


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
