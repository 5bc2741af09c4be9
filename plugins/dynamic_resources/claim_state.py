"""What the plugin keeps in the CycleState: the claims of one pod in one attempt, and what was found out about them."""

from collections.abc import Iterator

import msgspec

from plugins.dynamic_resources.allocator import Allocator
from plugins.dynamic_resources.availability import DeviceAvailability
from scheduler import framework as fw
from scheduler.api.devices import Allocation, ResourceClaim
from scheduler.api.selectors import SelectorTerm


class ClaimState(msgspec.Struct, eq=False):
    """The claims of one pod in one attempt."""

    claims: list[ResourceClaim]
    nodes: fw.NodeColumns
    terms: dict[int, tuple[SelectorTerm, ...]] = {}
    """Index → where the devices of an allocated claim can be used; left out if everywhere."""
    allocator: Allocator | None = None
    """For the claims that have no devices, if there are any."""
    availability: DeviceAvailability | None = None
    """Which nodes have devices for them, once Filter was asked."""
    unavailable: set[int] = set()
    """Claims whose devices some node cannot use."""
    reserved: dict[int, Allocation] = {}
    """Index → what `reserve` took for it."""

    def to_allocate(self) -> Iterator[tuple[int, ResourceClaim]]:
        return ((i, claim) for i, claim in enumerate(self.claims) if claim.status.allocation is None)
