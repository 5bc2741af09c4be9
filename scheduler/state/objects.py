"""The newest objects of the resources that plugins watch, except pods and nodes.

Written by the handlers of the watch before any other part learns of a change; read by plugins as `handle.objects`.
A change is made whole, whatever the listeners do: see `listeners.py`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from scheduler.api.versions import is_newer
from scheduler.framework.handle import Listener
from scheduler.runtime.event_stream import EventStream
from scheduler.state.listeners import ListenerFailed, ObjectListener
from scheduler.state.state_events import ObjectRemoved, ObjectSet


class ObjectStore:
    """Implements scheduler.framework.handle.ObjectLister. Resources are named as in events."""

    def __init__(self, stream: EventStream | None = None) -> None:
        self._resources: dict[str, _ResourceObjects] = {}
        self._listeners: defaultdict[str, list[ObjectListener]] = defaultdict(list)
        self.listener_failures = 0
        """How often a listener raised, or was left out because it is broken."""
        self._stream = stream or EventStream()

    def watch(self, resources: Iterable[str]) -> None:
        """Make room for these resources: they may be asked for, though none of their objects has come yet."""
        for resource in resources:
            self._resources.setdefault(resource, _ResourceObjects())

    def unwatch(self, resource: str) -> None:
        """Forget a resource that no plugin names any more, with its objects. No listener is notified."""
        self._resources.pop(resource, None)

    # What plugins read.

    def get(self, resource: str, name: str, namespace: str = "") -> Any | None:
        """Return the object of that name, or None. Raises LookupError if the resource is not watched."""
        objects = self._resources.get(resource) or self._of(resource)  # asked for each member of a group
        return objects.by_name.get(namespace, {}).get(name)

    def list(self, resource: str, namespace: str | None = None) -> Collection[Any]:
        """Return all objects, or those of a namespace: a live view. Raises LookupError if it is not watched."""
        objects = self._of(resource)
        if namespace is None:
            return objects.by_uid.values()
        return objects.by_name.get(namespace, {}).values()

    def version(self, resource: str) -> int:
        """Return a number that grows with each change. Raises LookupError if the resource is not watched."""
        return self._of(resource).version

    def listen(self, resource: str, listener: Listener, reset: Callable[[], None] | None = None) -> None:
        """Call `listener(old, new)` for each object that exists already, and from now on for each change."""
        self.subscribe(resource, listener, reset)

    def subscribe(
        self, resource: str, listener: Listener, reset: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        """As `listen`; the returned function ends it."""
        listening = ObjectListener(resource, listener, reset)
        self._listeners[resource].append(listening)
        if resource in self._resources:
            for existing in tuple(self._resources[resource].by_uid.values()):
                listener(None, existing)
        return partial(self._listeners[resource].remove, listening)

    # What the watch reports.

    def known(self, resource: str) -> Mapping[str, Any]:
        """UID → newest object: a live view."""
        return self._of(resource).by_uid

    def set(self, resource: str, new: Any) -> Any | None:
        """Store an object or its new version; return what it replaces: an older version, or another object of its name.

        That other object was deleted, though its deletion may be reported later, or never. A late report of an object
        that a newer one has replaced is ignored: then `new` itself is returned, and nothing changes.
        """
        objects = self._of(resource)
        metadata = new.metadata
        old: Any = objects.by_name.get(metadata.namespace, {}).get(metadata.name)
        replaced = None if old is None or old.metadata.uid == metadata.uid else old.metadata
        if replaced is not None and is_newer(replaced.resource_version, metadata.resource_version):
            return new
        listeners = self._announce(resource)
        # From here to the listeners nothing is called that could fail.
        if replaced is not None:
            objects.by_uid.pop(replaced.uid, None)
        objects.by_name.setdefault(metadata.namespace, {})[metadata.name] = new
        objects.by_uid[metadata.uid] = new
        objects.version += 1
        if ObjectSet in self._stream.listeners:
            self._stream.publish(ObjectSet(resource, new))
        self._notify(listeners, old, new, objects.by_uid)
        return old

    def remove(self, resource: str, uid: str) -> Any | None:
        """Remove an object and return it; None if it is not there."""
        objects = self._of(resource)
        old = objects.by_uid.get(uid)
        if old is None:
            return None
        namespace, name = old.metadata.namespace, old.metadata.name
        listeners = self._announce(resource)
        del objects.by_uid[uid]
        in_namespace = objects.by_name[namespace]
        del in_namespace[name]
        if not in_namespace:
            del objects.by_name[namespace]
        objects.version += 1
        if ObjectRemoved in self._stream.listeners:
            self._stream.publish(ObjectRemoved(resource, uid))
        self._notify(listeners, old, None, objects.by_uid)
        return old

    @contextmanager
    def what_if(self, items: Iterable[tuple[str, Any]], *, replaces: bool = False) -> Iterator[None]:
        """Have other objects, each with its resource, within a `with` block, in which nothing may await.

        Listeners are called for each, and for its end; no event is published. One of a name that is taken is left out,
        or `replaces` the object of that name.
        """
        stream, self._stream = self._stream, EventStream()
        failures, there = self.listener_failures, list[tuple[str, str, Any]]()
        try:
            for resource, obj in items:
                metadata = obj.metadata
                before = self.get(resource, metadata.name, metadata.namespace)
                if before is None or replaces:
                    there.append((resource, metadata.uid, before))
                    self.set(resource, obj)
            yield
        finally:
            for resource, uid, before in reversed(there):
                if before is None:
                    self.remove(resource, uid)
                else:
                    self.set(resource, before)
            if self.listener_failures != failures:
                for resource in dict.fromkeys(resource for resource, *_ in there):
                    with suppress(ListenerFailed):  # it stays broken, and is put right with the next object
                        self.mend(resource)
            self._stream = stream

    def mend(self, resource: str) -> None:
        """Put right the listeners that are broken or lack objects. Raises ListenerFailed if one stays broken."""
        for listener in self._listeners[resource]:
            listener.mend(self._of(resource).by_uid)

    def is_known_to_all(self, resource: str, uid: str) -> bool:
        """Return whether no listener lacks an object because it raised for it."""
        return not any(listener.leaves_out(uid) for listener in self._listeners[resource])

    def check_invariants(self) -> None:
        """Both indexes hold the same objects, each in its place. For tests."""
        for resource, objects in self._resources.items():
            named = [item for in_namespace in objects.by_name.values() for item in in_namespace.values()]
            assert sorted(map(id, named)) == sorted(map(id, objects.by_uid.values())), resource
            for uid, item in objects.by_uid.items():
                assert item.metadata.uid == uid, resource
                assert objects.by_name[item.metadata.namespace][item.metadata.name] is item, resource

    def _announce(self, resource: str) -> Sequence[ObjectListener]:
        """Note that a change is coming, of which these listeners have to be notified."""
        listeners = self._listeners[resource]
        for listener in listeners:
            listener.behind += 1
        return listeners

    def _notify(
        self, listeners: Sequence[ObjectListener], old: Any | None, new: Any | None, objects: Mapping[str, Any]
    ) -> None:
        for listener in listeners:
            if not listener.notify(old, new, objects):
                self.listener_failures += 1

    def _of(self, resource: str) -> "_ResourceObjects":
        try:
            return self._resources[resource]
        except KeyError:
            raise LookupError(
                f"{resource!r} is not watched: the plugin has to name it in events_to_register or in reads"
            ) from None


class _ResourceObjects:
    """The objects of one resource."""

    __slots__ = ("by_name", "by_uid", "version")

    def __init__(self) -> None:
        self.by_name: dict[str, dict[str, Any]] = {}
        """Namespace, empty for objects without → name → object."""
        self.by_uid: dict[str, Any] = {}
        self.version = 0
