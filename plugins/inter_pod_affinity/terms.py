"""The affinity terms of a pending pod, with the namespaces that they select now.

Rule: interpodaffinity/plugin.go (mergeAffinityTermNamespacesIfNotEmpty) at v1.37.2, where the selector of a term that
was looked up is gone, and filtering.go at v1.36.3.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from scheduler import framework as fw
from scheduler.api.label_selectors import EVERYTHING, NOTHING, Selector
from scheduler.api.pods.pod_affinity import AffinityTerm, AffinityTerms, WeightedTerm
from scheduler.api.recent_caches import RecentCache

_NO_LABELS: Mapping[str, str] = {}

CACHE_BYTES: Final = 16 << 20
"""Of the terms, and of the selectors of namespaces, that are cached until a namespace changes."""


class PreferredMatch(NamedTuple):
    """A preferred term: pods to be near to, or away from."""

    topology_key: str
    match: fw.PodMatch
    weight: int
    """Negative for anti-affinity."""


class WantedPods(NamedTuple):
    """The terms of a pod, with the namespaces that their selectors name at this moment."""

    affinity: tuple[AffinityTerm, ...]
    affinity_match: fw.PodMatch | None
    """Pods that match all of `affinity` at once; None if there is no such term."""
    anti_affinity: tuple[AffinityTerm, ...]
    preferred: tuple[PreferredMatch, ...]


class TermResolver:
    """Resolves the namespaces of terms, once for all pods that share the terms."""

    __slots__ = ("_handle", "_selected", "_version", "_wanted")

    def __init__(self, handle: fw.Handle) -> None:
        self._handle = handle
        self._version = -1
        self._wanted: RecentCache[AffinityTerms, WantedPods] = RecentCache("wanted pods", CACHE_BYTES)
        self._selected: RecentCache[Selector, frozenset[str]] = RecentCache("selected namespaces", CACHE_BYTES)

    def wanted(self, terms: AffinityTerms) -> WantedPods:
        """Return the terms with their namespaces."""
        self._forget_old_namespaces()
        found = self._wanted.get(terms)
        return self._wanted.put(terms, self._find(terms)) if found is None else found

    def resolved(self, terms: Sequence[AffinityTerm]) -> tuple[AffinityTerm, ...]:
        """Return the terms with the namespaces that they select added by name; only a selector of all is kept."""
        self._forget_old_namespaces()
        return tuple(
            term
            if term.namespace_selector.is_nothing or term.namespace_selector == EVERYTHING
            else term._replace(
                namespaces=term.namespaces | self._names(term.namespace_selector), namespace_selector=NOTHING
            )
            for term in terms
        )

    def _find(self, terms: AffinityTerms) -> WantedPods:
        affinity = self.resolved(terms.required_affinity)
        return WantedPods(
            affinity,
            _match_of_all(affinity) if affinity else None,
            self.resolved(terms.required_anti_affinity),
            (*self._preferred(terms.preferred_affinity, 1), *self._preferred(terms.preferred_anti_affinity, -1)),
        )

    def _preferred(self, weighted: Sequence[WeightedTerm], sign: int) -> tuple[PreferredMatch, ...]:
        resolved = self.resolved([each.term for each in weighted])
        return tuple(
            PreferredMatch(term.topology_key, match_of(term), sign * each.weight)
            for term, each in zip(resolved, weighted, strict=True)
        )

    def _names(self, selector: Selector) -> frozenset[str]:
        names = self._selected.get(selector)
        if names is None:
            known = self._handle.objects.list(fw.NAMESPACE)
            selected = frozenset(each.metadata.name for each in known if selector.matches(each.metadata.labels))
            names = self._selected.put(selector, selected)
        return names

    def _forget_old_namespaces(self) -> None:
        version = self._handle.objects.version(fw.NAMESPACE)
        if version != self._version:
            self._version = version
            self._wanted.clear()
            self._selected.clear()


def match_of(term: AffinityTerm) -> fw.PodMatch:
    """Return the pods that a resolved term selects."""
    return fw.PodMatch(None if term.namespace_selector.is_everything else term.namespaces, term.selector)


def matches_all(terms: Sequence[AffinityTerm], pod: fw.Pod) -> bool:
    """Return whether a pod matches every one of these resolved terms, and there is one."""
    return bool(terms) and all(term.matches(pod.namespace, pod.labels, None) for term in terms)


def _match_of_all(terms: Sequence[AffinityTerm]) -> fw.PodMatch:
    first, *others = map(match_of, terms)
    namespaces, selector = first.namespaces, first.selector
    for each in others:
        if each.namespaces is not None:
            namespaces = each.namespaces if namespaces is None else namespaces & each.namespaces
        selector = selector.and_also(each.selector)
    return fw.PodMatch(namespaces, selector)


def namespace_labels(handle: fw.Handle, name: str) -> Mapping[str, str]:
    """Return the labels of a namespace; none if it is not known."""
    namespace = handle.objects.get(fw.NAMESPACE, name)
    return _NO_LABELS if namespace is None else namespace.metadata.labels or _NO_LABELS
