"""Score: how well a pod fits into the zones of each node. Rule: score.go and the file of each strategy in
pkg/noderesourcetopology of scheduler-plugins.

A zone's score is that of the strategy, a container's the lowest one of a zone that is not 0, and the node's that of the
pod, or the mean of its containers', by the scope of the kubelet's topology manager.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from plugins.contrib.node_resource_topology.requests import Amounts, Asked
from plugins.contrib.node_resource_topology.zones import BY_CONTAINER, BY_POD, MISSING, Grid, ZoneRows
from scheduler import framework as fw
from scheduler.api.pods.requests import CPU

ZoneScores: TypeAlias = npt.NDArray[np.int64]
"""Place, row."""

Strategy: TypeAlias = Callable[[Amounts, ZoneRows, Mapping[str, int]], ZoneScores]


def least_allocated(amounts: Amounts, zones: ZoneRows, weights: Mapping[str, int]) -> ZoneScores:
    """Prefer zones with much left. Rule: least_allocated.go."""
    return _weighted(amounts, zones, weights, lambda asked, available: (available - asked) * 100 // available)


def most_allocated(amounts: Amounts, zones: ZoneRows, weights: Mapping[str, int]) -> ZoneScores:
    """Prefer zones that are filled up. Rule: most_allocated.go."""
    return _weighted(amounts, zones, weights, lambda asked, available: asked * 100 // available)


def balanced_allocation(amounts: Amounts, zones: ZoneRows, weights: Mapping[str, int]) -> ZoneScores:
    """Prefer zones of which the same share of each resource is taken. Rule: balanced_allocation.go.

    One resource alone is balanced; there the variance that scheduler-plugins takes is no number.
    """
    shares = [_share(name, amount, _available(name, zones)) for name, amount in amounts]
    if not shares:
        return np.zeros(zones.exists.shape, np.int64)
    every = np.stack(shares)
    fits = (every <= 1).all(axis=0)
    variance = every.var(axis=0, ddof=1) if len(shares) > 1 else np.zeros(zones.exists.shape)
    return (np.where(fits, 1 - variance, 0) * fw.MAX_NODE_SCORE).astype(np.int64)


def scores(strategy: Strategy, wanted: Asked, zones: ZoneRows, weights: Mapping[str, int]) -> fw.Int64Column:
    """Return the score of each row; 0 for nodes whose kubelet does not keep pods to one zone."""
    result = np.zeros(len(zones.kinds), np.int64)
    if (zones.kinds == BY_POD).any():
        whole = _lowest(strategy(wanted.whole, zones, weights), zones)
        result = np.where(zones.kinds == BY_POD, whole, result)
    if (zones.kinds == BY_CONTAINER).any():
        containers = (*wanted.init, *wanted.sidecars, *wanted.containers)
        total = np.zeros(len(zones.kinds), np.int64)
        for amounts in containers:
            total += _lowest(strategy(amounts, zones, weights), zones)
        result = np.where(zones.kinds == BY_CONTAINER, total // max(len(containers), 1), result)
    return result


def _lowest(of_zones: ZoneScores, zones: ZoneRows) -> fw.Int64Column:
    """The lowest score of a zone that is not 0, as the kubelet does not take those. Rule: score.go."""
    if not of_zones.shape[0]:
        return np.zeros(len(zones.kinds), np.int64)
    counted = zones.exists & (of_zones > 0)
    lowest = np.where(counted, of_zones, np.iinfo(np.int64).max).min(axis=0)
    return np.where(counted.any(axis=0), lowest, 0)


def _weighted(
    amounts: Amounts,
    zones: ZoneRows,
    weights: Mapping[str, int],
    score: Callable[[int, Grid], Grid],
) -> ZoneScores:
    total = np.zeros(zones.exists.shape, np.int64)
    if not amounts:
        return total
    for name, amount in amounts:
        available = _available(name, zones)
        fits = (available > 0) & (available >= amount)
        counted = np.maximum(_counted(name, available), 1)
        total += np.where(fits, score(_whole(name, amount), counted), 0) * _weight(name, weights)
    return total // sum(_weight(name, weights) for name, _ in amounts)


def _share(name: str, amount: int, available: Grid) -> npt.NDArray[np.float64]:
    """Rule: balanced_allocation.go (fractionOfCapacity)."""
    counted = _counted(name, available)
    return np.where(counted > 0, _whole(name, amount) / np.maximum(counted, 1), 1.0)


def _available(name: str, zones: ZoneRows) -> Grid:
    """0 where a zone does not report it."""
    grid = zones.available.get(name)
    return np.zeros(zones.exists.shape, np.int64) if grid is None else np.where(grid == MISSING, 0, grid)


_MILLI: Final = 1000


def _whole(name: str, amount: int) -> int:
    """Scores go by whole cores, rounded up, as Go's Quantity.Value does."""
    return -(-amount // _MILLI) if name == CPU else amount


def _counted(name: str, available: Grid) -> Grid:
    return -(-available // _MILLI) if name == CPU else available


def _weight(name: str, weights: Mapping[str, int]) -> int:
    return max(weights.get(name, 1), 1)
