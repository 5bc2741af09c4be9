"""Events: reports about pods, groups of pods and other objects; `events.py` sends them."""

from collections.abc import Sequence
from typing import Final

from scheduler.api.objects import ObjectMeta
from scheduler.api.pods.pod import Pod
from scheduler.api.wording.text import in_bytes
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.framework.nodes.resources import parse_resource
from scheduler.kube.writes.events import Events, Reference

MAX_NOTE: Final = 1024
"""Bytes of a note; the API server refuses more."""

MAX_WORD: Final = 128
"""Bytes of a type, a reason or an action; the API server refuses more."""


class Recorder:
    """An EventRecorder, GroupEvents and ObjectEvents: reports each event in the name of the pod's profile."""

    def __init__(self, events: Events, profiles: Sequence[str]) -> None:
        self._events = events
        self._profiles = frozenset(profiles)
        self._default = profiles[0]

    def use(self, profiles: Sequence[str]) -> None:
        """Report in the name of these profiles from now on; of the first, what belongs to none."""
        self._profiles, self._default = frozenset(profiles), profiles[0]

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        regarding = Reference("v1", "Pod", pod.namespace, pod.name, pod.uid, pod.metadata.resource_version)
        self._record(regarding, pod.spec.scheduler_name, type_, reason, action, note)

    def group_event(self, group: PodGroup, member: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Report it at the group's object or owner; at the member if there is neither."""
        if group.owner is not None:
            version, kind, name, uid = group.owner
            regarding = Reference(version, kind, group.namespace, name, uid, "")
        elif group.has_object:
            version = parse_resource(group.source).group_version
            regarding = Reference(version, "PodGroup", group.namespace, group.name, group.uid, "")
        else:
            self.event(member, type_, reason, action, note)
            return
        self._record(regarding, member.spec.scheduler_name, type_, reason, action, note)

    def object_event(self, resource: str, metadata: ObjectMeta, reason: str, note: str) -> None:
        version, kind = parse_resource(resource).group_version, resource.rpartition("/")[2]
        regarding = Reference(version, kind, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)
        self._record(regarding, self._default, "Warning", reason, "Scheduling", note)

    def _record(self, regarding: Reference, profile: str, type_: str, reason: str, action: str, note: str) -> None:
        controller = profile if profile in self._profiles else self._default
        type_, reason, action = in_bytes(type_, MAX_WORD), in_bytes(reason, MAX_WORD), in_bytes(action, MAX_WORD)
        self._events.record((regarding.uid, controller, type_, reason, action, in_bytes(note, MAX_NOTE)), regarding)
