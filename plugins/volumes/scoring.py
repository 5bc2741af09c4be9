"""Scores of nodes by the usage of the storage behind a pod's claims.

For each class, the requested part of the storage, in percent, is mapped to a score by a line; a node's score is the
mean of its classes. If a node binds existing volumes, these count, and otherwise those that it provisions.

Rule: volumebinding/scorer.go and volume_binding.go (Score) at v1.37.2. Where kube-scheduler 1.37.2 panics, for a
capacity that has only `maximumVolumeSize`, a provision has no known capacity here.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from plugins.shared.column_math import quotient
from plugins.shared.shapes import MAX_UTILIZATION
from scheduler import framework as fw

UNKNOWN: Final = np.iinfo(np.int64).min
"""As a size: there is none, or it is not known."""

Places = npt.NDArray[np.int32]


class ClaimStorage(NamedTuple):
    """The storage that one claim could use on each row."""

    class_name: str
    requested: int
    """Bytes, as an int64."""
    sizes: fw.Int64Column
    """Bytes, of each volume or capacity in question; the last entry is UNKNOWN."""
    places: Places
    """For each row, where in `sizes` its own is."""

    def is_there(self) -> fw.BoolColumn:
        """Return which rows have a known size."""
        known: fw.BoolColumn = (self.sizes != UNKNOWN)[self.places]
        return known


def storage_scores(claims: Sequence[ClaimStorage], line: fw.Int64Column, rows: int, *, adds_up: bool) -> fw.Int64Column:
    """Return a score for each row. `adds_up`: the claims of a class have a volume each; otherwise they share one size.

    `line`: the score for each percent.
    """
    if len(claims) == 1:
        (claim,) = claims
        of_sizes = _scores(np.array([claim.requested]), claim.sizes, line)
        of_sizes[claim.sizes == UNKNOWN] = 0
        found: fw.Int64Column = of_sizes[claim.places]
        return found
    by_class: defaultdict[str, list[ClaimStorage]] = defaultdict(list)
    for claim in claims:
        by_class[claim.class_name].append(claim)
    total, classes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for of_class in by_class.values():
        requested, size = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        has_any = np.zeros(rows, np.bool_)
        for claim in of_class:
            own, known = claim.sizes[claim.places], claim.is_there()
            requested[known] += claim.requested
            size[known] = size[known] + own[known] if adds_up else own[known]
            has_any |= known
        total += has_any * _scores(requested, size, line)
        classes += has_any
    classes[classes == 0] = 1
    return (2 * total + classes) // (2 * classes)  # half up, as Go's math.Round does for non-negative numbers


def _scores(requested: fw.Int64Column, size: fw.Int64Column, line: fw.Int64Column) -> fw.Int64Column:
    exceeded = (size == 0) | (requested > size)
    percent = quotient(requested * MAX_UTILIZATION, np.where(exceeded, 1, size))
    percent[exceeded] = MAX_UTILIZATION
    found: fw.Int64Column = line[percent.clip(0, MAX_UTILIZATION)]
    return found
