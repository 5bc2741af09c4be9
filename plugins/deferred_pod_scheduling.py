"""Keep pods whose resize is deferred on their node, and from evicting others where that is not wanted."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from scheduler import framework as fw

OTHER_NODE: Final = fw.unresolvable("pod assigned to different node")
DISABLED: Final = fw.unresolvable("node had resize preemption disabled")
FITS: Final = fw.unresolvable("pod resize fits, waiting for Kubelet actuation")

_OTHER_NODE, _DISABLED = 1, 2
_REFUSALS: Final = {_OTHER_NODE: OTHER_NODE, _DISABLED: DISABLED}


@dataclass(frozen=True, slots=True)
class DeferredPodScheduling(fw.PreFilterPlugin, fw.FilterNodesPlugin, fw.SignPlugin, fw.PermitPlugin):
    """Filter: the node is the pod's, and `spec.podPreemptionPolicy.disableResizePreemption` of the node is empty.

    Permit: refuse a resize that fits, as the kubelet has yet to act. Other pods are nothing to it. Rule:
    deferredpodscheduling/deferred_pod_scheduling.go at v1.37.2.
    """

    name: ClassVar[str] = "DeferredPodScheduling"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.NODE
    filters_resizes: ClassVar[bool] = True

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: deferred_pod_scheduling.go (EventsToRegister).

        Beyond it, pods that come to the node, or grow there, may take the space that the kubelet was to give: there,
        a resize that fits is an error, and so retried after each backoff.
        """
        node, growth = fw.Action.ADD | fw.Action.UPDATE_NODE_PREEMPTION_POLICY, fw.Action.UPDATE_POD_SCALE_UP
        return (
            fw.on(fw.NODE, node, _after_node_event, node_of_resize),
            fw.on(fw.ASSIGNED_POD, fw.Action.ADD | growth, after_growth, node_of_resize),
        )

    def sign(self, pod: fw.Pod) -> Hashable | None:
        return None if pod.is_resize else ()

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Skip all other pods."""
        return None if pod.is_resize else fw.SKIP

    def concerns(self, pod: fw.Pod) -> bool:
        return pod.is_resize

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` why others are not evicted there."""
        if not pod.is_resize:
            return None
        own = nodes.row_of(pod.node_name)
        return np.array([_code(nodes, row) if row == own else _OTHER_NODE for row in rows.tolist()], np.int32)

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return _REFUSALS[code]

    def permit(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | fw.PermitWait | None:
        """Refuse a resize."""
        return FITS if pod.is_resize else None


def node_of_resize(pod: fw.Pod) -> Hashable:
    """The key for hints about one node: that of a resize."""
    return pod.node_name if pod.is_resize else ""


def after_growth(pod: fw.Pod, old: fw.Pod | None, new: fw.Pod) -> fw.QueueingHint:
    """More is taken of the node of a resize: others may have to be evicted."""
    is_there = pod.is_resize and new.node_name == pod.node_name and new.uid != pod.uid
    return fw.QueueingHint.QUEUE if is_there else fw.QueueingHint.SKIP


def _after_node_event(pod: fw.Pod, old: fw.Node | None, new: fw.Node) -> fw.QueueingHint:
    """The node of a resize is there again, or allows evictions again."""
    is_there = pod.is_resize and new.name == pod.node_name
    allows = is_there and not _disables(new) and (old is None or _disables(old))
    return fw.QueueingHint.QUEUE if allows else fw.QueueingHint.SKIP


def _code(nodes: fw.NodeColumns, row: int) -> int:
    return _DISABLED if _disables(nodes.info(row).node) else 0


def _disables(node: fw.Node) -> bool:
    policy = node.spec.pod_preemption_policy
    return policy is not None and bool(policy.disable_resize_preemption)
