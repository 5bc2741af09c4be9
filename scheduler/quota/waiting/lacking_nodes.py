"""The pods that have space in their quota and were refused by nodes; the queue has them as ordinary refused pods.

CapacityScheduling does not register for nodes: the queue would ask about all pods that are pending for quota, too. So
those that it cut off from nodes of other flavors are woken here when a node comes or has other labels, or a quota
changes.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from scheduler.framework.events import NODE, Action, ClusterEvent
from scheduler.framework.queued import QueuedPod
from scheduler.queue.scheduling_queue import SchedulingQueue

RETRIED: Final = "ShareRetry"
"""The event that wakes pods, as metrics name it."""

NEW_LABELS: Final = ClusterEvent(NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
"""May help pods that have space in their share, while there was no node of their flavor."""

MAX_WOKEN: Final = 1_000
"""Pods that are woken at a time: that takes 10 ms."""


class LackingNodes:
    """Wakes them, some at a time."""

    def __init__(self, queue: SchedulingQueue, rank: Callable[[QueuedPod], Any]) -> None:
        self._queue = queue
        self._rank = rank
        self._pods: dict[str, QueuedPod] = {}
        """By UID."""
        self._have_changed = False
        self._woken_next: list[str] = []
        """The UIDs of those that are still to be woken because of a change, the next one last."""
        self._in_flight: set[str] = set()
        """Those of the pods that were being tried when that list was made: they may not have seen what changed."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def add(self, queued: QueuedPod) -> None:
        """A pod was refused by nodes."""
        uid = queued.pod.uid
        self._pods[uid] = queued
        if uid in self._in_flight:
            self._queue.wake(uid, RETRIED)

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def tried(self, uid: str) -> None:
        """An attempt has ended."""
        self._in_flight.discard(uid)

    def nodes_changed(self) -> None:
        """A node has come, or has other labels; or other nodes may count."""
        self._have_changed = True

    def wake_some(self) -> bool:
        """Wake some of them if something has changed; return whether there are more to wake."""
        if self._have_changed and not self._woken_next:
            self._have_changed = False
            in_order = sorted(self._pods.values(), key=self._rank)
            self._woken_next = [queued.pod.uid for queued in reversed(in_order)]
            self._in_flight = {queued.pod.uid for queued in self._queue.in_flight_pods()}
        for uid in self._woken_next[: -MAX_WOKEN - 1 : -1]:
            self._queue.wake(uid, RETRIED)
        del self._woken_next[-MAX_WOKEN:]
        return bool(self._woken_next or self._have_changed)
