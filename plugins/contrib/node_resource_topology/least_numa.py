"""The strategy LeastNUMANodes: the fewer NUMA nodes a pod needs, and the nearer they are, the better.

Rule: pkg/noderesourcetopology/least_numa.go of scheduler-plugins. It counts for every policy.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, TypeAlias

from plugins.contrib.node_resource_topology.requests import Amounts, Asked, is_numa_affine
from plugins.contrib.node_resource_topology.topology import POD_SCOPE, NodeTopology
from scheduler import framework as fw

MAX_DISTANCE: Final = 255
"""ACPI's value for an unknown distance."""

MAX_COMBINED: Final = 8
"""Zones of which all combinations are looked at, as many as a kubelet takes by default; a node with more scores 0."""

_Left: TypeAlias = list[dict[str, int]]
"""By place of the zone."""


def least_numa_score(wanted: Asked, topology: NodeTopology) -> int:
    """Return the score of one node for a pod."""
    if len(topology.zones) > MAX_COMBINED:
        return fw.MIN_NODE_SCORE
    left: _Left = [dict(zone.available) for zone in topology.zones]
    units = [wanted.whole] if topology.scope == POD_SCOPE else [*wanted.init, *wanted.sidecars, *wanted.containers]
    most, all_near = 0, True
    for amounts in units:
        if not any(name in zone for name, _ in amounts for zone in left):
            continue
        places, near = fewest_zones(amounts, topology, left, guaranteed=wanted.guaranteed)
        if not places:
            return fw.MIN_NODE_SCORE
        most = max(most, len(places))
        all_near = all_near and near
        _take(amounts, left, places)
    if not most:
        return fw.MAX_NODE_SCORE
    step = fw.MAX_NODE_SCORE // topology.max_numa_nodes
    return max(fw.MAX_NODE_SCORE - most * step + (step // 2 if all_near else 0), fw.MIN_NODE_SCORE)


def fewest_zones(
    amounts: Amounts, topology: NodeTopology, left: _Left, *, guaranteed: bool
) -> tuple[Sequence[int], bool]:
    """The fewest zones that have it all together, the nearest ones of those; whether no others are nearer."""
    for count in range(1, len(left) + 1):
        choices = list(combinations(range(len(left)), count))
        nearest = min(average_distance(topology, places) for places in choices)
        fitting = [places for places in choices if _fits(amounts, left, places, guaranteed=guaranteed)]
        if fitting:
            best = min(fitting, key=lambda places: average_distance(topology, places))
            return best, average_distance(topology, best) == min(nearest, MAX_DISTANCE)
    return (), False


def average_distance(topology: NodeTopology, places: Sequence[int]) -> float:
    zones = [topology.zones[place] for place in places]
    total = sum(one.costs.get(other.id, MAX_DISTANCE) for one in zones for other in zones)
    return total / (len(zones) * len(zones))


def _fits(amounts: Amounts, left: _Left, places: Sequence[int], *, guaranteed: bool) -> bool:
    """Return whether these zones have enough together. Each of them must report all that is asked for, however little
    it has: a zone without memory of its own is no use to a pod that asks for memory."""
    return all(
        all(name in left[place] for place in places)
        and ((is_numa_affine(name) and not guaranteed) or sum(left[place][name] for place in places) >= amount)
        for name, amount in amounts
    )


def _take(amounts: Amounts, left: _Left, places: Sequence[int]) -> None:
    for name, amount in amounts:
        for place in places:
            taken = min(amount, left[place].get(name, 0))
            if taken > 0:
                left[place][name] -= taken
                amount -= taken
