"""A running pod whose resize waits for space on its node, as the scheduler sees it.

Rule: IsPodResizeDeferred in k8s.io/component-helpers resource/helpers.go at v0.37.2.
"""

from typing import ClassVar, Final

from scheduler.api.objects import PodMeta, PodSpec
from scheduler.api.pods.pod import Pod

PENDING: Final = "PodResizePending"
DEFERRED: Final = "Deferred"


class Resize(Pod, frozen=True, eq=False):
    """Stands for the pod in the queue. It is of no group, and asks for nothing: the node counts the pod's requests."""

    is_resize: ClassVar[bool] = True

    running: Pod = Pod()
    """The pod."""


def resize_of(pod: Pod) -> Resize:
    """Return the resize of a pod, to wait in the queue."""
    meta, spec = pod.metadata, pod.spec
    return Resize(
        metadata=PodMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=PodSpec(
            node_name=spec.node_name,
            scheduler_name=spec.scheduler_name,
            priority=spec.priority,
            preemption_policy=spec.preemption_policy,
        ),
        running=pod,
    )


def running_of(pod: Pod) -> Pod:
    """Return the pod itself, also for a resize."""
    return pod.running if isinstance(pod, Resize) else pod


def is_deferred(pod: Pod) -> bool:
    """Return whether the kubelet waits for space before it gives the pod what it asks for."""
    pending = (each.reason for each in pod.status.conditions or () if each.type == PENDING)
    return next(pending, "") == DEFERRED
