"""NodeResourcesFit's Filter in a dry run: nodes while pods leave them and come back."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from scheduler import framework as fw
from scheduler.api.pods.pod import Pod

# A reason code is a set of bits: the insufficient resources, and whether an empty node would have too little.
UNRESOLVABLE: Final = 1 << 0
TOO_MANY_PODS: Final = 1 << 1

_LIMIT = 2**63


class Compared(NamedTuple):
    """A resource that the pod requests, as Filter compares it."""

    bit: int
    """The reason code of too little."""
    name: str
    amount: int
    by_devices: bool
    """Whether a node that offers none may have devices for it: DynamicResources looks."""


class _Columns(NamedTuple):
    bit: int
    amount: int
    allocatable: fw.Int64Column
    requested: fw.Int64Column
    by_devices: bool


class FitSimulator(fw.BulkSimulator):
    """Starts dry runs for one pod."""

    def __init__(self, compared: Sequence[Compared], nodes: fw.NodeColumns) -> None:
        """`compared`: the resources that the pod asks for."""
        self._allowed_pods, self._pod_count = nodes.allowed_pods, nodes.pod_count
        self._wanted = [(i, each.name, each.amount, _LIMIT - each.amount) for i, each in enumerate(compared)]
        self._columns = [
            _Columns(each.bit, each.amount, nodes.allocatable(each.name), nodes.requested(each.name), each.by_devices)
            for each in compared
        ]

    def __call__(self, row: int) -> "FitNode":
        free_pods = self._allowed_pods.item(row) - self._pod_count.item(row)
        wanted, bits, spare = self._wanted, [], []
        for i, (bit, amount, allocatable, requested, by_devices) in enumerate(self._columns):
            capacity = allocatable.item(row)
            bits.append(bit | UNRESOLVABLE if capacity < amount else bit)
            spare.append(capacity - requested.item(row) - amount)
            if by_devices and capacity <= 0:
                wanted = [each for each in wanted if each[0] != i]
        return FitNode(wanted, bits, free_pods, spare)

    def without(self, lower: fw.LowerPods, rows: fw.Rows, nominated: fw.NominatedPods) -> "FitNodes":
        free_pods = self._allowed_pods[rows] - self._pod_count[rows] + lower.counts
        if nominated:
            free_pods -= nominated.counts(rows)
        resources = []
        for (_, name, _, _), column in zip(self._wanted, self._columns, strict=True):
            capacity = column.allocatable[rows]
            free = capacity - column.requested[rows] + lower.sums(name)
            taken = nominated.sums(name, rows) if nominated else None
            if taken is not None:
                free -= taken
            exempt = capacity <= 0 if column.by_devices else None
            resources.append(
                _RequestedResource(column.bit, column.amount, capacity, free, taken, lower.amounts(name), exempt)
            )
        return FitNodes(free_pods, resources)

    def codes_with(self, nominated: fw.NominatedPods, rows: fw.Rows) -> fw.Int32Column:
        codes = (self._allowed_pods[rows] - self._pod_count[rows] - nominated.counts(rows) <= 0) * TOO_MANY_PODS
        for (_, name, _, _), column in zip(self._wanted, self._columns, strict=True):
            capacity = column.allocatable[rows]
            free = capacity - column.requested[rows] - nominated.sums(name, rows)
            exempt = capacity <= 0 if column.by_devices else None
            codes |= _codes(free, column.bit, column.amount, capacity, exempt)
        return codes.astype(np.int32)


class FitNode:
    """Implements scheduler.framework.preemption.dry_run_filter.SimulatedNode. Rule: fit.go (fitsRequest) at v1.36.3."""

    __slots__ = ("_bits", "_free_pods", "_spare", "_wanted")

    def __init__(
        self, wanted: Sequence[tuple[int, str, int, int]], bits: Sequence[int], free_pods: int, spare: list[int]
    ) -> None:
        """`wanted`: place, name and amount of each resource, and from where on more overflows. `free_pods`: how many
        more pods the node may have.

        By place: `bits` for what is insufficient, and in `spare` what would be left with the pod.
        """
        self._wanted = wanted
        self._bits = bits
        self._free_pods = free_pods
        self._spare = spare

    def code(self) -> int:
        code = TOO_MANY_PODS if self._free_pods <= 0 else 0
        for i, _, amount, _ in self._wanted:
            if _is_short(self._spare[i], amount):
                code |= self._bits[i]
        return code

    def remove(self, other: Pod) -> None:
        self._free_pods += 1
        spare, requests = self._spare, other.requests
        for i, name, _, _ in self._wanted:
            if name in requests:
                spare[i] += requests[name]

    def admit(self, other: Pod) -> bool:
        if self._free_pods <= 1:
            return False
        spare, requests = self._spare, other.requests
        left = spare.copy()
        for i, name, amount, limit in self._wanted:
            if name in requests:
                left[i] -= requests[name]
                if not 0 <= left[i] < limit and _is_short(left[i], amount):
                    return False
        self._spare = left
        self._free_pods -= 1
        return True


class _RequestedResource(NamedTuple):
    """A resource that the pod requests. Amounts are int64 and wrap as in Go."""

    bit: int
    amount: int
    capacity: fw.Int64Column
    """By node."""
    free: fw.Int64Column
    """By node, with the nominated pods there."""
    taken: fw.Int64Column | None
    """By node, what the nominated pods request; None if there are none. Sums may wrap: without them it may not fit."""
    asked: fw.Int64Column
    """By pod of lower priority."""
    exempt: fw.BoolColumn | None
    """By node, whether devices are looked for there instead; None if nowhere."""


class FitNodes:
    """Implements scheduler.framework.preemption.dry_run_filter.SimulatedNodes, as FitNode does for one node."""

    __slots__ = ("_free_pods", "_resources")

    def __init__(self, free_pods: fw.Int64Column, resources: Sequence[_RequestedResource]) -> None:
        """`free_pods`: how many more pods each node may have."""
        self._free_pods = free_pods
        self._resources = resources

    def codes(self) -> fw.Int32Column:
        codes = (self._free_pods <= 0) * TOO_MANY_PODS
        for bit, amount, capacity, free, _, _, exempt in self._resources:
            codes |= _codes(free, bit, amount, capacity, exempt)
        alone = np.zeros_like(codes)
        for bit, amount, capacity, free, taken, _, exempt in self._resources:
            if taken is not None:
                alone |= _codes(free + taken, bit, amount, capacity, exempt)
        return np.where(codes, codes, alone).astype(np.int32)

    def admit(self, nodes: fw.Rows, pods: fw.Rows) -> fw.BoolColumn:
        fits: fw.BoolColumn = self._free_pods[nodes] > 1
        left = []
        for _, amount, _, free, taken, asked, exempt in self._resources:
            wanted = asked[pods]
            rest = free[nodes] - wanted
            left.append(rest)
            enough = rest >= amount
            if taken is not None:
                enough &= rest + taken[nodes] >= amount
            fits &= enough if exempt is None else enough | exempt[nodes]
        admitted = nodes[fits]
        self._free_pods[admitted] -= 1
        for resource, rest in zip(self._resources, left, strict=True):
            resource.free[admitted] = rest[fits]
        return fits


def _codes(
    free: fw.Int64Column, bit: int, amount: int, capacity: fw.Int64Column, exempt: fw.BoolColumn | None
) -> fw.Int64Column:
    short = free < amount if exempt is None else (free < amount) & ~exempt
    codes: fw.Int64Column = short * bit | (short & (capacity < amount)) * UNRESOLVABLE
    return codes


def _is_short(spare: int, amount: int) -> bool:
    """Return whether what is free, `spare` and `amount`, is less than the amount, if sums beyond int64 wrap as in
    Go."""
    free = (spare + amount + _LIMIT) % (2 * _LIMIT) - _LIMIT
    return free < amount
