"""NodeResourcesFit's three scoring strategies: scores by how full a node is.

Each returns a score from MIN_NODE_SCORE to MAX_NODE_SCORE.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from plugins.node_resources.scoring import Usage
from plugins.shared.column_math import Amount, lesser, quotient
from scheduler import framework as fw

MAX_UTILIZATION: Final = 100
MAX_SHAPE_SCORE: Final = 10
"""The scale of scores in a shape; times MAX_NODE_SCORE / 10 it is a node's score."""


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """A point of the line that maps utilization to a score."""

    utilization: int = 0
    """Percent, 0 to 100."""

    score: int = 0
    """0 to 10."""


def least_allocated(usages: Sequence[Usage]) -> Amount:
    """Prefer empty nodes: the weighted mean of what is free after the pod, in percent.

    Rule: noderesources/least_allocated.go at v1.36.3.
    """
    return _weighted_mean(usages, _free_percent)


def most_allocated(usages: Sequence[Usage]) -> Amount:
    """Prefer full nodes: the weighted mean of what is used after the pod, in percent.

    Rule: noderesources/most_allocated.go at v1.36.3.
    """
    return _weighted_mean(usages, _used_percent)


def requested_to_capacity_ratio(shape: tuple[UtilizationShapePoint, ...], usages: Sequence[Usage]) -> Amount:
    """Score by `shape`: the rounded, weighted mean of its line over the resources where it is not 0.

    Rule: noderesources/requested_to_capacity_ratio.go and helper/shape_score.go at v1.36.3.
    """
    line = _line(shape)
    total: Amount = 0
    weights: Amount = 0
    for weight, capacity, allocated, request in usages:
        requested = allocated + request
        percent = quotient(requested * MAX_UTILIZATION, capacity)
        percent = percent + (MAX_UTILIZATION - percent) * (requested > capacity)
        score = line.item(percent) if isinstance(percent, int) else line[percent.clip(0, MAX_UTILIZATION)]
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


@lru_cache(maxsize=64)
def _line(shape: tuple[UtilizationShapePoint, ...]) -> fw.Int64Column:
    """Return the node score for each percent from 0 to 100."""
    return np.array([_score_at(percent, shape) for percent in range(MAX_UTILIZATION + 1)], np.int64)


def _score_at(percent: int, shape: Sequence[UtilizationShapePoint]) -> int:
    scale = fw.MAX_NODE_SCORE // MAX_SHAPE_SCORE
    if percent <= shape[0].utilization:
        return shape[0].score * scale
    for left, right in pairwise(shape):
        if percent <= right.utilization:
            rise = (right.score - left.score) * scale * (percent - left.utilization)
            step = abs(rise) // (right.utilization - left.utilization)
            return left.score * scale + (step if rise >= 0 else -step)
    return shape[-1].score * scale
