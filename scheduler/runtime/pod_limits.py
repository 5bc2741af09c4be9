"""Refuses pods that would cost too much to schedule: the creator of a pod chooses how long its lists are.

A decision is synchronous, so one pod's selectors hold up all other pods. kube-scheduler has no such limits: see
docs/differences.md. Lists without a limit here (tolerations, ports, containers, volumes, values of a requirement) cost
about as much as reading the pod does.
"""

from collections.abc import Iterable
from typing import Final

from scheduler.api.objects import LabelSelector, NodeAffinity, NodeSelectorTerm, PodAffinity, PodSpec

MAX_POD_SELECTORS: Final = 100
"""Affinity terms towards pods and topology spread constraints together: each may mean a look at every set of labels."""

MAX_REQUIREMENTS: Final = 1_000
"""The number of terms in all selectors of a pod, over pods, namespaces and nodes. Each may mean a look at every
node."""


def excess_of(spec: PodSpec) -> str:
    """Return what a pod has too much of, to be shown to its owner; empty for almost every pod."""
    affinity, constraints = spec.affinity, spec.topology_spread_constraints or ()
    selectors, requirements = len(constraints), len(spec.node_selector or ())
    requirements += sum(_requirements_of(constraint.label_selector) for constraint in constraints)
    if affinity is not None:
        for towards in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if towards is not None:
                terms = _selectors_of(towards)
                selectors += len(terms)
                requirements += sum(map(_requirements_of, (each for term in terms for each in term)))
        if affinity.node_affinity is not None:
            requirements += sum(map(_requirements_of_nodes, _node_terms_of(affinity.node_affinity)))
    if selectors > MAX_POD_SELECTORS:
        limit = f"more than {MAX_POD_SELECTORS} are not looked at"
        return f"the pod has {selectors} pod affinity terms and topology spread constraints, {limit}"
    if requirements > MAX_REQUIREMENTS:
        limit = f"more than {MAX_REQUIREMENTS} are not looked at"
        return f"the pod has {requirements} requirements in its selectors, {limit}"
    return ""


def _selectors_of(affinity: PodAffinity) -> list[tuple[LabelSelector | None, LabelSelector | None]]:
    """The selectors of each term: over pods, and over namespaces."""
    terms = [*(affinity.required or ()), *(each.pod_affinity_term for each in affinity.preferred or ())]
    return [(term.label_selector, term.namespace_selector) for term in terms]


def _requirements_of(selector: LabelSelector | None) -> int:
    return 0 if selector is None else len(selector.match_labels or ()) + len(selector.match_expressions or ())


def _node_terms_of(affinity: NodeAffinity) -> Iterable[NodeSelectorTerm]:
    if affinity.required is not None:
        yield from affinity.required.node_selector_terms or ()
    for preferred in affinity.preferred or ():
        yield preferred.preference


def _requirements_of_nodes(term: NodeSelectorTerm) -> int:
    return 1 + len(term.match_expressions or ()) + len(term.match_fields or ())
