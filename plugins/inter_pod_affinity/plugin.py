"""Keep pods near pods or away from them, by their affinity and anti-affinity terms."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from plugins.inter_pod_affinity.filter import KEEP_AWAY, REFUSALS, FilterState
from plugins.inter_pod_affinity.hints import AffinityHints
from plugins.inter_pod_affinity.obstacles import affinity_obstacles
from plugins.inter_pod_affinity.score import ScoreState, normalized_affinity, scored_kinds, scored_terms
from plugins.inter_pod_affinity.terms import TermResolver, namespace_labels
from scheduler import framework as fw
from scheduler.framework.field_errors import invalid

MAX_HARD_POD_AFFINITY_WEIGHT: Final = 100

_PRE_FILTERED = "PreFilterInterPodAffinity"
_PRE_SCORED = "PreScoreInterPodAffinity"


@dataclass
class InterPodAffinity(
    fw.PreFilterPlugin,
    fw.PreFilterExtensions,
    fw.FilterNodesPlugin,
    fw.PreScorePlugin,
    fw.ScoreNodesPlugin,
    fw.NormalizeScorePlugin,
    fw.ExplainPlugin,
):
    """Filter: required affinity and anti-affinity of the pod, and required anti-affinity of the pods on nodes.

    Score: the weights of preferred terms that match, in both directions. A term covers a topology domain:
    all nodes with the same value of a label. Answers are not stored, for a pod changes those of its whole domain; but
    counting grows with the distinct terms and the nodes, not with the pods. `matchLabelKeys` and `mismatchLabelKeys`
    are in the label selectors already: the API server puts them there. Rule: interpodaffinity/plugin.go at v1.36.3.
    """

    name: ClassVar[str] = "InterPodAffinity"
    parts: ClassVar[Mapping[str, Sequence[str]]] = {fw.NAMESPACE: ()}

    hard_pod_affinity_weight: int = 1
    """The score that a required affinity term of a pod on a node adds for the pods that it names. 0 to 100."""

    ignore_preferred_terms_of_existing_pods: bool = False
    """Whether preferred terms of the pods on nodes count only for pods that have preferred terms themselves."""

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self._resolver = TermResolver(handle)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each problem of the arguments, with its place.

        Rule: validation_pluginargs.go (ValidateInterPodAffinityArgs) at v1.36.3.
        """
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= MAX_HARD_POD_AFFINITY_WEIGHT:
            detail = f"not in valid range [0, {MAX_HARD_POD_AFFINITY_WEIGHT}]"
            yield "hardPodAffinityWeight", invalid(weight, detail)

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Pods, nodes and namespaces, each with a hint."""
        return AffinityHints(self.handle, self._resolver).events()

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Count the matching pods; skip pods that no required term concerns.

        A term that cannot be parsed rejects the pod as a whole.
        """
        if pod.spec.affinity is None and not nodes.pods.has_terms(KEEP_AWAY):
            return fw.SKIP  # the same as below, but faster
        terms = pod.affinity_terms
        if terms.error:
            return fw.unresolvable(f"parsing pod: {terms.error}")
        labels = namespace_labels(self.handle, pod.namespace)
        counts = FilterState(pod, self._resolver.wanted(terms), labels, nodes)
        if counts.is_irrelevant:
            return fw.SKIP
        state.write(_PRE_FILTERED, counts)
        return None

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        """Count `other` on `node`. Raises LookupError if `pre_filter` was not run."""
        _counts(state).count(other, node.row, 1)
        return None

    def remove_pod(self, state: fw.CycleState, pod: fw.Pod, other: fw.Pod, node: fw.NodeInfo) -> fw.Status | None:
        """Stop counting `other` on `node`. Raises LookupError if `pre_filter` was not run."""
        _counts(state).count(other, node.row, -1)
        return None

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` why it is refused: affinity, else anti-affinity, else that of the pods there.

        Raises LookupError if `pre_filter` was not run.
        """
        return _counts(state).refusals(rows)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return REFUSALS[code]

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """Each term that refuses the node, and a pod that it is about."""
        return list(affinity_obstacles(pod, _counts(state), self.handle.nodes, node))

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows) -> fw.Status | None:
        """Compute the score of each topology domain, over all nodes; skip if no term matches a pod."""
        if self.ignore_preferred_terms_of_existing_pods and not _has_preferred_terms(pod):
            return fw.SKIP
        kinds = scored_kinds(self.hard_pod_affinity_weight)
        if pod.spec.affinity is None and not nodes.pods.has_terms(kinds):
            return fw.SKIP  # the same as below, but faster
        terms = pod.affinity_terms
        if terms.error:
            return fw.Status(fw.Code.ERROR, (f"failed to parse pod: {terms.error}",))
        labels = namespace_labels(self.handle, pod.namespace)
        wanted = self._resolver.wanted(terms)
        topology_scores = ScoreState(nodes, scored_terms(pod, wanted, labels, nodes.pods, kinds))
        if topology_scores.is_irrelevant:
            return fw.SKIP
        state.write(_PRE_SCORED, topology_scores)
        return None

    def concerns_score(self, pod: fw.Pod) -> bool:
        return not self.ignore_preferred_terms_of_existing_pods or _has_preferred_terms(pod)

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return for each of `rows` the sum of its domains' scores. Raises LookupError if `pre_score` was not run."""
        topology_scores = state.read(_PRE_SCORED, ScoreState, 'failed to read "{key}" from cycleState: not found')
        return topology_scores.scores(rows)

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        """Scale the scores so that the worst node gets 0 and the best 100."""
        return normalized_affinity(scores)


def _counts(state: fw.CycleState) -> FilterState:
    return state.read(_PRE_FILTERED, FilterState, 'error reading "{key}" from cycleState: not found')


def _has_preferred_terms(pod: fw.Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    return any(each is not None and each.preferred for each in (affinity.pod_affinity, affinity.pod_anti_affinity))
