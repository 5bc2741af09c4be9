"""What the scheduler offers to its plugins. The roles are Protocols here and implemented in upper rooms."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from scheduler.api.pod import Pod
from scheduler.framework.nodes import NodeColumns
from scheduler.framework.waiting import WaitingPods


class Binder(Protocol):
    """Tells the API server where a pod runs."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Return once the pod is bound to the node. Raises BindRejected if it never will be."""


class EventRecorder(Protocol):
    """Tells a pod's owner what happened, as an events.k8s.io/v1 Event. Never waits, never raises."""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None: ...


class PodNominator(Protocol):
    """Knows which pods were promised a node."""

    def nominated_pods(self, node_name: str) -> Collection[Pod]: ...


class PodActivator(Protocol):
    """Brings pods back to activeQ."""

    def activate(self, uids: Iterable[str]) -> None: ...


@dataclass(frozen=True, slots=True)
class Handle:
    """kube-scheduler's framework.Handle, for one profile."""

    profile_name: str
    nodes: NodeColumns
    nominator: PodNominator
    activator: PodActivator
    waiting_pods: WaitingPods
    binder: Binder
    events: EventRecorder
