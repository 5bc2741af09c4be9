"""The queue as the page shows it: for each part how many wait, and the pods that have waited longest, with why.

Reading 20,000 pods takes some milliseconds: other tasks run in between.
"""

from collections.abc import Sequence
from heapq import nsmallest
from operator import attrgetter
from typing import Any, Final

from scheduler.cycle.engine import Engine
from scheduler.framework.queued import QueuedPod
from scheduler.process.time_slice import TimeSlice
from scheduler.serve.page.messages import MAX_MESSAGE, cut, event

MAX_SHOWN: Final = 50
"""Pods of each part."""

PODS_AT_ONCE: Final = 4000
"""Read at once: a millisecond."""

MAX_PLUGINS: Final = 8
IN_FLIGHT: Final = "in flight"

_created = attrgetter("created")


class QueuePicture:
    """The parts of the queue, as in the last messages."""

    def __init__(self, engine: Engine, epoch: float) -> None:
        """`epoch`: when the queue's clock was 0, in seconds since 1970."""
        self._engine = engine
        self._epoch = epoch
        self.messages: dict[str, bytes] = {}
        """By part."""

    async def look(self) -> list[bytes]:
        """Return the parts that changed. The queue may change meanwhile."""
        queue = self._engine.queue
        parts = {**queue.pending_pods(), IN_FLIGHT: queue.in_flight_pods()}
        time_slice = TimeSlice()
        changed = []
        for name, pods in parts.items():
            message = event("queue", await self._part(name, pods, time_slice))
            if self.messages.get(name) != message:
                self.messages[name] = message
                changed.append(message)
        return changed

    async def _part(self, name: str, pods: Sequence[QueuedPod], time_slice: TimeSlice) -> dict[str, Any]:
        oldest: list[QueuedPod] = []
        for first in range(0, len(pods), PODS_AT_ONCE):
            oldest = nsmallest(MAX_SHOWN, (*oldest, *pods[first : first + PODS_AT_ONCE]), key=_created)
            await time_slice.give_way()
        return {"part": name, "count": len(pods), "pods": [self._pod(name, queued) for queued in oldest]}

    def _pod(self, part: str, queued: QueuedPod) -> dict[str, Any]:
        pod = queued.pod
        message: dict[str, Any] = {
            "namespace": cut(pod.namespace),
            "name": cut(pod.name),
            "since": round(self._epoch + queued.created, 1),
            "attempts": queued.attempts,
        }
        if pod.priority:
            message["priority"] = pod.priority
        plugins = [queued.gating_plugin] if queued.gated else sorted(queued.unschedulable_plugins)
        if plugins:
            message["plugins"] = [cut(each) for each in plugins[:MAX_PLUGINS]]
        if part == "backoff":
            message["until"] = round(self._epoch + queued.backoff_expiration, 1)
        record = self._engine.records.latest(pod.uid)
        if record is not None and record.message:
            message["message"] = cut(record.message, MAX_MESSAGE)
        return message
