"""What the scheduler offers to its plugins. The roles are Protocols here and implemented in upper rooms."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

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


class ObjectLister(Protocol):
    """Has the newest objects of all resources that plugins name in their events or in `reads`, as those name them.

    Objects are structs for some built-in resources and `Unstructured` for all others; each has a `metadata`. Each
    method raises LookupError for a resource that nobody named.
    """

    def get(self, resource: str, name: str, namespace: str = "") -> Any | None:
        """Return the object of that name, or None. `namespace` is empty for resources without."""

    def list(self, resource: str, namespace: str | None = None) -> Collection[Any]:
        """Return all objects, or those of a namespace: a live view, not to be kept while waiting."""

    def version(self, resource: str) -> int:
        """Return a number that grows with each change of the resource's objects."""


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
    objects: ObjectLister
