"""Keep pods on nodes that match their nodeSelector and required node affinity; score preferred terms."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from plugins.shared.column_math import normalized
from plugins.shared.node_matching import matching_any, selected_by_pod, weights
from plugins.shared.node_selector_obstacles import selector_obstacles
from plugins.shared.queueing import OncePerEvent
from scheduler import framework as fw
from scheduler.api import objects
from scheduler.api.read_only import unguarded
from scheduler.api.selectors import (
    IN,
    NODE_NAME_FIELD,
    PreferredTerm,
    SelectorTerm,
    as_one_message,
    matches_any,
    pod_selector_keys,
    pod_selects,
    preferred_terms,
    problems_of,
    required_terms,
)

NOT_SELECTED: Final = fw.unresolvable("node(s) didn't match Pod's node affinity/selector")
NOT_ENFORCED: Final = fw.unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT: Final = fw.unresolvable("pod affinity terms conflict")

_NOT_ENFORCED_CODE, _NOT_SELECTED_CODE = 1, 2


_selector_of: Final = unguarded(objects.PodSpec, "node_selector")
"""As it is stored: it is read for each pod."""


@dataclass(frozen=True, slots=True)
class NodeAffinity(
    fw.PreFilterPlugin,
    fw.FilterNodesPlugin,
    fw.PreScorePlugin,
    fw.ScoreNodesPlugin,
    fw.NormalizeScorePlugin,
    fw.SignPlugin,
    fw.ExplainPlugin,
):
    """Filter: the node matches nodeSelector, required node affinity, and `addedAffinity`.

    Score: the weights of the preferred terms that match. A required term that cannot be parsed matches nothing; a
    preferred one is an error. Rule: nodeaffinity/node_affinity.go at v1.36.3.
    """

    name: ClassVar[str] = "NodeAffinity"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.LABELS | fw.Aspect.NAME
    signs_spec: ClassVar[bool] = True
    normalizes_by_range: ClassVar[bool] = True

    added_affinity: objects.NodeAffinity | None = None
    """Applied to every pod of the profile, in addition to the pod's own."""

    def problems(self) -> list[tuple[str, str]]:
        """Return each problem of the arguments, with its place.

        Rule: validation_pluginargs.go (ValidateNodeAffinityArgs) at v1.36.3.
        """
        required = problems_of(self._added_terms() or ())
        preferred = problems_of(preferred.term for preferred in self._added_preferred())
        return [
            *(
                (f"addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.{path}", message)
                for path, message in required
            ),
            *(
                (f"addedAffinity.preferredDuringSchedulingIgnoredDuringExecution{path}", message)
                for path, message in preferred
            ),
        ]

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: node_affinity.go (EventsToRegister)."""
        hint = _NodeAffinityHint(self._added_terms())
        return (fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_LABEL, hint.after_node_event, _required_by),)

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The pod's nodeSelector and node affinity."""
        selector, affinity = _selector_of(pod.spec), _affinity_of(pod)
        if selector is None and affinity is None:
            return ()
        return None if selector is None else frozenset(selector.items()), affinity

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns
    ) -> fw.PreFilterResult | fw.Status | None:
        """Skip pods without node affinity; narrow the nodes down if every term names nodes in `matchFields`."""
        affinity = _affinity_of(pod)
        required = None if affinity is None else affinity.required
        if required is None:
            no_affinity = _selector_of(pod.spec) is None and self._added_terms() is None
            return fw.SKIP if no_affinity else None
        named: set[str] = set()
        for term in required.node_selector_terms or ():
            names = _names_in(term)
            if names is None:
                return None
            named |= names
        if not required.node_selector_terms:
            return None
        return fw.PreFilterResult(frozenset(named)) if named else CONFLICT

    def concerns(self, pod: fw.Pod) -> bool:
        spec = pod.spec
        return spec.node_selector is not None or spec.affinity is not None or self._added_terms() is not None

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` which terms it fails: those of `addedAffinity`, else the pod's."""
        selected = selected_by_pod(pod, nodes, rows)
        codes = np.where(selected, np.int32(0), np.int32(_NOT_SELECTED_CODE))
        added = self._added_terms()
        if added is not None:
            codes[~matching_any(added, nodes, rows)] = _NOT_ENFORCED_CODE
        return codes if codes.any() else None

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return NOT_ENFORCED if code == _NOT_ENFORCED_CODE else NOT_SELECTED

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """Each label that is not as wanted; of several terms, those of the one that comes nearest."""
        return list(selector_obstacles(pod, node))

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        """Skip pods without preferred terms; terms that cannot be parsed are an error."""
        affinity = _affinity_of(pod)
        if affinity is None or affinity.preferred is None:
            return None if self.added_affinity is not None and self.added_affinity.preferred else fw.SKIP
        problem = _problem_of(preferred_terms(affinity.preferred))
        return fw.Status(fw.Code.ERROR, (problem,)) if problem else None

    def concerns_score(self, pod: fw.Pod) -> bool:
        return pod.spec.affinity is not None or bool(self.added_affinity is not None and self.added_affinity.preferred)

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return for each of `rows` the sum of the weights of the preferred terms that match.

        Raises AttemptFailed if one cannot be parsed, which `pre_score` reports first.
        """
        affinity = _affinity_of(pod)
        own = preferred_terms(affinity.preferred) if affinity is not None and affinity.preferred else ()
        if problem := _problem_of(own):
            raise fw.AttemptFailed(problem)
        terms = (*self._added_preferred(), *own)
        return weights(terms, nodes, rows) if terms else None

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        """Scale the sums so that the highest becomes 100."""
        return normalized(scores, reverse=False)

    def _added_terms(self) -> tuple[SelectorTerm, ...] | None:
        added = self.added_affinity
        return None if added is None or added.required is None else required_terms(added.required)

    def _added_preferred(self) -> tuple[PreferredTerm, ...]:
        added = self.added_affinity
        return preferred_terms(added.preferred) if added is not None and added.preferred else ()


class _Relabelled(NamedTuple):
    """The change that an event made to a node's labels."""

    keys: frozenset[str]
    """Of labels that were added, removed or changed."""
    enforced_before: bool
    """Whether the node matched `addedAffinity`; False if it was not there."""
    enforced_now: bool


class _NodeAffinityHint:
    __slots__ = ("_added", "_relabelled")

    def __init__(self, added: tuple[SelectorTerm, ...] | None) -> None:
        """`added`: the required terms of `addedAffinity`."""
        self._added = added
        self._relabelled = OncePerEvent(self._compare)

    def after_node_event(self, pod: fw.Pod, old: fw.Node | None, new: fw.Node) -> fw.QueueingHint:
        """A node helps that matches the pod's terms and `addedAffinity`, unless it did so before.

        Rule: isSchedulableAfterNodeChange, which skips a node that matched the pod's terms before and only now matches
        `addedAffinity`. Raises AttemptFailed if a required term that matters cannot be parsed.
        """
        relabelled = self._relabelled(old, new)
        if not relabelled.enforced_now:
            return fw.QueueingHint.SKIP
        if relabelled.enforced_before:
            keys = pod_selector_keys(pod)
            if keys is not None and keys.isdisjoint(relabelled.keys):
                return fw.QueueingHint.SKIP  # It matches as it did before.
        if not pod_selects(pod, new.labels, new.name):
            return fw.QueueingHint.SKIP
        if old is not None and relabelled.enforced_before and pod_selects(pod, old.labels, old.name):
            return fw.QueueingHint.SKIP
        return fw.QueueingHint.QUEUE

    def _compare(self, old: fw.Node | None, new: fw.Node) -> _Relabelled:
        keys = frozenset() if old is None else frozenset(key for key, _ in old.labels.items() ^ new.labels.items())
        return _Relabelled(keys, old is not None and self._enforced(old), self._enforced(new))

    def _enforced(self, node: fw.Node) -> bool:
        return self._added is None or matches_any(self._added, node.labels, node.name)


def _required_by(pod: fw.Pod) -> Hashable:
    selector, affinity = pod.spec.node_selector, _affinity_of(pod)
    return frozenset(selector.items()) if selector else None, None if affinity is None else affinity.required


def _affinity_of(pod: fw.Pod) -> objects.NodeAffinity | None:
    affinity = pod.spec.affinity
    return None if affinity is None else affinity.node_affinity


def _problem_of(terms: Sequence[PreferredTerm]) -> str:
    problems = problems_of(preferred.term for preferred in terms)
    return as_one_message(problems) if problems else ""


def _names_in(term: objects.NodeSelectorTerm) -> set[str] | None:
    """Return the nodes that a term's `matchFields` leave; None if it names none. Rule: node_affinity.go (PreFilter)."""
    names: set[str] | None = None
    for requirement in term.match_fields or ():
        if requirement.key == NODE_NAME_FIELD and requirement.operator == IN:
            values = set(requirement.values or ())
            names = values if names is None else names & values
    return names
