"""Listeners to changes of pods and nodes, such as groups and quota while they are on.

Events of the `EventStream` are for the record. Listeners take part in decisions, so an error in one is an error of the
handler that calls it.
"""

from collections.abc import Iterator

from scheduler.api.pods.pod import Pod
from scheduler.cycle.algorithm import Unplaced
from scheduler.framework.errors import SchedulerError
from scheduler.framework.events import ClusterEvent
from scheduler.framework.queued import QueuedPod


class PodListener:
    """Follows pods and nodes, and does nothing: overwrite the methods of interest."""

    def pod_waits(self, pod: Pod) -> None:
        """A pod of ours has no node, in a new version. The queue does not have it yet."""

    def pod_came_bound(self, pod: Pod) -> None:
        """A pod was seen for the first time, and has a node already."""

    def pod_leaves(self, pod: Pod) -> None:
        """A pod was deleted, has ended, or is not ours any more. It is still counted on its node."""

    def pod_gone(self, pod: Pod) -> None:
        """Nothing counts a pod any more that was deleted or has ended."""

    def pod_placed(self, pod: Pod) -> None:
        """A pod that was nominated got its node."""

    def attempt_failed(self, queued: QueuedPod, cause: Unplaced | SchedulerError) -> None:
        """A pod is in the queue again after an attempt."""

    def reason_of(self, cause: Unplaced) -> str:
        """Return the reason that the condition PodScheduled gives for a pod without a node; empty for the usual one."""
        return ""

    def node_may_help(self, event: ClusterEvent) -> None:
        """A node has come, or changed so that pods may fit there now."""


class PodListeners:
    """All listeners, in the order in which they are called."""

    def __init__(self) -> None:
        self._listeners: tuple[PodListener, ...] = ()

    def __iter__(self) -> Iterator[PodListener]:
        return iter(self._listeners)

    def add(self, listener: PodListener) -> None:
        """Call a listener from now on, too. Repeating it is harmless."""
        if listener not in self._listeners:
            self._listeners = (*self._listeners, listener)

    def remove(self, listener: PodListener) -> None:
        """Call it no more."""
        self._listeners = tuple([each for each in self._listeners if each is not listener])
