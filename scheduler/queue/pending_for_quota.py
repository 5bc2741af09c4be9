"""The pods that are pending for quota: refused, and not tried again before there is space in their quota.

    refused for quota ──► PENDING FOR QUOTA ──there is space, and it is reserved──► woken: tried like any other pod
                          ▲  │          │
                          │  │          └──a preemption might make space──► (tried)
                          │  └── placed by others, gone, or asks for something else ──► (none)
                          └───────────── refused for quota ──────────────────┘

    refused by nodes ──► LACKS A NODE: an ordinary refused pod, that events wake; it has space in its quota

In the queue they are unschedulable, or gated. Pods of one kind ask for the same amounts of the same quota: if there is
no space for the first, there is none for the others. So it costs nothing that they wait. They are in the order of the
queue, by when they came, however often they were tried; nominated pods go first, since for them there may be space that
is kept from the others.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

from scheduler.framework.queued import QueuedPod
from scheduler.queue.pod_heap import PodHeap
from scheduler.queue.scheduling_queue import SchedulingQueue

MAX_STUCK: Final = 16
"""Pods of a kind that other plugins keep back: after so many the rest is left alone for now."""


K = TypeVar("K", bound=Hashable)


class PendingForQuota(Generic[K]):
    """All such pods of a queue, by kind."""

    def __init__(self, queue: SchedulingQueue) -> None:
        self._queue = queue
        self._pods: dict[K, PodHeap[QueuedPod]] = {}
        """By kind; those that were looked at longest ago first."""
        self._kind_of: dict[str, K] = {}

    def __len__(self) -> int:
        return len(self._kind_of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._kind_of

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for pods in self._pods.values() for queued in pods)

    def rank(self, queued: QueuedPod) -> Any:
        """Return the order of the queue, by when a pod came."""
        return self._queue.sort_key(QueuedPod(queued.pod, queued.created))

    def add(self, queued: QueuedPod, kind: K) -> None:
        """Have a pod wait that was refused, and that the queue has."""
        pods = self._pods.get(kind)
        if pods is None:
            pods = self._pods[kind] = PodHeap[QueuedPod](self._order)
        pods.add(queued)
        self._kind_of[queued.pod.uid] = kind

    def remove(self, uid: str) -> QueuedPod | None:
        """Have a pod wait no longer; return it if it did."""
        kind = self._kind_of.pop(uid, None)
        if kind is None:
            return None
        pods = self._pods[kind]
        queued = pods.remove(uid)
        if not pods:
            del self._pods[kind]
        return queued

    def renewed(self, uid: str) -> None:
        """A pod that waits has another version, of the same kind."""
        self._pods[self._kind_of[uid]].rekey(uid)

    def kinds(self) -> Iterator[K]:
        """Yield the kinds, those that were looked at longest ago first."""
        return iter(self._pods)

    def first(self, kind: K) -> QueuedPod | None:
        """Return the first pod of a kind; None if there is none."""
        pods = self._pods.get(kind)
        return None if pods is None else pods.peek()

    def looked_at(self, kind: K) -> None:
        """Have others go before this kind at the next time."""
        self._pods[kind] = self._pods.pop(kind)

    def wake_first(
        self, kind: K, label: str, reserve: Callable[[QueuedPod], bool], release: Callable[[str], object]
    ) -> QueuedPod | None:
        """Wake the first pod of a kind that no other plugin keeps back; None if there is none, or no space.

        `reserve` reserves what a pod asks for, or returns False; `release` takes it back by the pod's UID.
        """
        stuck, woken = list[QueuedPod](), None
        while len(stuck) < MAX_STUCK and (queued := self.first(kind)) is not None and reserve(queued):
            self.remove(queued.pod.uid)
            if self._queue.wake(queued.pod.uid, label) or not self._queue.is_refused(queued.pod.uid):
                woken = queued
                break
            release(queued.pod.uid)
            stuck.append(queued)
        for each in stuck:
            self.add(each, kind)
        return woken

    def clear(self) -> list[QueuedPod]:
        """Have none wait any longer; return those that did."""
        waiting = list(self)
        self._pods.clear()
        self._kind_of.clear()
        return waiting

    def check_invariants(self) -> None:
        """Each is of one kind, and in the queue. For tests and debugging."""
        assert all(self._pods.values())
        assert {queued.pod.uid for queued in self} == self._kind_of.keys()
        for queued in self:
            assert queued.pod.uid in self._queue, queued.pod

    def _order(self, queued: QueuedPod) -> tuple[bool, Any]:
        return not self._queue.is_nominated(queued.pod.uid), self.rank(queued)
