"""InterPodAffinity's Score: the score of each topology domain, by the terms of a pod and of the pods there.

Rule: interpodaffinity/scoring.go at v1.36.3.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from plugins.inter_pod_affinity.terms import WantedPods
from plugins.shared.topology_domains import Domains
from scheduler import framework as fw


@lru_cache
def scored_kinds(hard_weight: int) -> fw.TermWeights:
    """The terms of existing pods that count in the score of a pod that they select.

    `hard_weight` is the weight of their required affinity.
    """
    return (
        *(((fw.TermKind.REQUIRED_AFFINITY, hard_weight),) if hard_weight > 0 else ()),
        (fw.TermKind.PREFERRED_AFFINITY, 1),
        (fw.TermKind.PREFERRED_ANTI_AFFINITY, -1),
    )


MAX_STORED_SPAN: Final = 1_000
"""The normalized scores are cached up to this difference of the highest and lowest score."""


class ScoreState:
    """For one pod in one cycle: the score of each topology domain."""

    __slots__ = ("_by_key",)

    def __init__(self, nodes: fw.NodeColumns, columns: Iterable[tuple[str, fw.PodCounts, int]]) -> None:
        """`columns`: topology keys, the matches that count for them, and the weight of a match."""
        self._by_key: dict[str, tuple[Domains, fw.Int64Column]] = {}
        domains_of: dict[str, Domains] = {}
        for key, column, weight in columns:
            domains = domains_of.get(key)
            if domains is None:
                domains = domains_of[key] = Domains(nodes, key)
            sums = domains.sums(column)
            if sums.any():
                topology_scores: fw.Int64Column = np.multiply(sums, weight, dtype=np.int64)
                if key in self._by_key:
                    topology_scores += self._by_key[key][1]
                self._by_key[key] = domains, topology_scores

    @property
    def is_irrelevant(self) -> bool:
        """Whether there is no match on any node with the topology key that it is for."""
        return not self._by_key

    def scores(self, rows: fw.Rows) -> fw.Int64Column:
        """Return for each of `rows` the sum over its domains, to be read only."""
        total: fw.Int64Column | None = None
        for domains, topology_scores in self._by_key.values():
            here = domains.at(topology_scores, rows)
            total = here if total is None else total + here
        assert total is not None, "PreScore skips what is irrelevant"
        return total


def scored_terms(
    pod: fw.Pod,
    wanted: WantedPods,
    namespace_labels: Mapping[str, str],
    pods: fw.PodIndex,
    kinds: fw.TermWeights,
) -> Iterator[tuple[str, fw.PodCounts, int]]:
    """Yield topology key, matches of each row, and weight of a match for every term that concerns `pod`.

    Its own terms match existing pods, and theirs, of these `kinds`, match it.
    """
    for key, match, weight in wanted.preferred:
        yield key, pods.matching(match), weight

    for key, terms in pods.terms_towards(kinds, pod.namespace, pod.labels, namespace_labels):
        yield key, terms, 1


def normalized_affinity(scores: fw.Int64Column) -> fw.Int64Column:
    """Scale scores so that the lowest becomes 0 and the highest MAX_NODE_SCORE; all 0 if they are equal."""
    lowest, highest = (scores.min().item(), scores.max().item()) if len(scores) else (0, 0)
    if highest == lowest:
        return np.zeros_like(scores)
    above = scores - lowest
    if highest - lowest <= MAX_STORED_SPAN:
        return _scaled(highest - lowest).take(above)
    return _scale(above, highest - lowest)


def _scale(above: fw.Int64Column, span: int) -> fw.Int64Column:
    # With floats, in this order, and truncated: written otherwise, it would round differently.
    return (float(fw.MAX_NODE_SCORE) * (above / float(span))).astype(np.int64)


@lru_cache(maxsize=128)
def _scaled(span: int) -> fw.Int64Column:
    """Return all scores from 0 to `span`, normalized: looking them up takes half the time."""
    return _scale(np.arange(span + 1), span)
