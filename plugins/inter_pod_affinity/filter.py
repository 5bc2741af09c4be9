"""InterPodAffinity's Filter: the counts that PreFilter takes, and the reasons to refuse a node.

Rule: interpodaffinity/filtering.go at v1.36.3.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from plugins.inter_pod_affinity.terms import WantedPods, match_of, matches_all
from plugins.shared.topology_domains import DomainCounts
from scheduler import framework as fw
from scheduler.api.pods.pod_affinity import AffinityTerm

AFFINITY: Final = fw.unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY: Final = fw.unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY: Final = fw.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

KEEP_AWAY: Final[fw.TermWeights] = ((fw.TermKind.REQUIRED_ANTI_AFFINITY, 1),)
"""The terms of pods on nodes that refuse a pod which they select."""

_AFFINITY_CODE, _ANTI_AFFINITY_CODE, _EXISTING_CODE = 1, 2, 3

REFUSALS: Final = {
    _AFFINITY_CODE: AFFINITY,
    _ANTI_AFFINITY_CODE: ANTI_AFFINITY,
    _EXISTING_CODE: EXISTING_ANTI_AFFINITY,
}
"""Reason code → refusal."""


class FilterState:
    """For one pod in one cycle, or one what-if in it: how many pods match in each topology domain."""

    __slots__ = ("_affinity", "_anti_affinity", "_existing", "_namespace_labels", "_nodes", "_pod", "_wanted")

    def __init__(
        self, pod: fw.Pod, wanted: WantedPods, namespace_labels: Mapping[str, str], nodes: fw.NodeColumns
    ) -> None:
        """`namespace_labels`: those of the pod's namespace, for the terms of the pods on nodes."""
        self._pod = pod
        self._wanted = wanted
        self._namespace_labels = namespace_labels
        self._nodes = nodes
        pods, namespace, labels = nodes.pods, pod.namespace, pod.labels
        self._existing = DomainCounts(nodes, pods.terms_towards(KEEP_AWAY, namespace, labels, namespace_labels))
        self._anti_affinity = DomainCounts(
            nodes, [(term.topology_key, pods.matching(match_of(term))) for term in wanted.anti_affinity]
        )
        if wanted.affinity_match is None:
            self._affinity = DomainCounts(nodes)
        else:
            # A pod that matches all terms counts once for each of them.
            matching = pods.matching(wanted.affinity_match)
            self._affinity = DomainCounts(nodes, [(term.topology_key, matching) for term in wanted.affinity])

    @property
    def is_irrelevant(self) -> bool:
        """Whether no node can be refused."""
        return not self._wanted.affinity and not self._wanted.anti_affinity and not self._existing.total

    # What an explanation asks.

    @property
    def anti_affinity(self) -> tuple[AffinityTerm, ...]:
        """The pod's required anti-affinity terms, resolved."""
        return self._wanted.anti_affinity

    def refuses_by_affinity(self, row: int) -> bool:
        return bool(self._wanted.affinity) and not self._is_near_enough(row)

    def is_near(self, term: AffinityTerm, row: int) -> bool:
        """Return whether pods that match all affinity terms are in the row's domain of this term."""
        return self._affinity.matched_at_row(term.topology_key, row)

    def only_one_near(self) -> fw.Pod | None:
        """Return the only pod that matches the affinity of a pod which matches it too, and would then be the first."""
        match = self._wanted.affinity_match
        if match is None or not matches_all(self._wanted.affinity, self._pod):
            return None
        counts = self._nodes.pods.matching(match).counts * self._nodes.in_use
        if counts.sum() != 1:
            return None
        there = self._nodes.info(int(counts.argmax())).pods
        return next((other for other in there if matches_all(self._wanted.affinity, other)), None)

    def keys_avoided(self, row: int) -> Iterator[str]:
        """Yield the topology keys by which pods on nodes keep the pod off a row."""
        return self._existing.keys_matched_at_row(row)

    def pods_matching(self, term: AffinityTerm) -> fw.Int32Column:
        """Return how many pods on each row match a term of the pod."""
        return self._nodes.pods.matching(match_of(term)).counts

    def pods_avoiding(self, key: str) -> fw.Int32Column:
        """Return how many terms of pods on each row keep the pod away by a topology key, one of `keys_avoided`."""
        pod = self._pod
        towards = self._nodes.pods.terms_towards(KEEP_AWAY, pod.namespace, pod.labels, self._namespace_labels)
        return next(column.counts for of_key, column in towards if of_key == key)

    def is_avoided_by(self, key: str, other: fw.Pod) -> bool:
        """Return whether another pod has a required anti-affinity to the pod by a topology key."""
        return any(
            term.topology_key == key and term.matches(self._pod.namespace, self._pod.labels, self._namespace_labels)
            for term in other.affinity_terms.required_anti_affinity
        )

    def count(self, other: fw.Pod, row: int, times: int) -> None:
        """Count another pod as if it ran on that row, or with -1 as if it did not."""
        for term in other.affinity_terms.required_anti_affinity:
            if term.matches(self._pod.namespace, self._pod.labels, self._namespace_labels):
                self._existing.move(term.topology_key, row, times)
        if matches_all(self._wanted.affinity, other):
            for term in self._wanted.affinity:
                self._affinity.move(term.topology_key, row, times)
        for term in self._wanted.anti_affinity:
            if term.matches(other.namespace, other.labels, None):
                self._anti_affinity.move(term.topology_key, row, times)

    def clone(self) -> "FilterState":
        """Return a copy that counts independently."""
        copy = object.__new__(FilterState)
        copy._pod, copy._wanted, copy._namespace_labels = self._pod, self._wanted, self._namespace_labels
        copy._nodes = self._nodes
        copy._existing = self._existing.clone()
        copy._anti_affinity = self._anti_affinity.clone()
        copy._affinity = self._affinity.clone()
        return copy

    def refusals(self, rows: fw.Rows) -> fw.Int32Column | None:
        """Return a reason code for each of `rows`, 0 where the pod can run; None if it can on all of them."""
        if len(rows) == 1:
            code = self._refusal_at(rows.item())
            return np.array([code], np.int32) if code else None
        existing, anti = self._existing.any_at(rows), self._anti_affinity.any_at(rows)
        codes: fw.Int32Column
        codes = np.zeros(len(rows), np.int32) if existing is None else existing * np.int32(_EXISTING_CODE)
        if anti is not None:
            codes[anti] = _ANTI_AFFINITY_CODE
        if self._wanted.affinity:
            codes[~self._near_enough(rows)] = _AFFINITY_CODE
        return codes if codes.any() else None

    def _refusal_at(self, row: int) -> int:
        if self._wanted.affinity and not self._is_near_enough(row):
            return _AFFINITY_CODE
        if self._anti_affinity.any_at_row(row):
            return _ANTI_AFFINITY_CODE
        return _EXISTING_CODE if self._existing.any_at_row(row) else 0

    def _near_enough(self, rows: fw.Rows) -> fw.BoolColumn:
        test = self._affinity.labelled_at if self._may_be_first else self._affinity.matched_at
        near = [test(key, rows) for key in self._affinity_keys()]
        return near[0] if len(near) == 1 else np.logical_and.reduce(near)

    def _is_near_enough(self, row: int) -> bool:
        test = self._affinity.labelled_at_row if self._may_be_first else self._affinity.matched_at_row
        return all(test(key, row) for key in self._affinity_keys())

    def _affinity_keys(self) -> dict[str, None]:
        return dict.fromkeys(term.topology_key for term in self._wanted.affinity)

    @property
    def _may_be_first(self) -> bool:
        """Whether the pod's affinity matches only itself yet: the first of a group must be able to start."""
        return not self._affinity.total and matches_all(self._wanted.affinity, self._pod)
