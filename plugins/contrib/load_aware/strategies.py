"""Scores by the usage of nodes, as floats from 0 to 100, where it is known. Formulas: Trimaran's, of scheduler-plugins.

https://github.com/kubernetes-sigs/scheduler-plugins, pkg/trimaran: targetloadpacking and loadvariationriskbalancing.
"""

import numpy as np

from plugins.contrib.load_aware.table import FloatColumn, ResourceLoad
from scheduler import framework as fw


def target_load_packing(load: ResourceLoad, added: float, capacity: FloatColumn, target: float) -> FloatColumn:
    """Fill nodes up to a share of their cpu, `target` in percent, then spread the rest.

    The score rises from `target` on an idle node to 100 on one that is just filled up, and falls from `target` to 0
    beyond. Rule: targetloadpacking.go (Score).
    """
    percent = _share(load.mean + added, capacity) * 100
    below = (100 - target) * percent / target + target
    above = target * (100 - percent) / (100 - target) if target < 100 else np.zeros_like(percent)
    return np.where(percent <= target, below, np.where(percent <= 100, above, 0.0))


def load_variation(
    load: ResourceLoad, added: float, capacity: FloatColumn, margin: float, sensitivity: float
) -> FloatColumn:
    """Prefer nodes with low and steady usage: the risk is its mean and its deviation.

    Rule: loadvariationriskbalancing/analysis.go (computeScore).
    """
    mean = np.clip(_share(load.mean + added, capacity), 0, 1)
    deviation = np.clip(_share(load.deviation, capacity), 0, 1)
    power = 1 / sensitivity if sensitivity else np.inf
    deviation = np.clip(np.power(deviation, power) * margin, 0, 1)
    return np.where(capacity > 0, (1 - (mean + deviation) / 2) * 100, 0.0)


def rounded(scores: FloatColumn) -> fw.Int64Column:
    """Round half up, as Go's math.Round does for non-negative numbers."""
    whole = np.floor(scores)
    return (whole + (scores - whole >= 0.5)).astype(np.int64)


def _share(amount: FloatColumn, capacity: FloatColumn) -> FloatColumn:
    """0 where there is no capacity. Rule: targetloadpacking.go, resourcestats.go (GetMuSigma)."""
    return np.divide(amount, capacity, out=np.zeros_like(amount), where=capacity > 0)
