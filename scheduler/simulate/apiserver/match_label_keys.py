"""Terms that take values from the pod's own labels, expanded as the API server does when a pod is created.

Rule: pkg/registry/core/pod/strategy.go at v1.36.3 (mutatePodAffinity, mutateTopologySpreadConstraints).
"""

from collections.abc import Mapping
from typing import TypeVar

from msgspec.structs import replace

from scheduler.api.label_selectors import IN, NOT_IN
from scheduler.api.objects import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
)

A = TypeVar("A", bound=PodAffinity)
S = TypeVar("S", bound=PodSpec)


def with_own_labels(spec: S, labels: Mapping[str, str]) -> S:
    """Return the spec of a pod with `labels`, its label selectors narrowed by the label keys next to them."""
    affinity = spec.affinity
    if affinity is not None:
        spec = replace(spec, affinity=_affinity(affinity, labels))
    if spec.topology_spread_constraints:
        constraints = tuple(
            replace(spread, label_selector=_narrowed(spread.label_selector, IN, spread.match_label_keys, labels))
            for spread in spec.topology_spread_constraints
        )
        spec = replace(spec, topology_spread_constraints=constraints)
    return spec


def _affinity(affinity: Affinity, labels: Mapping[str, str]) -> Affinity:
    return replace(
        affinity,
        pod_affinity=_towards_pods(affinity.pod_affinity, labels),
        pod_anti_affinity=_towards_pods(affinity.pod_anti_affinity, labels),
    )


def _towards_pods(affinity: A | None, labels: Mapping[str, str]) -> A | None:
    if affinity is None:
        return None
    return replace(
        affinity,
        required=affinity.required and tuple(_term(term, labels) for term in affinity.required),
        preferred=affinity.preferred
        and tuple(
            replace(weighted, pod_affinity_term=_term(weighted.pod_affinity_term, labels))
            for weighted in affinity.preferred
        ),
    )


def _term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = _narrowed(term.label_selector, IN, term.match_label_keys, labels)
    selector = _narrowed(selector, NOT_IN, term.mismatch_label_keys, labels)
    return term if selector is term.label_selector else replace(term, label_selector=selector)


def _narrowed(
    selector: LabelSelector | None, operator: str, keys: tuple[str, ...] | None, labels: Mapping[str, str]
) -> LabelSelector | None:
    """An absent selector matches nothing, and stays absent; a key that the pod lacks has no effect."""
    own = tuple(
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for key in keys or ()
        if key in labels
    )
    if selector is None or not own:
        return selector
    return replace(selector, match_expressions=(*(selector.match_expressions or ()), *own))
