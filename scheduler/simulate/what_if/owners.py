"""Whose pods are: it decides what becomes of them where their node goes."""

from typing import Any, Final

from scheduler.api.objects import OwnerReference
from scheduler.api.pod import Pod

NEEDS: Final = ("metadata.annotations[kubernetes.io/config.mirror]", "spec.volumes.emptyDir")
"""What evictions read of pods, besides what scheduling reads."""


def controller_of(pod: Pod) -> OwnerReference | None:
    """Return the owner that makes another pod where this one goes."""
    return next((owner for owner in pod.metadata.owner_references or () if owner.controller), None)


def is_of_daemon_set(pod: Pod) -> bool:
    """Whether it is bound to its node for ever."""
    owner = controller_of(pod)
    return owner is not None and owner.kind == "DaemonSet"


def is_static(pod: Pod) -> bool:
    """Whether it is the image of a pod that its kubelet has from a file: deleting it changes nothing."""
    owner = controller_of(pod)
    annotations: Any = getattr(pod.metadata, "annotations", None) or {}
    return "kubernetes.io/config.mirror" in annotations or (owner is not None and owner.kind == "Node")


def has_local_data(pod: Pod) -> bool:
    """Whether it has an emptyDir, which goes with it."""
    return any(getattr(volume, "empty_dir", None) is not None for volume in pod.spec.volumes or ())
