"""The cycle's writes to the cluster, and its few reads. Implemented in scheduler.kube, faked in tests."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scheduler.api.objects import ObjectMeta
from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.framework.handle import ApiWriter, EventRecorder, Evictor, NoReads, NoWrites, Reader


class BindingWriter(Protocol):
    """Binds pods at the API server."""

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        """Return once the pod is bound to the node: the last failure before that; empty if the first try succeeded.

        Raises BindRejected if it is not and will not be bound.

        `check` is called before each time the binding is sent; an error that it raises ends the binding.
        """


class Ending(NamedTuple):
    """The end of a pod, from its status."""

    phase: str
    reason: str
    message: str


class PodReader(Protocol):
    """Reads pods that the watch no longer shows."""

    async def ending(self, pod: Pod) -> Ending | None:
        """Return how a pod has ended; None if it is gone. Raises ClusterError."""


class EndedPods(PodReader, Protocol):
    """Reads also the pods that the watch has never shown."""

    def succeeded(self) -> AsyncIterator[Pod]:
        """Yield the pods that have succeeded; those that cannot be read are left out. Raises ClusterError."""


class StatusWriter(Protocol):
    """Writes the outcome of an attempt into a pod's status. Never waits, never raises."""

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        """Set the condition PodScheduled to False; None leaves the nomination as it is, empty clears it."""

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Publish the node to which the pod is about to be bound."""

    def forget(self, pod: Pod) -> None:
        """Drop the unsent patch of a pod that is bound or gone."""


class GroupEvents(Protocol):
    """Reports events of a group of pods. Never waits, never raises."""

    def group_event(self, group: PodGroup, member: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Report it at the group's object; at one of its members if it has none."""


class ObjectEvents(Protocol):
    """Reports problems of an object. Never waits, never raises."""

    def object_event(self, resource: str, metadata: ObjectMeta, reason: str, note: str) -> None:
        """Report it at the object. `resource`: as in events, with its kind, such as `policy/PodDisruptionBudget`."""


class NoWriters:
    """A BindingWriter, EventRecorder, GroupEvents, ObjectEvents, StatusWriter and Evictor that writes nothing."""

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        return ""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None: ...
    def group_event(self, group: PodGroup, member: Pod, type_: str, reason: str, action: str, note: str) -> None: ...
    def object_event(self, resource: str, metadata: ObjectMeta, reason: str, note: str) -> None: ...
    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None: ...
    def nominate(self, pod: Pod, node_name: str) -> None: ...
    def forget(self, pod: Pod) -> None: ...
    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        return False

    def clear_nomination(self, pod: Pod) -> None: ...


@dataclass(frozen=True, slots=True)
class Writers:
    binder: BindingWriter
    events: EventRecorder
    status: StatusWriter
    evictor: Evictor
    api: ApiWriter = field(default_factory=NoWrites)
    reader: Reader = field(default_factory=NoReads)
    """For plugins."""

    group_events: GroupEvents = field(default_factory=NoWriters)
    object_events: ObjectEvents = field(default_factory=NoWriters)
