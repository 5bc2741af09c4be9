"""Lines that map utilization to a score, as NodeResourcesFit and VolumeBinding take them from their arguments.

Rule: pkg/scheduler/framework/plugins/helper/shape_score.go (BuildBrokenLinearFunction) and validation_pluginargs.go
(validateFunctionShape) at v1.37.2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np

from scheduler import framework as fw
from scheduler.framework.field_errors import invalid, required

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


@lru_cache(maxsize=64)
def line(shape: tuple[UtilizationShapePoint, ...]) -> fw.Int64Column:
    """Return the node score for each percent from 0 to 100."""
    return np.array([_score_at(percent, shape) for percent in range(MAX_UTILIZATION + 1)], np.int64)


def problems_of_shape(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[tuple[str, str]]:
    """Yield each problem of a shape, with its place."""
    if not shape:
        yield path, required("at least one point must be specified")
    for i, (left, right) in enumerate(pairwise(shape), start=1):
        if left.utilization >= right.utilization:
            yield f"{path}[{i}].utilization", invalid(right.utilization, "values must be sorted in increasing order")
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= MAX_UTILIZATION:
            detail = f"not in valid range [0, {MAX_UTILIZATION}]"
            yield f"{path}[{i}].utilization", invalid(point.utilization, detail)
        if not 0 <= point.score <= MAX_SHAPE_SCORE:
            yield f"{path}[{i}].score", invalid(point.score, f"not in valid range [0, {MAX_SHAPE_SCORE}]")


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
