"""Event handlers for resources other than pods and nodes: they update the store, then the queue.

The store comes first: a queueing hint or an attempt must see the change.
Rule: pkg/scheduler/eventhandlers.go at v1.36.3 (buildEvtResHandler). One difference: an object that was deleted and
created again between two lists is a deletion and an addition here, and an update in kube-scheduler.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from scheduler.framework.events import Action, ClusterEvent
from scheduler.process.metrics import Metrics
from scheduler.queue.scheduling_queue import SchedulingQueue
from scheduler.state.listeners import ListenerFailed
from scheduler.state.objects import ObjectStore


class ObjectEventHandlers:
    """Implements scheduler.kube.informers.intake.ObjectHandlers. Synchronous; may be called twice for one change.

    A listener that raises stops neither other listeners nor the queue: ListenerFailed is raised at the end.
    """

    def __init__(
        self,
        store: ObjectStore,
        queue: SchedulingQueue,
        resources: Iterable[str],
        mend_queue: Callable[[], None],
        metrics: Metrics,
    ) -> None:
        """`mend_queue` repairs the queue after a fault."""
        self._store = store
        self._queue = queue
        self._mend_queue = mend_queue
        self._handling = metrics.event_handling_duration
        self._events: dict[str, _ResourceEvents] = {}
        self.watch(resources)

    def watch(self, resources: Iterable[str]) -> None:
        for resource in resources:
            self._events[resource] = _ResourceEvents.of(resource)
        self._store.watch(self._events)

    def unwatch(self, resource: str) -> None:
        self._events.pop(resource, None)
        self._store.unwatch(resource)

    def object_changed(self, resource: str, new: Any) -> None:
        """An object was added, or has a new version. Raises ListenerFailed."""
        known = self._store.known(resource).get(new.metadata.uid)
        if known is None or not _is_same_version(known, new):
            self._set(resource, new)

    def object_repaired(self, resource: str, new: Any) -> None:
        """Handle an object again after a handler failed for it, perhaps half way. Raises ListenerFailed."""
        if self._store.known(resource).get(new.metadata.uid) is not new:
            self._set(resource, new)
        if not self._store.is_known_to_all(resource, new.metadata.uid):
            raise ListenerFailed(f"a listener to {resource} does not know an object")

    def _set(self, resource: str, new: Any) -> None:
        events, failures = self._events[resource], self._store.listener_failures
        started = time.perf_counter()
        old = self._store.set(resource, new)
        if old is new:
            return  # a late report of a deleted object; another one of its name was created since
        if old is not None and old.metadata.uid == new.metadata.uid:
            self._queue.move_all(events.update, old, new)
            self._observe(events.update, started)
        else:
            if old is not None:
                self._queue.move_all(events.delete, old, None)
            self._queue.move_all(events.add, None, new)
            self._observe(events.add, started)
        self._check_listeners(resource, failures)

    def object_deleted(self, resource: str, gone: Any) -> None:
        """An object was deleted. Raises ListenerFailed."""
        started, failures = time.perf_counter(), self._store.listener_failures
        old = self._store.remove(resource, gone.metadata.uid)
        if old is not None:
            event = self._events[resource].delete
            self._queue.move_all(event, old, None)
            self._observe(event, started)
        self._check_listeners(resource, failures)

    def mend(self, resource: str) -> None:
        """Repair the store after a handler failed half way. Raises ListenerFailed."""
        self._store.mend(resource)
        self._mend_queue()

    def known_objects(self, resource: str) -> Mapping[str, Any]:
        """UID → newest version seen."""
        return self._store.known(resource)

    def _check_listeners(self, resource: str, failures: int) -> None:
        if self._store.listener_failures != failures:
            raise ListenerFailed(f"a listener to {resource} failed")

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
