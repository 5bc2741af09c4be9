"""Which events may help a pod that InterPodAffinity refused.

Rule: interpodaffinity/plugin.go (EventsToRegister, isSchedulableAfterPodChange, isSchedulableAfterNodeChange) at
v1.36.3. Beyond it, namespaces are looked at: pods in a namespace that a term selects count, and so does a namespace
that starts or stops being selected.
"""

from collections.abc import Hashable, Sequence
from typing import Any

from plugins.inter_pod_affinity.namespaces import namespace_labels
from plugins.inter_pod_affinity.terms import TermResolver, matches_all
from scheduler import framework as fw
from scheduler.api.pod_affinity import AffinityTerm, AffinityTerms

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
            fw.on(fw.POD, action.ADD | action.UPDATE_POD_LABEL | action.DELETE, self.after_pod, hint_key),
            fw.on(fw.NODE, action.ADD | action.UPDATE_NODE_LABEL, self.after_node, hint_key),
            fw.on(fw.NAMESPACE, action.ADD | action.UPDATE, self.after_namespace, hint_key),
        )

    def after_pod(self, pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None) -> fw.QueueingHint:
        """A pod helps that starts to match all affinity terms, or stops matching all anti-affinity terms.

        So does one whose own anti-affinity terms all kept `pod` away, once it is gone, and `pod` itself when its
        labels change.
        """
        if old is not None and new is not None and new.uid == pod.uid:
            return QUEUE
        if any(each is not None and not (each.node_name or each.nominated_node_name) for each in (old, new)):
            return SKIP
        resolved = self._resolver.wanted(_parsed(pod))
        wanted, unwanted = resolved.affinity, resolved.anti_affinity
        if _all(wanted, new) and not _all(wanted, old):
            return QUEUE
        if _all(unwanted, old) and not _all(unwanted, new):
            return QUEUE
        return QUEUE if old is not None and new is None and self._kept_away(pod, old) else SKIP

    def after_node(self, pod: fw.Pod, old: fw.Node | None, new: fw.Node) -> fw.QueueingHint:
        """A node helps that comes into a domain of an affinity term, or leaves one of an anti-affinity term.

        A new node always helps a pod with anti-affinity: the pods in its domain are not looked at.
        """
        terms = _parsed(pod)
        for term in terms.required_affinity:
            after = new.labels.get(term.topology_key)
            if after is not None and (old is None or old.labels.get(term.topology_key) != after):
                return QUEUE
        for term in terms.required_anti_affinity:
            before = None if old is None else old.labels.get(term.topology_key)
            if old is None or (before is not None and new.labels.get(term.topology_key) != before):
                return QUEUE
        return SKIP

    def after_namespace(self, pod: fw.Pod, old: Any, new: Any) -> fw.QueueingHint:
        """A namespace helps that affinity terms start to select, or anti-affinity terms stop selecting.

        Other pods' anti-affinity may select the pod's own namespace by any of its labels.
        """
        before = (old.metadata.labels or {}) if old is not None else {}
        after = new.metadata.labels or {}
        if before == after and old is not None:
            return SKIP
        if new.metadata.name == pod.namespace:
            return QUEUE
        terms = _parsed(pod)
        gained, lost = terms.required_affinity, terms.required_anti_affinity
        if any(each.namespace_selector.matches(after) and not _selected(each, old, before) for each in gained):
            return QUEUE
        if any(_selected(each, old, before) and not each.namespace_selector.matches(after) for each in lost):
            return QUEUE
        return SKIP

    def _kept_away(self, pod: fw.Pod, gone: fw.Pod) -> bool:
        terms = _parsed(gone).required_anti_affinity
        labels = namespace_labels(self._handle, pod.namespace) if terms else {}
        return bool(terms) and all(term.matches(pod.namespace, pod.labels, labels) for term in terms)


def hint_key(pod: fw.Pod) -> Hashable:
    """Return everything about a pod that the hints look at."""
    return pod.namespace, frozenset(pod.labels.items()), pod.affinity_terms


def _all(terms: Sequence[AffinityTerm], other: fw.Pod | None) -> bool:
    return other is not None and matches_all(terms, other)


def _selected(term: AffinityTerm, namespace: Any, labels: dict[str, str]) -> bool:
    return namespace is not None and term.namespace_selector.matches(labels)


def _parsed(pod: fw.Pod) -> AffinityTerms:
    terms = pod.affinity_terms
    if terms.error:
        raise fw.AttemptFailed(terms.error)
    return terms
