"""Scores nodes by a pod's soft spread constraints: the fewer matching pods in their domains, the better.

Rule: podtopologyspread/scoring.go at v1.36.3.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from plugins.pod_topology_spread.constraints import HOSTNAME, SpreadConstraint
from plugins.pod_topology_spread.domains import pods_counted, rows_in_none, union
from plugins.pod_topology_spread.nodes import ExcludedNodes
from plugins.shared.column_math import pick
from plugins.shared.topology_domains import Domains
from scheduler import framework as fw

NOT_RATED: Final = -1
"""The raw score of a node that lacks a required topology key."""

_Ratings: TypeAlias = npt.NDArray[np.float64]


class _ConstraintScore(NamedTuple):
    """One constraint's part of the nodes' scores: a few different ratings, and the one that each row gets."""

    which: fw.Int32Column
    ratings: _Ratings


class SoftSpread:
    """The state of a pod's soft constraints, made by PreScore."""

    __slots__ = ("_domains", "_terms")

    def __init__(self, terms: Sequence[_ConstraintScore], domains: Sequence[Domains]) -> None:
        """`domains`: of the keys without which a node is not rated."""
        self._terms = terms
        self._domains = domains

    @classmethod
    def of(
        cls,
        constraints: Sequence[SpreadConstraint],
        pod: fw.Pod,
        nodes: fw.NodeColumns,
        rows: fw.Rows,
        excluded_nodes: ExcludedNodes,
        *,
        all_keys: bool,
    ) -> "SoftSpread":
        """Count the pods of every domain. `rows`: the feasible nodes, which decide how large a topology is.

        With `all_keys`, nodes that lack any topology key count for nothing and are not rated.
        """
        domains = [Domains(nodes, constraint.topology_key) for constraint in constraints]
        lacking = _lacking(domains, rows) if all_keys else None
        rated = rows if lacking is None else rows[~lacking]
        incomplete = rows_in_none(domains) if all_keys and len(domains) > 1 else None
        terms = []
        for constraint, key_domains in zip(constraints, domains, strict=True):
            pods = pods_counted(constraint, pod, nodes)
            offset = float(constraint.max_skew - 1)
            if constraint.topology_key == HOSTNAME:
                # Every node is a domain of its own: what is on it is what counts, whatever is left out elsewhere.
                terms.append(_by_row(key_domains, pods, topology_weight(len(rated)), offset))
                continue
            excluded = union(incomplete, excluded_nodes.of(constraint, pod, nodes))
            unnamed = 0 if all_keys else nodes.label_code(constraint.topology_key, "")
            topology = _ScoredDomains(nodes, key_domains, unnamed)
            ratings = _ratings(topology.sums(pods, excluded), topology_weight(topology.size(rated)), offset)
            ratings[0] = 0.0
            terms.append(_ConstraintScore(key_domains.codes, ratings))
        return cls(terms, domains if all_keys else ())

    def scores(self, rows: fw.Rows) -> fw.Int64Column:
        """Return for each of `rows` the weighted number of pods, rounded, or NOT_RATED."""
        first, *others = self._terms
        if others:
            total: _Ratings = first.ratings.take(pick(first.which, rows))
            for term in others:
                total += term.ratings.take(pick(term.which, rows))
            found = rounded(total)
        else:
            found = rounded(first.ratings).take(pick(first.which, rows))
        lacking = _lacking(self._domains, rows)
        if lacking is not None:
            found[lacking] = NOT_RATED
        return found


def _by_row(domains: Domains, pods: fw.PodCounts | None, weight: float, offset: float) -> _ConstraintScore:
    """Rate each row by its own pods, or with 0 if it lacks the label."""
    counts = np.zeros_like(domains.codes) if pods is None else pods.counts
    ratings = _ratings(np.arange(int(counts.max(initial=0)) + 1), weight, offset)
    if domains.is_complete:
        return _ConstraintScore(counts, ratings)
    return _ConstraintScore((counts + 1) * (domains.codes != 0), np.concatenate([[0.0], ratings]))


def _ratings(pods: fw.Int64Column, weight: float, offset: float) -> _Ratings:
    return pods.astype(np.float64) * weight + offset


class _ScoredDomains:
    """The domains of one key, as Score sees them."""

    __slots__ = ("_domains", "_nodes", "_unnamed")

    def __init__(self, nodes: fw.NodeColumns, domains: Domains, unnamed: int) -> None:
        """`unnamed`: the code of the value "", whose domain has the nodes without the label as well; 0 if none."""
        self._nodes = nodes
        self._domains = domains
        self._unnamed = unnamed

    def size(self, rows: fw.Rows) -> int:
        """Return how many domains there are among these nodes."""
        if len(rows) == self._nodes.count == self._domains.topology.labelled:
            return len(self._domains.topology.distinct)
        nodes = np.bincount(pick(self._domains.codes, rows))
        domains = np.count_nonzero(nodes)
        both = 0 < self._unnamed < len(nodes) and nodes[0] and nodes[self._unnamed]
        return int(domains) - int(bool(both))

    def sums(self, pods: fw.PodCounts | None, excluded: fw.BoolColumn | None) -> fw.Int64Column:
        """Return how many pods each domain has on rows that are not excluded, by code; to be read only."""
        topology = self._domains.topology
        if pods is None:
            return np.zeros(len(topology.values), np.int64)
        if excluded is None and not self._unnamed:
            return pods.sums(topology)
        codes, counts = self._domains.codes, pods.counts
        if excluded is not None:
            counts = counts * ~excluded
        found: fw.Int64Column = np.bincount(codes, counts, len(topology.values)).astype(np.int64)
        if self._unnamed:
            found[self._unnamed] += counts[self._nodes.in_use & (codes == 0)].sum()
        return found


def _lacking(domains: Sequence[Domains], rows: fw.Rows) -> fw.BoolColumn | None:
    """Return for each of `rows` whether it lacks any of the labels; None if all have all of them."""
    missing = rows_in_none(domains)
    if missing is None:
        return None
    found = pick(missing, rows)
    return found if found.any() else None


def rounded(ratings: _Ratings) -> fw.Int64Column:
    """Round half up, as Go does for non-negative numbers; whole numbers may be negative."""
    whole = np.trunc(ratings)
    whole += ratings - whole >= 0.5
    return whole.astype(np.int64)


def normalized_spread(scores: fw.Int64Column) -> fw.Int64Column:
    """Reverse raw scores and scale them by the highest; NOT_RATED becomes 0. Rule: NormalizeScore."""
    unrated: fw.BoolColumn | None = None
    highest = int(scores.max(initial=0))
    lowest = int(scores.min(initial=highest))
    if lowest == NOT_RATED:
        unrated = scores == NOT_RATED
        lowest = int(scores[~unrated].min(initial=highest))
    if highest == 0:
        found = np.full_like(scores, fw.MAX_NODE_SCORE)
    else:
        found = fw.MAX_NODE_SCORE * (highest + lowest - scores) // highest
    if unrated is not None:
        found[unrated] = 0
    return found


# The polynomial of Go's math.Log, which is that of FreeBSD's e_log.c; the last bit of glibc's logarithm may differ.
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_EVEN: Final = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_ODD: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


@lru_cache(maxsize=4096)
def topology_weight(size: int) -> float:
    """Return the weight of a topology with this many domains: ln(size + 2), to the last bit as Go has it."""
    fraction, exponent = math.frexp(size + 2)
    if fraction < math.sqrt(0.5):
        fraction, exponent = 2 * fraction, exponent - 1
    f = fraction - 1
    s = f / (2 + f)
    square = s * s
    fourth = square * square
    even = square * (_EVEN[0] + fourth * (_EVEN[1] + fourth * (_EVEN[2] + fourth * _EVEN[3])))
    odd = fourth * (_ODD[0] + fourth * (_ODD[1] + fourth * _ODD[2]))
    half = 0.5 * f * f
    return exponent * _LN2_HIGH - ((half - (s * (half + (even + odd)) + exponent * _LN2_LOW)) - f)
