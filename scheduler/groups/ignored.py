"""A warning of pods that name a group of our own rules while no profile enables the plugin that keeps it together."""

import logging
from typing import Final

from scheduler.api.coscheduling import POD_GROUP_LABEL
from scheduler.api.pod import Pod
from scheduler.config.defaults import COSCHEDULING
from scheduler.cycle.listeners import PodListener
from scheduler.framework.handle import EventRecorder

MAX_GROUPS: Final = 1_000
"""All who may create pods may name groups: after so many nothing more is said."""

_logger = logging.getLogger(__name__)


class IgnoredGroups(PodListener):
    """Says it once for each group, at the first pod that names it."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._seen: set[tuple[str, str]] = set()

    def pod_waits(self, pod: Pod) -> None:
        metadata = pod.metadata  # asked for each pod that comes, of which few name a group: without a call
        if metadata.group_annotations is None and POD_GROUP_LABEL not in (metadata.labels or ()):
            return
        name = named_by(pod)
        if not name or (pod.namespace, name) in self._seen or len(self._seen) >= MAX_GROUPS:
            return
        self._seen.add((pod.namespace, name))
        _logger.warning("No profile keeps a pod group together", extra={"podGroup": f"{pod.namespace}/{name}"})
        note = f'the pod group "{name}" is ignored, as no profile enables {COSCHEDULING}: its pods start one by one'
        self._events.event(pod, "Warning", "PodGroupIgnored", "Scheduling", note)


def named_by(pod: Pod) -> str:
    """Return the group of our own rules that a pod names; empty if it names none."""
    annotations = pod.group_annotations
    return pod.labels.get(POD_GROUP_LABEL, "") or ("" if annotations is None else annotations.group)
