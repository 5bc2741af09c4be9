"""A pod's affinity and anti-affinity terms towards other pods, parsed once for all pods that share them.

Rules: k8s.io/kube-scheduler framework/types.go (newAffinityTerm, GetAffinityTerms, AffinityTerm.Matches) at v0.36.3 and
pkg/scheduler/framework/types.go (PodInfo.Update) in Kubernetes 1.36.3.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from scheduler.api.label_selectors import Selector, parse_label_selector
from scheduler.api.objects import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from scheduler.api.recent_caches import RecentCache, weight_of
from scheduler.api.wording.messages import aggregated

_CACHE_BYTES: Final = 16 << 20


class AffinityTerm(NamedTuple):
    """Pods in some namespaces, and the node label whose value they share or avoid."""

    namespaces: frozenset[str]
    namespace_selector: Selector
    """Selects further namespaces by their labels."""
    selector: Selector
    topology_key: str

    def matches(
        self, namespace: str, labels: Mapping[str, str] | None, namespace_labels: Mapping[str, str] | None
    ) -> bool:
        """Return whether the term selects a pod of that namespace with these labels. None stands for no labels."""
        if namespace in self.namespaces or self.namespace_selector.matches(namespace_labels):
            return self.selector.matches(labels)
        return False


class WeightedTerm(NamedTuple):
    """A term that adds `weight` to a node's score, or subtracts it."""

    term: AffinityTerm
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class AffinityTerms:
    """All terms of a pod. A list with a term that cannot be parsed is empty, and `error` says why.

    Compared by identity: pods with equal terms mostly share one object.
    """

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedTerm, ...] = ()
    error: str = ""


NO_TERMS: Final = AffinityTerms()
"""The value of most pods; compare with `is`."""


def affinity_terms_of(affinity: Affinity | None, namespace: str) -> AffinityTerms:
    """Parse the terms of a pod in that namespace."""
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    # A label selector holds a dict and cannot be hashed; its bytes can, and encoding costs less than parsing it again.
    key = _encoder.encode((affinity.pod_affinity, affinity.pod_anti_affinity)), namespace
    return _parsed.get(key) or _parsed.put(key, _parse(*key))


def _parse(encoded: bytes, namespace: str) -> AffinityTerms:
    affinity, anti_affinity = _decoder.decode(encoded)
    errors: list[str] = []

    def required(wanted: PodAffinity | None, name: str) -> tuple[AffinityTerm, ...]:
        terms: Iterable[PodAffinityTerm] = (wanted and wanted.required) or ()
        try:
            return tuple(_parse_term(term, namespace) for term in terms)
        except ValueError as error:
            errors.append(f"{name}: {error}")
            return ()

    def preferred(wanted: PodAffinity | None, name: str) -> tuple[WeightedTerm, ...]:
        terms: Iterable[WeightedPodAffinityTerm] = (wanted and wanted.preferred) or ()
        try:
            return tuple(WeightedTerm(_parse_term(term.pod_affinity_term, namespace), term.weight) for term in terms)
        except ValueError as error:
            errors.append(f"{name}: {error}")
            return ()

    # In the order of the errors.
    lists = (
        required(affinity, "requiredAffinityTerms"),
        required(anti_affinity, "requiredAntiAffinityTerms"),
        preferred(affinity, "preferredAffinityTerms"),
        preferred(anti_affinity, "preferredAntiAffinityTerms"),
    )
    if not errors and not any(lists):
        return NO_TERMS
    return AffinityTerms(*lists, error=aggregated(errors) if errors else "")


def _parse_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    selector = parse_label_selector(term.label_selector)
    namespaces = frozenset(term.namespaces or ())
    if not namespaces and term.namespace_selector is None:
        namespaces = frozenset((namespace,))
    return AffinityTerm(namespaces, parse_label_selector(term.namespace_selector), selector, term.topology_key)


def _weight_of(key: tuple[bytes, str], terms: AffinityTerms) -> int:
    return weight_of(key, terms, *(getattr(terms, name) for name in AffinityTerms.__slots__))


_parsed: RecentCache[tuple[bytes, str], AffinityTerms] = RecentCache("pod affinities", _CACHE_BYTES, _weight_of)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[PodAffinity | None, PodAffinity | None])
