"""A formula for each figure, a + b·nodes + c·pods, by least squares of relative errors: no term is below 0. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tests.sizing.measure import Sizing


@dataclass(frozen=True, slots=True)
class Formula:
    """a + b·nodes + c·pods."""

    constant: float
    per_node: float
    per_pod: float
    error: float
    """The largest by which it is off anywhere, as a share of what was measured."""

    def at(self, nodes: int, pods: int) -> float:
        return self.constant + self.per_node * nodes + self.per_pod * pods


def fit(found: Sequence[Sizing], figure: Callable[[Sizing], float]) -> Formula:
    """The formula that is nearest to a figure of these.

    Large clusters do not outweigh small ones, as each error is a share of the figure. Terms that would be negative are
    left out: the best of all choices of terms without one is returned. Raises ValueError with fewer sizes than terms.
    """
    if len(found) < 3:
        raise ValueError(f"three sizes are needed for three terms, not {len(found)}")
    sizes = np.array([[1.0, one.nodes, one.pods] for one in found])
    values = np.array([figure(one) for one in found])
    relative = sizes / values[:, None]
    best: tuple[float, np.ndarray] | None = None
    for count in (3, 2, 1):
        for terms in combinations(range(3), count):
            solved = np.linalg.lstsq(relative[:, terms], np.ones(len(found)), rcond=None)[0]
            if (solved < 0).any():
                continue
            whole = np.zeros(3)
            whole[list(terms)] = solved
            squares = float(((relative @ whole - 1) ** 2).sum())
            if best is None or squares < best[0]:
                best = squares, whole
    assert best is not None, "a constant alone is never below 0"
    terms_of = best[1]
    error = float(np.abs(relative @ terms_of - 1).max())
    return Formula(float(terms_of[0]), float(terms_of[1]), float(terms_of[2]), error)
