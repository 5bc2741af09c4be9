"""Adapts Events and status patches to the interfaces of the cycle."""

from collections.abc import Sequence

from scheduler.api.objects import ObjectMeta
from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.kube.writes.events import Events, Recorder
from scheduler.kube.writes.status import Condition, PodStatuses


class EventsByProfile:
    """An EventRecorder, GroupEvents and ObjectEvents: reports each event in the name of the pod's profile."""

    def __init__(self, events: Events, profiles: Sequence[str]) -> None:
        self._events = events
        self._recorders: dict[str, Recorder] = {}
        self._default: Recorder
        self.use(profiles)

    def use(self, profiles: Sequence[str]) -> None:
        """Report in the name of these profiles from now on; of the first, what belongs to none."""
        self._recorders = {name: self._events.recorder(name) for name in profiles}
        self._default = self._recorders[profiles[0]]

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        self._recorders.get(pod.spec.scheduler_name, self._default).event(pod, type_, reason, action, note)

    def group_event(self, group: PodGroup, member: Pod, type_: str, reason: str, action: str, note: str) -> None:
        recorder = self._recorders.get(member.spec.scheduler_name, self._default)
        recorder.group_event(group, member, type_, reason, action, note)

    def object_event(self, resource: str, metadata: ObjectMeta, reason: str, note: str) -> None:
        self._default.object_event(resource, metadata, reason, note)


class StatusPatches:
    """scheduler.cycle.writers.StatusWriter over patches of the status."""

    def __init__(self, statuses: PodStatuses) -> None:
        self._statuses = statuses

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        self._statuses.set(pod, Condition("False", reason, message), nominated_node_name)

    def nominate(self, pod: Pod, node_name: str) -> None:
        self._statuses.set(pod, None, node_name)

    def forget(self, pod: Pod) -> None:
        self._statuses.forget(pod)
