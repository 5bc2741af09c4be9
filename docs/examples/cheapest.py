"""Prefer cheap nodes: the score is the price, and normalising makes 0 to 100 of it."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from scheduler import framework as fw


@dataclass(frozen=True, slots=True)
class Cheapest(fw.ScorePlugin, fw.NormalizeScorePlugin, fw.SignPlugin):
    """Give the cheapest of the nodes where the pod can run 100, and the dearest one 0."""

    name: ClassVar[str] = "Cheapest"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.LABELS
    signs_spec: ClassVar[bool] = True
    normalizes_by_range: ClassVar[bool] = True
    label: str = "example.com/cents-per-hour"

    def sign(self, pod: fw.Pod) -> Hashable:
        return ()  # the price is the same for every pod

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> int:
        price = node.labels.get(self.label, "")
        return int(price) if price.isdecimal() else 0

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            return np.zeros_like(scores)
        return (highest - scores) * fw.MAX_NODE_SCORE // (highest - lowest)
