"""What the cycle writes to the cluster. Implemented in scheduler.kube, faked in simulations and tests."""

from dataclasses import dataclass, field
from typing import Protocol

from scheduler.api.pod import Pod
from scheduler.framework.handle import ApiWriter, Binder, EventRecorder, Evictor, NoWrites


class StatusWriter(Protocol):
    """Writes the outcome of an attempt into a pod's status. Never waits, never raises."""

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None:
        """Set the condition PodScheduled to False; None leaves the nomination as it is, empty clears it."""

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Write down for other components where the pod is about to be bound."""

    def forget(self, pod: Pod) -> None:
        """Drop what is not sent yet: the pod is bound or gone."""


@dataclass(frozen=True, slots=True)
class Writers:
    """All that the scheduler writes with."""

    binder: Binder
    events: EventRecorder
    status: StatusWriter
    evictor: Evictor
    api: ApiWriter = field(default_factory=NoWrites)
