"""Keep pods off nodes that do not declare a feature the pod needs."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from plugins.shared.queueing import any_pod
from scheduler import framework as fw

NOT_DECLARED: Final = fw.unresolvable("node(s) didn't match Pod's required features")

RESTART_ALL_CONTAINERS: Final = "RestartAllContainersOnContainerExits"
VOLUME_BIND_MOUNT_OPTIONS: Final = "VolumeBindMountOptions"
USER_NAMESPACES_HOST_NETWORK: Final = "UserNamespacesHostNetworkSupport"


@dataclass(frozen=True, slots=True)
class NodeDeclaredFeatures(fw.PreFilterPlugin, fw.FilterNodesPlugin, fw.SignPlugin):
    """Filter: `status.declaredFeatures` of the node has all that the pod needs.

    Rule: nodedeclaredfeatures/nodedeclaredfeatures.go at v1.37.2.
    """

    name: ClassVar[str] = "NodeDeclaredFeatures"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.NODE
    signs_spec: ClassVar[bool] = True

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: nodedeclaredfeatures.go (EventsToRegister)."""
        return (
            fw.on(fw.NODE, fw.Action.ADD | fw.Action.UPDATE_NODE_DECLARED_FEATURE, _after_node_event, any_pod),
            fw.on(fw.TARGET_POD, fw.Action.UPDATE, _after_pod_update, any_pod),
        )

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """The features that the pod needs."""
        return required_features(pod)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Skip pods that need no feature: nearly all."""
        required = required_features(pod)
        if not required:
            return fw.SKIP
        state.write(self.name, required)
        return None

    def concerns(self, pod: fw.Pod) -> bool:
        return bool(required_features(pod))

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return 1 for each of `rows` that lacks a feature. Raises LookupError if PreFilter is disabled."""
        required: frozenset[str] | None = state.get(self.name, frozenset)
        if required is None:
            raise LookupError(f'error reading "PreFilter{self.name}" from cycle-state: not found')
        in_use = nodes.in_use
        codes = np.fromiter(
            (in_use[row] and not required.issubset(_declared_by(nodes.info(row))) for row in rows.tolist()),
            np.int32,
            len(rows),
        )
        return codes if codes.any() else None

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        return NOT_DECLARED


def required_features(pod: fw.Pod) -> frozenset[str]:
    """Return the features without which a node cannot run the pod.

    Rule: component-helpers nodedeclaredfeatures at v0.37.2 (InferForScheduling of each in features/registry.go). The
    others of that registry do not matter here, or only to updates of running pods.
    """
    spec = pod.spec
    features = set()
    if spec.host_network and spec.host_users is False:
        features.add(USER_NAMESPACES_HOST_NETWORK)
    for container in (*(spec.containers or ()), *(spec.init_containers or ())):
        if any(rule.action == "RestartAllContainers" for rule in container.restart_policy_rules or ()):
            features.add(RESTART_ALL_CONTAINERS)
        if any(mount.bind_mount_options for mount in container.volume_mounts or ()):
            features.add(VOLUME_BIND_MOUNT_OPTIONS)
    return frozenset(features)


def _declared_by(node: fw.NodeInfo) -> tuple[str, ...]:
    return node.node.status.declared_features or ()


def _after_node_event(pod: fw.Pod, old: fw.Node | None, new: fw.Node) -> fw.QueueingHint:
    """A new node helps, or one that declares other features. Rule: isSchedulableAfterNodeChange."""
    same = old is not None and (old.status.declared_features or ()) == (new.status.declared_features or ())
    return fw.QueueingHint.SKIP if same else fw.QueueingHint.QUEUE


def _after_pod_update(pod: fw.Pod, old: fw.Pod, new: fw.Pod) -> fw.QueueingHint:
    """The pod is helped if it now needs other features. Rule: isSchedulableAfterTargetPodUpdate."""
    helps = new.uid == pod.uid and required_features(old) != required_features(new)
    return fw.QueueingHint.QUEUE if helps else fw.QueueingHint.SKIP
