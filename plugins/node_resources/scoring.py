"""The common parts of the scorers of node resources: their arguments, and the usage of each resource per node.

And NodeResourcesFit's three strategies: a score from MIN_NODE_SCORE to MAX_NODE_SCORE by how full a node is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from plugins.dynamic_resources.allocation.device_counts import DeviceCounts
from plugins.shared.column_math import LARGE, Amount, amounts, lesser, pick, quotient
from plugins.shared.shapes import MAX_UTILIZATION, UtilizationShapePoint, line
from scheduler import framework as fw
from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar_resource

MAX_WEIGHT: Final = 100


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource that counts in the score."""

    name: str
    weight: int = 1
    """1 to 100; 0 means 1. Rule: apis/config/v1/defaults.go at v1.36.3."""


DEFAULT_RESOURCES: Final = (ResourceSpec(CPU, 1), ResourceSpec(MEMORY, 1))


def with_defaults(resources: Sequence[ResourceSpec]) -> tuple[ResourceSpec, ...]:
    """Return the resources that count, with defaults: a weight of 0 means 1, and no resources mean cpu and memory."""
    return tuple(replace(resource, weight=resource.weight or 1) for resource in resources) or DEFAULT_RESOURCES


class Usage(NamedTuple):
    """One resource on one node or on an array of nodes, all of which have some of it.

    Amounts are thousandths of a core, units or bytes.
    """

    weight: int
    capacity: Amount
    allocated: Amount
    """Without the pod."""

    request: int
    """The pod's."""


Scorer = Callable[[Sequence[Usage]], Amount]
"""Scores nodes by the usage of their resources."""


def score_resources(
    resources: Sequence[ResourceSpec],
    requests: Sequence[int],
    nodes: fw.NodeColumns,
    rows: fw.Rows,
    scorer: Scorer,
    devices: DeviceCounts | None = None,
    *,
    non_zero: bool,
) -> fw.Int64Column:
    """Return the scorer's answer for each of `rows`; `requests` are the pod's, one for each resource.

    Resources of which a node has none do not count, nor do scalar ones that the pod does not request. With
    `non_zero`, cpu and memory are allocated with scoring's defaults for containers without requests. `devices` stand
    in for extended resources that a node does not offer.
    Rule: noderesources/resource_allocation.go (calculateNodeAllocatableRequest) at v1.36.3.
    """
    if len(rows) == 1 and devices is None:
        alone = _usages_of_one(resources, requests, nodes, rows.item(), non_zero=non_zero)
        if alone is not None:
            return np.array([scorer(alone)], np.int64)
    usages = []
    get = amounts if min(requests) >= 0 and max(requests) < LARGE else pick
    for resource, request in zip(resources, requests, strict=True):
        name = resource.name
        if name not in _NATIVE and not (request and is_scalar_resource(name)):
            continue
        allocated = nodes.non_zero_requested(name) if non_zero and name in _WITH_DEFAULTS else nodes.requested(name)
        counted = None if devices is None else devices.of(name, nodes, rows)
        if counted is None:
            usages.append(Usage(resource.weight, get(nodes.allocatable(name), rows), get(allocated, rows), request))
        else:
            offered, there, taken = nodes.allocatable(name)[rows], *counted
            by_devices = (offered == 0) & (there > 0)
            capacity, used = np.where(by_devices, there, offered), np.where(by_devices, taken, allocated[rows])
            usages.append(Usage(resource.weight, capacity, used, request))
    return _scores(usages, len(rows), scorer)


def usages_of_placement(
    resources: Sequence[ResourceSpec], requests: Sequence[int], nodes: fw.NodeColumns, rows: fw.Rows
) -> list[Usage]:
    """Return the usage of each resource on all of `rows` together, as if they were one node.

    `requests` are those of all pods that would come there. Devices do not stand in for extended resources.
    Rule: noderesources/resource_allocation.go (scorePlacement) at v1.36.3.
    """
    usages = []
    for resource, request in zip(resources, requests, strict=True):
        name = resource.name
        if name not in _NATIVE and not (request and is_scalar_resource(name)):
            continue
        capacity = nodes.allocatable(name)[rows]
        column = nodes.non_zero_requested(name) if name in _WITH_DEFAULTS else nodes.requested(name)
        allocated = column[rows][capacity != 0]
        total = capacity.sum(keepdims=True)
        if total.item():
            usages.append(Usage(resource.weight, total, allocated.sum(keepdims=True), request))
    return usages


_NATIVE = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))
_WITH_DEFAULTS = frozenset((CPU, MEMORY))


def _usages_of_one(
    resources: Sequence[ResourceSpec], requests: Sequence[int], nodes: fw.NodeColumns, row: int, *, non_zero: bool
) -> list[Usage] | None:
    """The usages of a single node in plain integers; None if an amount is negative or LARGE."""
    usages = []
    for resource, request in zip(resources, requests, strict=True):
        name = resource.name
        if name not in _NATIVE and not (request and is_scalar_resource(name)):
            continue
        column = nodes.non_zero_requested(name) if non_zero and name in _WITH_DEFAULTS else nodes.requested(name)
        capacity, allocated = nodes.allocatable(name).item(row), column.item(row)
        if not (0 <= capacity < LARGE and 0 <= allocated < LARGE and 0 <= request < LARGE):
            return None
        if capacity:
            usages.append(Usage(resource.weight, capacity, allocated, request))
    return usages


def _scores(usages: Sequence[Usage], count: int, scorer: Scorer) -> fw.Int64Column:
    """Score the nodes that have the same resources together."""
    for i, usage in enumerate(usages):
        have_some = int(usage.capacity != 0 if isinstance(usage.capacity, int) else np.count_nonzero(usage.capacity))
        if have_some == count:
            continue
        rest = (*usages[:i], *usages[i + 1 :])
        if not have_some:
            return _scores(rest, count, scorer)
        present = np.not_equal(usage.capacity, 0)
        scores = np.empty(count, np.int64)
        scores[present] = _scores(_only(present, usages), have_some, scorer)
        scores[~present] = _scores(_only(~present, rest), count - have_some, scorer)
        return scores
    answer = scorer(usages)
    return np.full(count, answer) if isinstance(answer, int) else answer


def _only(which: fw.BoolColumn, usages: Sequence[Usage]) -> list[Usage]:
    def part(amount: Amount) -> Amount:
        return amount if isinstance(amount, int) else amount[which]

    return [usage._replace(capacity=part(usage.capacity), allocated=part(usage.allocated)) for usage in usages]


def least_allocated(usages: Sequence[Usage]) -> Amount:
    """Prefer empty nodes: the weighted mean of the free amounts after the pod, in percent.

    Rule: noderesources/least_allocated.go at v1.36.3.
    """
    return _weighted_mean(usages, _free_percent)


def most_allocated(usages: Sequence[Usage]) -> Amount:
    """Prefer full nodes: the weighted mean of the used amounts after the pod, in percent.

    Rule: noderesources/most_allocated.go at v1.36.3.
    """
    return _weighted_mean(usages, _used_percent)


def requested_to_capacity_ratio(shape: tuple[UtilizationShapePoint, ...], usages: Sequence[Usage]) -> Amount:
    """Score by `shape`: the rounded, weighted mean of its line over the resources where it is not 0.

    Rule: noderesources/requested_to_capacity_ratio.go and helper/shape_score.go at v1.36.3.
    """
    percents = line(shape)
    total: Amount = 0
    weights: Amount = 0
    for weight, capacity, allocated, request in usages:
        requested = allocated + request
        percent = quotient(requested * MAX_UTILIZATION, capacity)
        percent = percent + (MAX_UTILIZATION - percent) * (requested > capacity)
        score = percents.item(percent) if isinstance(percent, int) else percents[percent.clip(0, MAX_UTILIZATION)]
        total = total + weight * score
        weights = weights + weight * (score > 0)
    weights = weights + (weights == 0)
    return (2 * total + weights) // (2 * weights)  # half up, as Go's math.Round does for non-negative numbers


def _free_percent(capacity: Amount, requested: Amount) -> Amount:
    return quotient((capacity - requested) * fw.MAX_NODE_SCORE * (requested <= capacity), capacity)


def _used_percent(capacity: Amount, requested: Amount) -> Amount:
    return quotient(lesser(requested, capacity) * fw.MAX_NODE_SCORE, capacity)


def _weighted_mean(usages: Sequence[Usage], percent: Callable[[Amount, Amount], Amount]) -> Amount:
    if not usages:
        return 0
    total: Amount = 0
    for weight, capacity, allocated, request in usages:
        score = percent(capacity, allocated + request)
        total = total + (score if weight == 1 else weight * score)
    return quotient(total, sum([usage.weight for usage in usages]))
