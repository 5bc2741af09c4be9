"""The queue as the page shows it: for each part how many wait, and the pods that have waited longest, with the reasons.

Groups of pods, where there are any, are one more part.

Reading 20,000 pods takes some milliseconds: other tasks run in between.
"""

from collections.abc import Hashable, Iterable, Sequence
from heapq import nsmallest
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from scheduler.engine.engine import Engine
from scheduler.framework.queued import QueuedPod
from scheduler.process.time_slice import TimeSlice
from scheduler.serve.page.messages import MAX_MESSAGE, cut, event

MAX_SHOWN: Final = 50
"""Pods of each part."""

PODS_AT_ONCE: Final = 4000
"""Read at once: a millisecond."""

GROUPED_AT_ONCE: Final = 500
"""Pods whose groups are looked up at once: less than a millisecond."""

MAX_PLUGINS: Final = 8
IN_FLIGHT: Final = "in flight"
GROUPS: Final = "groups"

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
            changed += self._news(name, await self._part(name, pods, time_slice))
        if self._engine.pod_groups is not None:
            changed += self._news(GROUPS, await self._groups(chain.from_iterable(parts.values()), time_slice))
        return changed

    def _news(self, name: str, document: dict[str, Any]) -> list[bytes]:
        message = event("queue", document)
        if self.messages.get(name) == message:
            return []
        self.messages[name] = message
        return [message]

    async def _groups(self, pods: Iterable[QueuedPod], time_slice: TimeSlice) -> dict[str, Any]:
        """Return the groups whose pods wait, those of the oldest pods first."""
        known = next(iter(self._engine.frameworks.values())).handle.pod_groups  # the same for all
        oldest: dict[Hashable, QueuedPod] = {}
        for number, queued in enumerate(pods):
            key = known.key_of(queued.pod)
            if key is not None and ((found := oldest.get(key)) is None or queued.created < found.created):
                oldest[key] = queued
            if not number % GROUPED_AT_ONCE:
                await time_slice.give_way()
        shown = nsmallest(MAX_SHOWN, oldest.values(), key=_created)
        return {
            "part": GROUPS,
            "count": len(oldest),
            "pods": [self._group(known.name_of(each.pod), each) for each in shown],
        }

    def _group(self, name: str, queued: QueuedPod) -> dict[str, Any]:
        from scheduler.explain.pod_groups import summary_of

        state, text = summary_of(self._engine, queued.pod)
        return {**self._waits(name, queued), "plugins": [state], "message": cut(text, MAX_MESSAGE)}

    def _waits(self, name: str, queued: QueuedPod) -> dict[str, Any]:
        return {
            "namespace": cut(queued.pod.namespace),
            "name": cut(name),
            "since": round(self._epoch + queued.created, 1),
            "attempts": queued.attempts,
        }

    async def _part(self, name: str, pods: Sequence[QueuedPod], time_slice: TimeSlice) -> dict[str, Any]:
        oldest: list[QueuedPod] = []
        for first in range(0, len(pods), PODS_AT_ONCE):
            oldest = nsmallest(MAX_SHOWN, (*oldest, *pods[first : first + PODS_AT_ONCE]), key=_created)
            await time_slice.give_way()
        return {"part": name, "count": len(pods), "pods": [self._pod(name, queued) for queued in oldest]}

    def _pod(self, part: str, queued: QueuedPod) -> dict[str, Any]:
        pod = queued.pod
        message = self._waits(pod.name, queued)
        if pod.priority:
            message["priority"] = pod.priority
        plugins = [queued.gate] if queued.gate else sorted(queued.unschedulable_plugins)
        if plugins:
            message["plugins"] = [cut(each) for each in plugins[:MAX_PLUGINS]]
        if part == "backoff":
            message["until"] = round(self._epoch + queued.entity.backoff_expiration, 1)
        record = self._engine.records.latest(pod.uid)
        if record is not None and record.message:
            message["message"] = cut(record.message, MAX_MESSAGE)
        return message
