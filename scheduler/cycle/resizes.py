"""Deferred resizes of running pods: others are evicted for them if need be, and the kubelet does the rest.

    resize deferred ─► queue ─► attempt ─► does not fit: others of the node are evicted ─► queue
       not any more ─► out of it  └─► fits: refused, as the kubelet has yet to act ─► queue

With the feature gate InPlacePodVerticalScalingSchedulerPreemption. Rule: pkg/scheduler/eventhandlers.go and
schedule_one.go at v1.37.2.
"""

from collections.abc import Container, Mapping
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.resize import Resize, is_deferred, resize_of
from scheduler.api.read_only import NOTHING
from scheduler.framework.events import TARGET_POD, Action, ClusterEvent
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.changes import pod_changes

SCALED: Final = Action.UPDATE_POD_SCALE_UP | Action.UPDATE_POD_SCALE_DOWN


class Resizes:
    """The resizes that wait: none, as they are not watched."""

    are_watched = False
    waiting: Mapping[str, Pod] = NOTHING
    """UID of a pod → its resize: a live view."""

    def changed(self, pod: Pod) -> None:
        """Note the newest version of a pod with a node."""

    def gone(self, uid: str) -> None:
        """Forget a pod."""


NO_RESIZES: Final = Resizes()


class QueuedResizes(Resizes):
    """Keeps pods with deferred resizes in the queue."""

    are_watched = True

    def __init__(self, queue: SchedulingQueue, profiles: Container[str]) -> None:
        """`profiles`: names, may change."""
        self._queue = queue
        self._profiles = profiles
        self.waiting: dict[str, Resize] = {}

    def changed(self, pod: Pod) -> None:
        uid, before = pod.uid, self.waiting.get(pod.uid)
        if pod.spec.scheduler_name not in self._profiles or not is_deferred(pod):
            if before is not None:
                del self.waiting[uid]
                self._queue.delete(uid)
            return
        resize = self.waiting[uid] = resize_of(pod)
        self._queue.update(before, resize)
        for event in () if before is None else pod_changes(before.running, pod):
            if event.action & SCALED:
                self._queue.wake(uid, ClusterEvent(TARGET_POD, event.action).label)

    def gone(self, uid: str) -> None:
        self.waiting.pop(uid, None)
