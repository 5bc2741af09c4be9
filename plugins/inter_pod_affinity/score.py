"""InterPodAffinity's Score: what the pods of each topology domain are worth to a pod, and it to them.

Rule: interpodaffinity/scoring.go at v1.36.3.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from plugins.inter_pod_affinity.terms import WantedPods
from plugins.shared.topology_domains import Domains
from scheduler import framework as fw

_SIGNS: Final = ((fw.TermKind.PREFERRED_AFFINITY, 1), (fw.TermKind.PREFERRED_ANTI_AFFINITY, -1))


KINDS_OF_WORTH: Final = (
    fw.TermKind.REQUIRED_AFFINITY,
    fw.TermKind.PREFERRED_AFFINITY,
    fw.TermKind.PREFERRED_ANTI_AFFINITY,
)
"""The terms of pods on nodes that are worth something to a pod that they meet."""


MAX_KEPT_SPAN: Final = 1_000
"""Between the lowest and the highest score, for what they become to be kept."""


class ScoreState:
    """For one pod in one cycle: the worth of each topology domain."""

    __slots__ = ("_by_key",)

    def __init__(self, nodes: fw.NodeColumns, columns: Iterable[tuple[str, fw.PodCounts, int]]) -> None:
        """`columns`: topology keys, the matches that count for them, and what a match is worth."""
        self._by_key: dict[str, tuple[Domains, fw.Int64Column]] = {}
        domains_of: dict[str, Domains] = {}
        for key, column, weight in columns:
            domains = domains_of.get(key)
            if domains is None:
                domains = domains_of[key] = Domains(nodes, key)
            sums = domains.sums(column)
            if sums.any():
                worth: fw.Int64Column = np.multiply(sums, weight, dtype=np.int64)
                if key in self._by_key:
                    worth += self._by_key[key][1]
                self._by_key[key] = domains, worth

    @property
    def is_irrelevant(self) -> bool:
        """Whether there is no match on any node with the topology key that it is for."""
        return not self._by_key

    def scores(self, rows: fw.Rows) -> fw.Int64Column:
        """Return for each of `rows` the sum over its domains, to be read only."""
        total: fw.Int64Column | None = None
        for domains, worth in self._by_key.values():
            here = domains.at(worth, rows)
            total = here if total is None else total + here
        assert total is not None, "PreScore skips what is irrelevant"
        return total


def worth_of_pods(
    pod: fw.Pod, wanted: WantedPods, namespace_labels: Mapping[str, str], pods: fw.PodIndex, hard_weight: int
) -> Iterator[tuple[str, fw.PodCounts, int]]:
    """Yield topology key, matches of each row, and weight of a match for every term that concerns `pod`.

    Its own terms meet the pods on nodes; theirs meet it. `hard_weight` is what their required affinity is worth.
    """
    for key, match, weight in wanted.preferred:
        yield key, pods.matching(match), weight

    namespace, labels = pod.namespace, pod.labels

    def concerning(kind: fw.TermKind) -> Iterator[fw.TermColumn]:
        for column in pods.term_candidates(kind, namespace, labels):
            if column.term.matches(namespace, labels, namespace_labels):
                yield column

    if hard_weight > 0:
        for column in concerning(fw.TermKind.REQUIRED_AFFINITY):
            yield column.term.topology_key, column, hard_weight
    for kind, sign in _SIGNS:
        for column in concerning(kind):
            yield column.term.topology_key, column, sign * column.weight


def spread_out(scores: fw.Int64Column) -> fw.Int64Column:
    """Scale scores so that the lowest becomes 0 and the highest MAX_NODE_SCORE; all 0 if they are equal."""
    lowest, highest = (scores.min().item(), scores.max().item()) if len(scores) else (0, 0)
    if highest == lowest:
        return np.zeros_like(scores)
    above = scores - lowest
    if highest - lowest <= MAX_KEPT_SPAN:
        return _scaled(highest - lowest).take(above)
    return _scale(above, highest - lowest)


def _scale(above: fw.Int64Column, span: int) -> fw.Int64Column:
    # With floats, in this order, and cut off: other ways to write it round otherwise.
    return (float(fw.MAX_NODE_SCORE) * (above / float(span))).astype(np.int64)


@lru_cache(maxsize=128)
def _scaled(span: int) -> fw.Int64Column:
    """Return what all scores from 0 to `span` become: to look them up is half the work."""
    return _scale(np.arange(span + 1), span)
