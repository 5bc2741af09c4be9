"""The events that may help a pod that InterPodAffinity refused.

Rule: interpodaffinity/plugin.go (EventsToRegister, isSchedulableAfterPodChange, isSchedulableAfterNodeChange) at
v1.37.2. Beyond it:

- Namespaces count: pods in one that a term selects, and one that starts or stops being selected.
- Of several anti-affinity terms, each counts by itself, as it does in Filter.
- The required anti-affinity of pods on nodes ends in a domain when their node leaves it, or is deleted.
- A pod that matches its own affinity may be the first anywhere once no other pod matches any more.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from plugins.inter_pod_affinity.filter import KEEP_AWAY
from plugins.inter_pod_affinity.terms import TermResolver, WantedPods, matches_all, namespace_labels
from plugins.shared.topology_domains import DomainCounts
from scheduler import framework as fw
from scheduler.api.pods.pod_affinity import AffinityTerm, AffinityTerms

QUEUE, SKIP = fw.QueueingHint.QUEUE, fw.QueueingHint.SKIP


class AffinityHints:
    """The hints of one plugin. Each raises AttemptFailed for a pod with required terms that cannot be parsed."""

    __slots__ = ("_handle", "_resolver")

    def __init__(self, handle: fw.Handle, resolver: TermResolver) -> None:
        self._handle = handle
        self._resolver = resolver

    def events(self) -> Sequence[fw.ClusterEventWithHint]:
        action = fw.Action
        return (
            fw.on(fw.ASSIGNED_POD, action.ADD | action.UPDATE_POD_LABEL | action.DELETE, self.after_pod, hint_key),
            fw.on(fw.TARGET_POD, action.UPDATE_POD_LABEL, self.after_pod, hint_key),
            fw.on(fw.NODE, action.ADD | action.UPDATE_NODE_LABEL, self.after_node, hint_key),
            fw.on(fw.NODE, action.DELETE, self.after_node, hint_key),
            fw.on(fw.NAMESPACE, action.ALL, self.after_namespace, hint_key),
        )

    def after_pod(self, pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None) -> fw.QueueingHint:
        """A pod helps that starts to match all affinity terms, or stops matching an anti-affinity term.

        So does the last one that matched the affinity of a pod that matches it itself, one whose own anti-affinity kept
        `pod` away, once it is gone, and `pod` itself when its labels change.
        """
        if old is not None and new is not None and new.uid == pod.uid:
            return QUEUE
        if any(each is not None and not (each.node_name or each.nominated_node_name) for each in (old, new)):
            return SKIP
        resolved = self._resolver.wanted(_parsed(pod))
        matched, matches = _all(resolved.affinity, old), _all(resolved.affinity, new)
        if (matches and not matched) or (matched and not matches and self._may_be_first(pod, resolved)):
            return QUEUE
        if any(_one(term, old) and not _one(term, new) for term in resolved.anti_affinity):
            return QUEUE
        return QUEUE if old is not None and new is None and self._kept_away(pod, old) else SKIP

    def after_node(self, pod: fw.Pod, old: fw.Node | None, new: fw.Node | None) -> fw.QueueingHint:
        """A node helps that comes into a domain of an affinity term, or leaves one of an anti-affinity term.

        That may be a term of a pod on a node, too, which keeps this pod away. A new node always helps a pod that is
        kept away from others: the pods in its domain are not looked at.
        """
        terms = _parsed(pod)
        if new is not None and any(_moved(term.topology_key, old, new) for term in terms.required_affinity):
            return QUEUE
        if any(old is None or _left(term.topology_key, old, new) for term in terms.required_anti_affinity):
            return QUEUE
        # Pods that matched may have been on a node that is in no domain any more.
        left = old is not None and any(_left(term.topology_key, old, new) for term in terms.required_affinity)
        if left and self._may_be_first(pod, self._resolver.wanted(terms)):
            return QUEUE
        avoided = self._keys_avoided(pod)
        if old is None:
            return QUEUE if avoided else SKIP
        if new is not None:
            others = list(self._handle.nominator.nominated_pods(new.name))
            if not old.labels.keys() <= new.labels.keys():
                others += self._pods_on(new)  # it may have been the last with a label: no other node knows it
            avoided += self._keys_avoided_by(others, pod)
        return QUEUE if any(_left(key, old, new) for key in avoided) else SKIP

    def after_namespace(self, pod: fw.Pod, old: Any, new: Any) -> fw.QueueingHint:
        """A namespace helps that affinity terms start to select, or anti-affinity terms stop selecting.

        Other pods' anti-affinity may select the pod's own namespace by any of its labels.
        """
        before, after = ((each.metadata.labels or {}) if each is not None else {} for each in (old, new))
        if before == after and old is not None and new is not None:
            return SKIP
        if (new or old).metadata.name == pod.namespace:
            return QUEUE
        terms = _parsed(pod)
        gained, lost = terms.required_affinity, terms.required_anti_affinity
        if any(_selected(each, new, after) and not _selected(each, old, before) for each in gained):
            return QUEUE
        if any(_selected(each, old, before) and not _selected(each, new, after) for each in lost):
            return QUEUE
        return SKIP

    def _kept_away(self, pod: fw.Pod, gone: fw.Pod) -> bool:
        terms = _parsed(gone).required_anti_affinity
        labels = namespace_labels(self._handle, pod.namespace) if terms else {}
        return any(term.matches(pod.namespace, pod.labels, labels) for term in terms)

    def _keys_avoided(self, pod: fw.Pod) -> list[str]:
        """The topology keys by which pods on nodes keep the pod away, of those that any node has."""
        pods = self._handle.nodes.pods
        if not pods.has_terms(KEEP_AWAY):
            return []
        labels = namespace_labels(self._handle, pod.namespace)
        return [key for key, _ in pods.terms_towards(KEEP_AWAY, pod.namespace, pod.labels, labels)]

    def _pods_on(self, node: fw.Node) -> Iterable[fw.Pod]:
        nodes = self._handle.nodes
        row = nodes.row_of(node.name)
        return () if row is None else nodes.info(row).pods

    def _keys_avoided_by(self, others: Sequence[fw.Pod], pod: fw.Pod) -> list[str]:
        """The topology keys by which these pods keep the pod away."""
        labels = namespace_labels(self._handle, pod.namespace) if others else {}
        return [
            term.topology_key
            for other in others
            for term in other.affinity_terms.required_anti_affinity
            if term.matches(pod.namespace, pod.labels, labels)
        ]

    def _may_be_first(self, pod: fw.Pod, wanted: WantedPods) -> bool:
        """Return whether the pod's affinity matches itself and no pod on a node: Filter lets such a pod start."""
        if wanted.affinity_match is None or not matches_all(wanted.affinity, pod):
            return False
        nodes = self._handle.nodes
        matching = nodes.pods.matching(wanted.affinity_match)
        return not DomainCounts(nodes, [(term.topology_key, matching) for term in wanted.affinity]).total


def hint_key(pod: fw.Pod) -> Hashable:
    """Return everything about a pod that the hints look at."""
    return pod.namespace, frozenset(pod.labels.items()), pod.affinity_terms


def _all(terms: Sequence[AffinityTerm], other: fw.Pod | None) -> bool:
    return other is not None and matches_all(terms, other)


def _one(term: AffinityTerm, other: fw.Pod | None) -> bool:
    return other is not None and term.matches(other.namespace, other.labels, None)


def _moved(key: str, old: fw.Node | None, new: fw.Node) -> bool:
    """Return whether a node has come into the domain where it is."""
    after = new.labels.get(key)
    return after is not None and (old is None or old.labels.get(key) != after)


def _left(key: str, old: fw.Node, new: fw.Node | None) -> bool:
    """Return whether a node has left the domain where it was."""
    before = old.labels.get(key)
    return before is not None and (new is None or new.labels.get(key) != before)


def _selected(term: AffinityTerm, namespace: Any, labels: dict[str, str]) -> bool:
    return namespace is not None and term.namespace_selector.matches(labels)


def _parsed(pod: fw.Pod) -> AffinityTerms:
    terms = pod.affinity_terms
    if terms.error:
        raise fw.AttemptFailed(terms.error)
    return terms
