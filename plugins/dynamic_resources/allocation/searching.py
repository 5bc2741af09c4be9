"""Asks for the devices of one pod: on the nodes of a Filter call, and again on the node that was chosen."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from plugins.dynamic_resources.allocation.allocator import Allocator, NoDevices, Solution
from plugins.dynamic_resources.allocation.availability import Asking, DeviceAvailabilities, Int8Column, Taken
from plugins.dynamic_resources.allocation.catalog import DeviceCatalog
from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.amounts.of_devices import DevicesOfNode, amounts_of
from plugins.dynamic_resources.claim_state import ClaimState, DeviceSearches, Needed
from plugins.dynamic_resources.extended.claims import requesting
from plugins.dynamic_resources.extended.requests import claimed_devices
from plugins.dynamic_resources.gates import NODE_AMOUNTS
from scheduler import framework as fw
from scheduler.api.devices import MAX_ALTERNATIVES, Allocation, ResourceClaim
from scheduler.api.objects import Node


class SearchTimedOut(fw.AttemptFailed, TimeoutError):
    """The claims of a pod are too much for one node: the search took too long."""


class Searching:
    """Searches for one profile."""

    def __init__(self, handle: fw.Handle, catalog: DeviceCatalog, timeout: float) -> None:
        """`timeout`: seconds for one node; 0 for as long as it takes."""
        self._columns = handle.columns
        self._catalog = catalog
        self._availabilities = handle.shared.get(DeviceAvailabilities, lambda: DeviceAvailabilities(catalog))
        self._timeout = timeout

    def codes(self, pod: fw.Pod, claim_state: ClaimState, needed: Needed, rows: fw.Rows) -> Int8Column | None:
        """Return for each of `rows`, which all need this, whether there are devices; None if none are asked for.

        Raises DevicesError or TimeoutError, either of which ends the attempt.
        """
        searches = self._searches(pod, claim_state, needed)
        if searches is None:
            return None
        claims = [claim for _, claim in searches.claims]

        def ask(node: Node) -> Solution | None:
            return searches.allocator.allocate(node, self._deadline(node.name))

        rate = (lambda solution: score_of(claims, solution.allocations)) if have_alternatives(claims) else None
        weigh = partial(self._taken, claims) if NODE_AMOUNTS in self._catalog.gates.names else None
        return searches.availability.update(claim_state.nodes, rows, Asking(ask, rate, weigh))

    def _taken(self, claims: Sequence[ResourceClaim], node: Node, solution: Solution) -> Taken:
        devices = DevicesOfNode(node, self._catalog)
        pairs = zip(claims, solution.allocations, strict=True)
        return tuple(amounts_of(claim, allocation, devices) for claim, allocation in pairs)

    def scores(self, claim_state: ClaimState, rows: fw.Rows) -> fw.Int64Column:
        """Return what `codes` found the devices on `rows` to be worth; 0 where it was not asked."""
        found = np.zeros(len(rows), np.int64)
        for needed, places in claim_state.by_need(rows):
            searches = claim_state.searches.get(needed)
            if searches is not None and searches.availability.scores is not None:
                found[places] = searches.availability.scores[rows[places]]
        return found

    def allocate(self, claim_state: ClaimState, row: int) -> list[tuple[int, ResourceClaim, Allocation]]:
        """Return index, claim and devices for each claim that needs some on this node; note the messages for the pod.

        They are searched for again: what is stored may be the answer of a moment when others had them. Raises
        DevicesError if there are none, or if Filter was not asked.
        """
        [(needed, _)] = claim_state.by_need(np.array([row], np.intp))
        searches = claim_state.searches.get(needed)
        if searches is None:
            if any(claim.status.allocation is None for claim in claim_state.users):
                raise DevicesError("claim allocation not found for node")
            return []
        node = claim_state.nodes.info(row).node
        try:
            solution = searches.allocator.allocate(node, self._deadline(node.name))
        except NoDevices:
            solution = None
        if solution is None:
            raise DevicesError("claim allocation not found for node")
        claim_state.mappings = searches.mappings
        return [
            (i, claim, allocation) for (i, claim), allocation in zip(searches.claims, solution.allocations, strict=True)
        ]

    def _searches(self, pod: fw.Pod, claim_state: ClaimState, needed: Needed) -> DeviceSearches | None:
        known = claim_state.searches.get(needed)
        if known is not None:
            return known
        claims = [(i, claim) for i, claim in enumerate(claim_state.users) if claim.status.allocation is None]
        devices = None
        if claim_state.extended is not None and needed:
            devices = claimed_devices(pod, {name: claim_state.extended.classes[name] for name in needed})
            claims.append((claim_state.of_extended, requesting(claim_state.claims[-1], devices.requests)))
        if not claims:
            return None
        asked = [claim for _, claim in claims]
        known = claim_state.searches[needed] = DeviceSearches(
            claims=claims,
            mappings=() if devices is None else devices.mappings,
            allocator=Allocator(self._catalog, asked, self._catalog.allocations.allocated()),
            availability=self._availabilities.of(asked, claim_state.nodes, self._columns),
        )
        return known

    def _deadline(self, node_name: str) -> Callable[[], None]:
        """Return a function that raises TimeoutError once the search on a node has taken too long."""
        if not self._timeout:
            return lambda: None
        end = time.monotonic() + self._timeout

        def check() -> None:
            if time.monotonic() > end:
                raise SearchTimedOut(f"node {node_name}: timed out trying to allocate devices")

        return check


def have_alternatives(claims: Sequence[ResourceClaim]) -> bool:
    return any(request.first_available for claim in claims for request in claim.requests)


def score_of(claims: Sequence[ResourceClaim], allocations: Sequence[Allocation]) -> int:
    """Return the sum over requests with alternatives: 8 for the first, 7 for the second, … Rule: computeScore."""
    score, new = 0, iter(allocations)
    for claim in claims:
        allocation = claim.status.allocation or next(new)
        allocated = {result.request for result in allocation.devices.results or ()}
        for request in claim.requests:
            for i, each in enumerate(request.first_available or ()):
                if f"{request.name}/{each.name}" in allocated:
                    score += MAX_ALTERNATIVES - i
    return score
