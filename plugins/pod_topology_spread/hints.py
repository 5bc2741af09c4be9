"""The events that make a pod that its spread constraints kept off all nodes worth another attempt.

Rule: podtopologyspread/plugin.go (isSchedulableAfterAssignedPodChange and so on) at v1.37.2. Beyond it, other events
that change the counts help: the beginning of a pod's deletion, labels by which a node starts or stops matching the
pod's node affinity, and changes of the objects from which the selectors of default constraints are made.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from plugins.pod_topology_spread.constraints import SpreadConstraint
from plugins.pod_topology_spread.default_selectors import RESOURCES, concerns
from scheduler import framework as fw
from scheduler.api.selectors import pod_selector_keys, pod_selects

QUEUE, SKIP = fw.QueueingHint.QUEUE, fw.QueueingHint.SKIP

ConstraintsOf = Callable[[fw.Pod], Sequence[SpreadConstraint]]
"""The hard constraints of a pod. Raises ValueError if one has a selector that is not valid."""


class SpreadHints:
    """The hints of one profile's plugin."""

    __slots__ = ("_constraints_of", "_has_defaults", "_key_of_defaults")

    def __init__(
        self, constraints_of: ConstraintsOf, key_of_defaults: Callable[[fw.Pod], Hashable], *, has_defaults: bool
    ) -> None:
        """`key_of_defaults`: everything that the default constraints of a pod depend on, if it `has_defaults`."""
        self._constraints_of = constraints_of
        self._key_of_defaults = key_of_defaults
        self._has_defaults = has_defaults

    def events(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: plugin.go (EventsToRegister), and what goes beyond it, last."""
        action = fw.Action
        pods = action.ADD | action.UPDATE_POD_LABEL | action.DELETE
        itself = action.UPDATE_POD_TOLERATION | action.UPDATE_POD_LABEL
        nodes = action.ADD | action.DELETE | action.UPDATE_NODE_LABEL | action.UPDATE_NODE_TAINT
        return (
            fw.on(fw.ASSIGNED_POD, pods, self.after_pod_event, self.key),
            fw.on(fw.TARGET_POD, itself, self.after_pod_event, self.key),
            fw.on(fw.NODE, nodes, self.after_node_event, self.key),
            fw.on(fw.ASSIGNED_POD, action.UPDATE_OTHER, self.after_deletion_began, self.key),
            *(fw.on(each, hint=self.after_default_selector, key=self.key) for each in RESOURCES if self._has_defaults),
        )

    def key(self, pod: fw.Pod) -> Hashable:
        """The constraints as the hints see them, the namespace in which they count, and the nodes that they count."""
        selector, affinity = pod.spec.node_selector, pod.spec.affinity
        nodes = (
            frozenset(selector.items()) if selector else None,
            None if affinity is None or affinity.node_affinity is None else affinity.node_affinity.required,
        )
        if not pod.spec.topology_spread_constraints:
            return pod.namespace, self._key_of_defaults(pod), nodes
        try:
            return pod.namespace, tuple(self._constraints_of(pod)), nodes
        except ValueError as error:
            return pod.namespace, str(error), nodes

    def after_pod_event(self, pod: fw.Pod, old: fw.Pod | None, new: fw.Pod | None) -> fw.QueueingHint:
        """A pod helps that starts or stops matching a constraint. Raises ValueError as `constraints_of` does."""
        if any(each is not None and not _is_involved(each, pod) for each in (new, old)):
            return SKIP
        constraints = self._constraints_of(pod)
        if old is None or new is None:
            come_or_gone = old if new is None else new
            labels = come_or_gone.labels if come_or_gone is not None else {}
            return _queue_if(any(each.selector.matches(labels) for each in constraints))
        tolerates_otherwise = (new.spec.tolerations or ()) != (old.spec.tolerations or ())
        if pod.uid == new.uid and tolerates_otherwise and any(each.honors_taints for each in constraints):
            return QUEUE
        return _queue_if(
            any(each.selector.matches(old.labels) != each.selector.matches(new.labels) for each in constraints)
        )

    def after_deletion_began(self, pod: fw.Pod, old: fw.Pod, new: fw.Pod) -> fw.QueueingHint:
        """A pod helps that matched a constraint and is being deleted: it counts no longer.

        Raises ValueError as `constraints_of` does.
        """
        if old.is_deleting or not new.is_deleting or new.uid == pod.uid or not _is_involved(new, pod):
            return SKIP
        return _queue_if(any(each.selector.matches(new.labels) for each in self._constraints_of(pod)))

    def after_default_selector(self, pod: fw.Pod, old: Any, new: Any) -> fw.QueueingHint:
        """A Service or controller helps of which the selector of the pod's default constraints is, or was, made."""
        if pod.spec.topology_spread_constraints:
            return SKIP
        return _queue_if(any(each is not None and concerns(each, pod) for each in (old, new)))

    def after_node_event(self, pod: fw.Pod, old: fw.Node | None, new: fw.Node | None) -> fw.QueueingHint:
        """A node helps that starts or stops counting, moves to another domain, or has other taints.

        Raises ValueError as `constraints_of` does.
        """
        constraints = self._constraints_of(pod)
        counted = [each is not None and _has_all_keys(each.labels, constraints) for each in (old, new)]
        if old is None or new is None:
            return _queue_if(any(counted))
        if counted[0] != counted[1]:
            return QUEUE
        return _queue_if(
            counted[1]
            and (
                _moved(old, new, constraints)
                or old.taints != new.taints
                or (any(each.honors_affinity for each in constraints) and _is_selected_otherwise(pod, old, new))
            )
        )


def _queue_if(helps: bool) -> fw.QueueingHint:
    return QUEUE if helps else SKIP


def _is_involved(other: fw.Pod, pod: fw.Pod) -> bool:
    """Return whether `other` could be counted for `pod`, or is that pod itself."""
    if other.uid == pod.uid:
        return True
    return bool(other.node_name or other.nominated_node_name) and other.namespace == pod.namespace


def _has_all_keys(labels: Mapping[str, str], constraints: Sequence[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)


def _moved(old: fw.Node, new: fw.Node, constraints: Sequence[SpreadConstraint]) -> bool:
    keys = {constraint.topology_key for constraint in constraints}
    return any(old.labels.get(key, "") != new.labels.get(key, "") for key in keys)


def _is_selected_otherwise(pod: fw.Pod, old: fw.Node, new: fw.Node) -> bool:
    """Return whether a node comes to match the pod's nodeSelector and node affinity, or stops to; True if that is
    unclear."""
    keys = pod_selector_keys(pod)
    if keys is not None and all(old.labels.get(key) == new.labels.get(key) for key in keys):
        return False
    try:
        return pod_selects(pod, old.labels, old.name) != pod_selects(pod, new.labels, new.name)
    except ValueError:  # a term that cannot be parsed
        return old.labels != new.labels
