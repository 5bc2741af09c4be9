"""Translates an update of an object into the events that plugins register for.

Rule: pkg/scheduler/framework/events.go at v1.37.2 (PodSchedulingPropertiesChange, NodeSchedulingPropertiesChange). One
difference: a pod's status that changes nothing about what it asks for is no event; kube-scheduler calls it an Update.
"""

from collections.abc import Iterator, Mapping

from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import requests_of
from scheduler.framework.events import ASSIGNED_POD, NODE, TARGET_POD, Action, ClusterEvent


def node_changes(old: Node, new: Node) -> tuple[ClusterEvent, ...]:
    """Return the events that an update of a node amounts to; none for a heartbeat."""
    return tuple(ClusterEvent(NODE, action) for action in _node_actions(old, new))


def pod_changes(old: Pod, new: Pod) -> tuple[ClusterEvent, ...]:
    """Return the events that an update of a pod amounts to; none if it cannot matter to scheduling.

    Those of a pod that waits are for itself: no plugin would be asked whether they help others.
    """
    if old is new:
        return ()
    resource = ASSIGNED_POD if new.node_name else TARGET_POD
    is_other = (
        old.spec != new.spec
        or new.is_deleting != old.is_deleting
        or new.metadata.group_annotations != old.metadata.group_annotations
        or new.has_changed_raw(old)
    )
    actions = tuple(_pod_actions(old, new)) or ((Action.UPDATE_OTHER,) if is_other else ())
    return tuple(ClusterEvent(resource, action) for action in actions)


def _node_actions(old: Node, new: Node) -> Iterator[Action]:
    if old.status.allocatable != new.status.allocatable:
        yield Action.UPDATE_NODE_ALLOCATABLE
    if old.labels != new.labels:
        yield Action.UPDATE_NODE_LABEL
    # A node that is made schedulable again counts as one that lost a taint.
    if old.spec.taints != new.spec.taints or (old.spec.unschedulable and not new.spec.unschedulable):
        yield Action.UPDATE_NODE_TAINT
    if _conditions(old) != _conditions(new):
        yield Action.UPDATE_NODE_CONDITION
    if (old.metadata.annotations or {}) != (new.metadata.annotations or {}):
        yield Action.UPDATE_NODE_ANNOTATION
    if (old.status.declared_features or ()) != (new.status.declared_features or ()):
        yield Action.UPDATE_NODE_DECLARED_FEATURE
    if old.spec.pod_preemption_policy != new.spec.pod_preemption_policy:
        yield Action.UPDATE_NODE_PREEMPTION_POLICY


def _pod_actions(old: Pod, new: Pod) -> Iterator[Action]:
    if old.labels != new.labels:
        yield Action.UPDATE_POD_LABEL
    try:
        before, after = requests_of(old.resources), requests_of(new.resources)
    except ValueError:
        before = after = {}  # a quantity that cannot be read: the pod's next attempt reports it
    if before != after:
        if _is_less(after, before):
            yield Action.UPDATE_POD_SCALE_DOWN
        if _is_less(before, after):
            yield Action.UPDATE_POD_SCALE_UP
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        yield Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    # Tolerations can only be added, so their number shows a change.
    if len(old.spec.tolerations or ()) != len(new.spec.tolerations or ()):
        yield Action.UPDATE_POD_TOLERATION
    if _generated_claims(old) != _generated_claims(new):
        yield Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM


def _is_less(some: Mapping[str, int], than: Mapping[str, int]) -> bool:
    return any(name not in some or some[name] < amount for name, amount in than.items())


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions or ()}


def _generated_claims(pod: Pod) -> tuple[object, object]:
    """Which ResourceClaims were made for the pod."""
    return pod.status.resource_claim_statuses or (), pod.status.extended_resource_claim_status
