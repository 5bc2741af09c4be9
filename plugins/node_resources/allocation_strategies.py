"""NodeResourcesFit's three scoring strategies: scores by how full a node is.

Each returns a score from MIN_NODE_SCORE to MAX_NODE_SCORE.
"""

from collections.abc import Callable, Sequence

from plugins.node_resources.scoring import Usage
from plugins.shared.column_math import Amount, lesser, quotient
from plugins.shared.shapes import MAX_UTILIZATION, UtilizationShapePoint, line
from scheduler import framework as fw


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
