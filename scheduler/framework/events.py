"""Cluster events, by which plugins say what could help a pod that they refused."""

from collections.abc import Callable, Hashable
from enum import Enum, IntFlag
from functools import cache
from typing import Any, Final

import msgspec


class Action(IntFlag):
    """The change of an object; kube-scheduler's ActionType.

    Rule: k8s.io/kube-scheduler framework/types.go at v0.37.2.
    """

    ADD = 1 << 0
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_NODE_DECLARED_FEATURE = 1 << 7
    UPDATE_NODE_PREEMPTION_POLICY = 1 << 8
    UPDATE_POD_LABEL = 1 << 9
    UPDATE_POD_SCALE_DOWN = 1 << 10
    UPDATE_POD_SCALE_UP = 1 << 11
    UPDATE_POD_TOLERATION = 1 << 12
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 13
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 14
    UPDATE_OTHER = 1 << 15
    ALL = (1 << 16) - 1
    UPDATE = ALL & ~(ADD | DELETE)


POD: Final = "Pod"
"""Any of the next three."""
ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULED_POD: Final = "UnscheduledPod"
"""Another pod that waits."""
TARGET_POD: Final = "TargetPod"
"""The pod that was refused: only updates."""
NODE: Final = "Node"
NAMESPACE: Final = "Namespace"
PERSISTENT_VOLUME: Final = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
CSI_NODE: Final = "storage.k8s.io/CSINode"
CSI_DRIVER: Final = "storage.k8s.io/CSIDriver"
CSI_STORAGE_CAPACITY: Final = "storage.k8s.io/CSIStorageCapacity"
STORAGE_CLASS: Final = "storage.k8s.io/StorageClass"
VOLUME_ATTACHMENT: Final = "storage.k8s.io/VolumeAttachment"
RESOURCE_CLAIM: Final = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE: Final = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS: Final = "resource.k8s.io/DeviceClass"
DEVICE_TAINT_RULE: Final = "resource.k8s.io/DeviceTaintRule"
POD_GROUP: Final = "scheduling.k8s.io/PodGroup"
POD_GROUP_V1BETA1: Final = "podgroups.v1beta1.scheduling.k8s.io"
"""The same in Kubernetes 1.37, which no longer serves v1alpha2."""
COMPOSITE_POD_GROUP: Final = "scheduling.k8s.io/CompositePodGroup"
"""A group of such groups."""
COSCHEDULING_POD_GROUP: Final = "scheduling.x-k8s.io/PodGroup"
"""The groups of scheduler-plugins."""
VOLCANO_POD_GROUP: Final = "scheduling.volcano.sh/PodGroup"
VOLCANO_QUEUE: Final = "scheduling.volcano.sh/Queue"
ELASTIC_QUOTA: Final = "scheduling.x-k8s.io/ElasticQuota"
"""The quotas of scheduler-plugins."""
ELASTIC_QUOTA_SIGS: Final = "scheduling.sigs.k8s.io/ElasticQuota"
"""The same in the API group that they had first."""
CLUSTER_QUEUE: Final = "kueue.x-k8s.io/ClusterQueue"
LOCAL_QUEUE: Final = "kueue.x-k8s.io/LocalQueue"
COHORT: Final = "kueue.x-k8s.io/Cohort"
RESOURCE_FLAVOR: Final = "kueue.x-k8s.io/ResourceFlavor"
ANY: Final = "*"


PODS_OF_EVENTS: Final = frozenset({ASSIGNED_POD, UNSCHEDULED_POD, TARGET_POD})


class ClusterEvent(msgspec.Struct, frozen=True, gc=False):
    """Something that happened to objects of one kind; also the pattern that such an event may match."""

    resource: str
    action: Action
    custom_label: str = ""

    @property
    def label(self) -> str:
        """How metrics name it, such as `NodeAdd` or `NodeUpdateNodeTaint`."""
        return self.custom_label or self.resource + _spelled(self.action)

    def matches(self, happened: "ClusterEvent") -> bool:
        """Return whether `happened` is one of the events that this pattern names. `Pod` covers its special cases."""
        is_of_a_pod = self.resource == POD and happened.resource in PODS_OF_EVENTS
        if self.resource not in (ANY, happened.resource) and not is_of_a_pod:
            return happened.resource == ANY
        return bool(self.action & happened.action)


@cache
def _spelled(action: Action) -> str:
    """UPDATE_NODE_TAINT → UpdateNodeTaint; UPDATE_OTHER is spelled as the general Update that kube-scheduler has."""
    if action in (Action.UPDATE, Action.UPDATE_OTHER):
        return "Update"
    return "".join(word.capitalize() for word in (action.name or "").split("_"))


class QueueingHint(Enum):
    """A hint function's answer: is the pod worth another attempt after this event?"""

    SKIP = "QueueSkip"
    QUEUE = "Queue"


HintFunction = Callable[[Any, Any, Any], QueueingHint]
"""`(pod, old object or None, new object or None) -> QueueingHint`; an error counts as Queue."""


KeyFunction = Callable[[Any], Hashable]
"""`(pod) -> all of the pod that a hint function looks at`."""


class ClusterEventWithHint(msgspec.Struct, frozen=True):
    """An event that may help pods which a plugin refused, and a closer look at it."""

    event: ClusterEvent
    hint: HintFunction | None = None
    key: KeyFunction | None = None
    """Pods of equal key get the same answer from `hint`, so one of them is asked for all. Without it each is asked.

    An event of the pod itself, such as a toleration it got, is always asked for that pod.
    """


def on(
    resource: str, action: Action = Action.ALL, hint: HintFunction | None = None, key: KeyFunction | None = None
) -> ClusterEventWithHint:
    """Return a registration: `action` on an object of `resource` may help pods, if `hint` does not deny it.

    `key`: see ClusterEventWithHint.
    """
    return ClusterEventWithHint(ClusterEvent(resource, action), hint, key)


ALL_EVENTS: Final = ClusterEvent(ANY, Action.ALL, "WildCardEvent")
"""The events of a plugin that does not say what could help."""

ASSIGNED_POD_ADD: Final = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_UPDATE: Final = ClusterEvent(ASSIGNED_POD, Action.UPDATE_OTHER)
ASSIGNED_POD_DELETE: Final = ClusterEvent(ASSIGNED_POD, Action.DELETE)
NODE_ADD: Final = ClusterEvent(NODE, Action.ADD)
NODE_DELETE: Final = ClusterEvent(NODE, Action.DELETE)

UNSCHEDULED_POD_ADD: Final = ClusterEvent(UNSCHEDULED_POD, Action.ADD)
UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(UNSCHEDULED_POD, Action.UPDATE_OTHER)
UNSCHEDULED_POD_DELETE: Final = ClusterEvent(UNSCHEDULED_POD, Action.DELETE)
TARGET_POD_UPDATE: Final = ClusterEvent(TARGET_POD, Action.UPDATE_OTHER)
"""An update that is none of the known kinds: for plugins that registered for all updates."""
