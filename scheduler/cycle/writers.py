"""What the cycle writes to the cluster, and the little that it reads. Implemented in scheduler.kube, faked in tests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from scheduler.api.pod import Pod
from scheduler.framework.handle import ApiWriter, EventRecorder, Evictor, NoReads, NoWrites, Reader


class BindingWriter(Protocol):
    """Binds pods at the API server."""

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        """Return once the pod is bound to the node, with what went wrong before; empty if the first try did it.

        Raises BindRejected if it never will be.

        `check` is called just before the binding is sent, each time; what it raises ends the binding.
        """


class Ending(NamedTuple):
    """What the status of a pod that has ended says."""

    phase: str
    reason: str
    message: str


class PodReader(Protocol):
    """Reads pods that the watch does not show any more."""

    async def ending(self, pod: Pod) -> Ending | None:
        """Return how a pod has ended; None if it is gone. Raises ClusterError."""


class StatusWriter(Protocol):
    """Writes the outcome of an attempt into a pod's status. Never waits, never raises."""

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        """Set the condition PodScheduled to False; None leaves the nomination as it is, empty clears it."""

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Write down for other components where the pod is about to be bound."""

    def forget(self, pod: Pod) -> None:
        """Drop what is not sent yet: the pod is bound or gone."""


class NoWriters:
    """A BindingWriter, EventRecorder, StatusWriter and Evictor that writes nothing."""

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        return ""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None: ...
    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None: ...
    def nominate(self, pod: Pod, node_name: str) -> None: ...
    def forget(self, pod: Pod) -> None: ...
    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        return True

    def clear_nomination(self, pod: Pod) -> None: ...


@dataclass(frozen=True, slots=True)
class Writers:
    """All that the scheduler writes with."""

    binder: BindingWriter
    events: EventRecorder
    status: StatusWriter
    evictor: Evictor
    api: ApiWriter = field(default_factory=NoWrites)
    reader: Reader = field(default_factory=NoReads)
    """For plugins."""
