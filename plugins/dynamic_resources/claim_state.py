"""The plugin's state in the CycleState: the claims of one pod in one attempt, and the results for them."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import numpy as np

from plugins.dynamic_resources.allocation.allocator import Allocator
from plugins.dynamic_resources.allocation.availability import DeviceAvailability
from plugins.dynamic_resources.extended.requests import RequestMapping
from scheduler import framework as fw
from scheduler.api.devices import Allocation, ResourceClaim
from scheduler.api.objects import ClaimAmounts
from scheduler.api.selectors import SelectorTerm

NOTED: Final = 16
"""The code of the first refusal with a text of its own."""

Needed = frozenset[str]
"""The extended resources that a pod asks for and a node has devices for, if anything: it does not offer them itself."""


class DeviceSearches(msgspec.Struct, eq=False):
    """The search for devices on all nodes that need the same of DRA."""

    claims: list[tuple[int, ResourceClaim]]
    """Index and claim of those that need devices; the one for extended resources asks for what is needed here."""
    mappings: tuple[RequestMapping, ...]
    allocator: Allocator
    availability: DeviceAvailability


class ExtendedDemand(msgspec.Struct, frozen=True, eq=False):
    """A pod's requests for extended resources, of which at least one has a DeviceClass."""

    amounts: Mapping[str, int]
    classes: Mapping[str, str]
    """Resource → name of the class that stands for it."""
    is_stale: bool
    """Whether the pod's claim for it was made by an earlier attempt."""

    def by_need(self, nodes: fw.NodeColumns, rows: fw.Rows) -> Iterator[tuple[Needed, fw.Rows]]:
        """Yield each need of DRA, with the part of `rows` that has it. Rule: filterExtendedResources."""
        groups: list[tuple[Needed, fw.Rows]] = [(frozenset(), np.arange(len(rows)))]
        for resource in self.classes:
            offered = nodes.allocatable(resource)[rows] != 0
            groups = [
                (needed | {resource} if absent else needed, places)
                for needed, of_group in groups
                for absent in (False, True)
                if len(places := of_group[offered[of_group] != absent])
            ]
        yield from groups

    def missing(self, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.BoolColumn:
        """Return for each of `rows` whether the pod asks for something that no class stands for nor the node knows.

        A pod may name thousands of such resources: a node is looked at until the first of them.
        """
        found = ~nodes.in_use[rows]
        for resource in self.amounts.keys() - self.classes.keys():
            left = np.flatnonzero(~found)
            if not len(left):
                break
            for place in left[nodes.allocatable(resource)[rows[left]] == 0].tolist():
                found[place] = resource not in (nodes.info(int(rows[place])).node.status.allocatable or ())
        return found & nodes.in_use[rows]


class ClaimState(msgspec.Struct, eq=False):
    """The claims of one pod in one attempt."""

    claims: list[ResourceClaim]
    """In the order of the pod's spec; the one for extended resources comes last, if there is one."""
    nodes: fw.NodeColumns
    extended: ExtendedDemand | None = None
    """None if the last claim is not for extended resources."""
    terms: dict[int, tuple[SelectorTerm, ...]] = {}
    """Index → where the devices of an allocated claim can be used; left out if everywhere."""
    searches: dict[Needed, DeviceSearches] = {}
    """For the claims that have no devices, once Filter was asked about a node with that need."""
    shared: set[int] = set()
    """Claims that another pod of the group has reserved: their allocation is not written yet."""
    mapped: set[int] = set()
    """Allocated claims with devices that stand for resources of their node: they cannot be shared."""
    containers: dict[str, tuple[str, ...]] = {}
    """UID of a claim → the container of each use, once that was asked for."""
    demands: dict[tuple[ClaimAmounts, ...], fw.Status | Mapping[str, int]] = {}
    """Amounts that the pod takes by devices → all that it takes, or why that cannot be."""
    refusals: list[fw.Status] = []
    """Those of this attempt that have a text of their own: see `code_of`."""
    unavailable: set[int] = set()
    """Claims whose devices some node cannot use."""
    reserved: dict[int, Allocation] = {}
    """Index → what `reserve` took for it."""
    mappings: tuple[RequestMapping, ...] = ()
    """For the status of the pod, on the node for which `reserve` took devices."""
    is_amount_written: bool = False
    """Whether the status of the pod may say already what it takes by devices."""

    @property
    def users(self) -> list[ResourceClaim]:
        """The claims that the pod's spec names."""
        return self.claims if self.extended is None else self.claims[:-1]

    def code_of(self, refusal: fw.Status) -> int:
        """Return the code that stands for a refusal with a text of its own."""
        if refusal not in self.refusals:
            self.refusals.append(refusal)
        return NOTED + self.refusals.index(refusal)

    @property
    def of_extended(self) -> int:
        """The index of the claim for extended resources; -1 without one."""
        return -1 if self.extended is None else len(self.claims) - 1

    def by_need(self, rows: fw.Rows) -> Iterator[tuple[Needed, fw.Rows]]:
        """Yield each need of DRA for extended resources, with the part of `rows` that has it."""
        if self.extended is None:
            yield frozenset(), np.arange(len(rows))
        else:
            yield from self.extended.by_need(self.nodes, rows)
