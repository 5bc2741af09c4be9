"""What the watch reports of resources other than pods and nodes: into the store, then to the queue.

The store comes first: a hint or an attempt that the event causes must see the change.
Rule: pkg/scheduler/eventhandlers.go at v1.36.3 (buildEvtResHandler). One difference: an object that was deleted and
created again between two lists is a deletion and an addition here, and an update there.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scheduler.framework.events import Action, ClusterEvent
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.runtime.metrics import Metrics
from scheduler.state.objects import ObjectStore


class ObjectEventHandlers:
    """Implements scheduler.kube.intake.ObjectHandlers. Synchronous; may be called twice for one change."""

    def __init__(self, store: ObjectStore, queue: SchedulingQueue, resources: Iterable[str], metrics: Metrics) -> None:
        self._store = store
        self._queue = queue
        self._handling = metrics.event_handling_duration
        self._events = {resource: _ResourceEvents.of(resource) for resource in resources}
        store.watch(self._events)

    def object_changed(self, resource: str, new: Any) -> None:
        """An object was added, or has a new version."""
        events = self._events[resource]
        known = self._store.known(resource).get(new.metadata.uid)
        if known is not None and _is_same_version(known, new):
            return
        started = time.perf_counter()
        old = self._store.set(resource, new)
        if old is new:
            return  # a late report of a deleted object; another one of its name was created since
        if old is not None and old.metadata.uid == new.metadata.uid:
            self._queue.move_all(events.update, old, new)
            self._observe(events.update, started)
            return
        if old is not None:
            self._queue.move_all(events.delete, old, None)
        self._queue.move_all(events.add, None, new)
        self._observe(events.add, started)

    def object_deleted(self, resource: str, gone: Any) -> None:
        """An object is gone."""
        started = time.perf_counter()
        old = self._store.remove(resource, gone.metadata.uid)
        if old is not None:
            event = self._events[resource].delete
            self._queue.move_all(event, old, None)
            self._observe(event, started)

    def known_objects(self, resource: str) -> Mapping[str, Any]:
        """UID → newest version seen."""
        return self._store.known(resource)

    def _observe(self, event: ClusterEvent, started: float) -> None:
        self._handling.labels(event.label).observe(time.perf_counter() - started)


class _ResourceEvents(NamedTuple):
    add: ClusterEvent
    update: ClusterEvent
    delete: ClusterEvent

    @classmethod
    def of(cls, resource: str) -> "_ResourceEvents":
        actions = (Action.ADD, Action.UPDATE_OTHER, Action.DELETE)
        return cls(*(ClusterEvent(resource, action) for action in actions))


def _is_same_version(a: Any, b: Any) -> bool:
    version: str = a.metadata.resource_version
    return a is b or (bool(version) and version == b.metadata.resource_version)
