"""Keep pods off cordoned nodes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from plugins.shared.column_math import pick
from plugins.shared.queueing import any_pod
from plugins.shared.remedies import cordoned
from scheduler import framework as fw
from scheduler.api.pods.tolerations import UNSCHEDULABLE_TAINT, is_tolerated

UNSCHEDULABLE: Final = fw.unresolvable("node(s) were unschedulable")


@dataclass(frozen=True, slots=True)
class NodeUnschedulable(fw.PreFilterPlugin, fw.FilterNodesPlugin, fw.SignPlugin, fw.ExplainPlugin):
    """Filter: the node is not cordoned, or the pod tolerates it.

    Rule: nodeunschedulable/node_unschedulable.go at v1.37.2.
    """

    name: ClassVar[str] = "NodeUnschedulable"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.TAINTS
    signs_spec: ClassVar[bool] = True
    filters_all: ClassVar[bool] = True

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: node_unschedulable.go (EventsToRegister)."""
        return (
            fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_TAINT, _after_node_event, any_pod),
            fw.on(fw.TARGET_POD, fw.Action.UPDATE_POD_TOLERATION, _after_toleration, any_pod),
        )

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """Sign by whether the pod tolerates cordoned nodes."""
        return is_tolerated(UNSCHEDULABLE_TAINT, pod.spec.tolerations)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> None:
        """Nothing to prepare: kube-scheduler has it for pods whose resize is deferred."""

    def concerns(self, pod: fw.Pod) -> bool:
        return False

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return 1 for each of `rows` that is cordoned."""
        if is_tolerated(UNSCHEDULABLE_TAINT, pod.spec.tolerations):
            return None
        cordoned = pick(nodes.unschedulable, rows)
        return cordoned.astype(np.int32) if cordoned.any() else None

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return UNSCHEDULABLE

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        return (cordoned(node.name),)


def _after_node_event(pod: fw.Pod, old: fw.Node | None, new: fw.Node) -> fw.QueueingHint:
    """A node helps that is new and schedulable, or was uncordoned. Rule: isSchedulableAfterNodeChange."""
    helps = not new.spec.unschedulable and (old is None or old.spec.unschedulable)
    return fw.QueueingHint.QUEUE if helps else fw.QueueingHint.SKIP


def _after_toleration(pod: fw.Pod, old: fw.Pod | None, new: fw.Pod) -> fw.QueueingHint:
    """The pod is helped if it now tolerates cordoned nodes. Rule: isSchedulableAfterPodTolerationChange."""
    helps = new.uid == pod.uid and is_tolerated(UNSCHEDULABLE_TAINT, new.spec.tolerations)
    return fw.QueueingHint.QUEUE if helps else fw.QueueingHint.SKIP
