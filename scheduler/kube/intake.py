"""The door through which everything that is learned about the cluster comes in, from the watch and from lists.

Two sources tell about the same objects, one of them always a little late, so versions decide: what is not newer than
what we have is dropped. Versions of one resource compare as numbers (KEP-5504).
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from prometheus_client import Counter

from scheduler.api.objects import Node, Wire
from scheduler.api.pod import Pod
from scheduler.api.requests import allocatable_of
from scheduler.api.unstructured import unstructured_hook
from scheduler.api.versions import is_newer
from scheduler.framework import resources
from scheduler.framework.resources import ApiResource, struct_of
from scheduler.runtime.metrics import Metrics

log = logging.getLogger(__name__)

PODS: Final = resources.PODS.name
NODES: Final = resources.NODES.name

POD_FIELD_SELECTOR: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""A pod that has run to its end holds no resources. To the watch it is DELETED when it does."""

DELETED: Final = "DELETED"
NEWS: Final = ("ADDED", "MODIFIED", DELETED)
"""Types of a watch's events that tell of objects; others are BOOKMARK and ERROR."""


class ClusterHandlers(Protocol):
    """What the scheduler does about changes. Synchronous and quick; called on the event loop.

    Order holds for one uid, not between objects: a pod may come before its node, and a new node before the deletion
    of the old one of its name: compare uids.
    """

    def pod_changed(self, pod: Pod) -> None: ...
    def pod_deleted(self, pod: Pod) -> None:
        """The pod, one of the known ones, is gone or has run to its end."""

    def node_changed(self, node: Node) -> None: ...
    def node_deleted(self, node: Node) -> None: ...

    def pod_unreadable(self, metadata: dict[str, Any], problem: str) -> None:
        """A pod cannot be read; what we know of it stays as it was. Called once for each version."""

    def known_pods(self) -> Mapping[str, Pod]:
        """uid → the newest version that was taken in. A live view: called for each event."""

    def known_nodes(self) -> Mapping[str, Node]:
        """uid → the newest version that was taken in."""


class ObjectHandlers(Protocol):
    """The same for all other resources, which are named as in events: `storage.k8s.io/StorageClass`."""

    def object_changed(self, resource: str, new: Any) -> None: ...
    def object_deleted(self, resource: str, gone: Any) -> None:
        """The object, one of the known ones, is gone."""

    def known_objects(self, resource: str) -> Mapping[str, Any]:
        """uid → the newest version that was taken in. A live view."""


class HasMetadata(Protocol):
    @property
    def metadata(self) -> Any: ...


T = TypeVar("T", bound=HasMetadata)


class ListMeta(Wire, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """A part of a list, as the API server sends it."""

    metadata: ListMeta
    items: list[T]


class Event(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """A line of a watch."""

    type: str
    object: T


class _Version(Wire, frozen=True):
    uid: str
    resource_version: str


class _Address(Wire, frozen=True):
    """As little as is needed to tell which version of which object something is: all else may be unreadable."""

    metadata: _Version


class _AnyEvent(msgspec.Struct, gc=False):
    type: str
    object: Any = None


_any_event = msgspec.json.Decoder(_AnyEvent)


class Intake(Generic[T]):
    """One resource."""

    def __init__(
        self,
        resource: ApiResource,
        type_: type[T],
        check: Callable[[T], object],
        known: Callable[[], Mapping[str, T]],
        changed: Callable[[T], None],
        deleted: Callable[[T], None],
        unreadable: Callable[[dict[str, Any], str], None],
        metrics: Metrics,
    ) -> None:
        self.api = resource
        self.resource = resource.name
        self._type = type_
        self._check = check
        self._page: msgspec.json.Decoder[Page[T]] = msgspec.json.Decoder(
            Page[type_],  # type: ignore[valid-type]
            dec_hook=unstructured_hook,
        )
        self._event: msgspec.json.Decoder[Event[T]] = msgspec.json.Decoder(
            Event[type_],  # type: ignore[valid-type]
            dec_hook=unstructured_hook,
        )
        self._raw_page = msgspec.json.Decoder(Page[msgspec.Raw])  # type: ignore[type-var]
        self._known = known
        self._changed = changed
        self._deleted = deleted
        self._tell_unreadable = unreadable
        self._metrics = metrics
        self._event_counts: dict[str, Counter] = {}
        self._reported: dict[str, str] = {}
        """uid → the unreadable version that was reported."""
        self._compared_at = ""
        """Version of the last list that was compared: what was not in it is gone, though the watch may tell later."""
        self._gone: dict[str, str] | None = None
        """uid → the version with which the watch saw it deleted; kept only while a list is compared."""
        self.failed: Callable[[str], None] = lambda _: None
        """Called with the resource when a change was lost: only a comparison finds it again. Set by `Relister`."""

    def from_line(self, line: bytes | bytearray) -> str | None:
        """Take in one line of a watch as it comes from the API server. Never raises.

        Returns the version of its object, empty if nobody can say; None if it tells of no object.
        """
        try:
            event = self._event.decode(line)
        except ValueError:  # rare, so once more from the start, expecting less
            return self._from_odd_line(line)
        type_, found = event.type, event.object
        if type_ not in NEWS:
            return None
        uid: str = found.metadata.uid
        version: str = found.metadata.resource_version
        if not (uid and version):
            return self._from_odd_line(line)
        if type_ == DELETED:
            self._count(type_)
            self._delete(uid, version)
        elif self._is_news(uid, version):
            try:
                self._check(found)
            except ValueError:
                return self._from_odd_line(line)
            self._count(type_)
            self._call(self._changed, found)
        else:
            self._count(type_)
        return version

    def _from_odd_line(self, line: bytes | bytearray) -> str | None:
        try:
            event = _any_event.decode(line)
        except ValueError:  # not an event at all
            return None
        return self._from_event(event.type, event.object) if event.type in NEWS else None

    def _from_event(self, type_: str, raw: Any) -> str:
        self._count(type_)
        try:
            address = msgspec.convert(raw, _Address).metadata
        except msgspec.ValidationError as error:  # nobody can say of what this is news
            self._count_unreadable("", str(error))
            return ""
        uid, version = address.uid, address.resource_version
        if type_ == DELETED:
            self._delete(uid, version)
        elif self._is_news(uid, version):
            found = self._read(raw)
            if found is not None:
                self._call(self._changed, found)
        return version

    def _is_news(self, uid: str, version: str) -> bool:
        known = self._known().get(uid)
        return is_newer(version, self._compared_at if known is None else known.metadata.resource_version)

    def _delete(self, uid: str, version: str) -> None:
        """Take in a deletion. What we have of the object will do, and what we do not have need not go."""
        if self._gone is not None:
            self._gone[uid] = version
        self._reported.pop(uid, None)
        known = self._known().get(uid)
        if known is not None and not is_newer(known.metadata.resource_version, version):
            self._call(self._deleted, known)

    def _count(self, type_: str) -> None:
        count = self._event_counts.get(type_)
        if count is None:  # looking it up by its labels costs more than to decode the event
            count = self._event_counts[type_] = self._metrics.watch_events.labels(self.resource, type_)
        count.inc()

    def start_listing(self) -> None:
        """Remember deletions from now on: a list that is under way may still contain what they deleted."""
        self._gone = {}

    def end_listing(self) -> None:
        self._gone = None

    def compared(self, version: str) -> None:
        """Remember that what we know is as new as a list of that version."""
        self._compared_at = version

    def read_page(self, body: bytes) -> Page[T]:
        """Decode a part of a list, without the objects that cannot be read. Raises msgspec.DecodeError.

        For an object that cannot be read, what we have of it takes its place, if we have anything.
        """
        try:
            page = self._page.decode(body)
            for item in page.items:
                self._check(item)
        except ValueError:  # rare, so once more from the start, object by object
            raw_page = self._raw_page.decode(body)
            found = (self._read(msgspec.json.decode(raw)) or self._known_for(raw) for raw in raw_page.items)
            page = Page(raw_page.metadata, [item for item in found if item is not None])
        return page

    def difference(self, listed: T) -> str | None:
        """What a listed object would change: `added`, `updated`, or None if we have it as new or newer."""
        uid, version = listed.metadata.uid, listed.metadata.resource_version
        known = self._known().get(uid)
        if known is not None:
            return "updated" if is_newer(version, known.metadata.resource_version) else None
        gone = self._gone.get(uid) if self._gone else None
        return "added" if gone is None or is_newer(version, gone) else None

    def take(self, listed: T) -> None:
        """Take in a listed object that is different. Never raises."""
        self._call(self._changed, listed)

    def all_known(self) -> list[T]:
        """What we have."""
        return list(self._known().values())

    def missing(self, listed: set[str], version: str) -> list[T]:
        """What we have and a list of that version has not: deleted, unless it is newer than the list."""
        return [
            known
            for uid, known in self._known().items()
            if uid not in listed and not is_newer(known.metadata.resource_version, version)
        ]

    def drop(self, known: T) -> None:
        """Take in that an object is gone. Never raises."""
        self._call(self._deleted, known)

    def _read(self, raw: Any) -> T | None:
        try:
            found = msgspec.convert(raw, self._type, dec_hook=unstructured_hook)
            self._check(found)
        except ValueError as error:  # msgspec's errors are ValueErrors
            self._report(raw["metadata"], str(error))
            return None
        return found

    def _known_for(self, raw: msgspec.Raw) -> T | None:
        return self._known().get(msgspec.json.decode(raw, type=_Address).metadata.uid)

    def _report(self, metadata: dict[str, Any], problem: str) -> None:
        """Tell of an unreadable object, once for each version, and not of older ones that come late."""
        uid, version = metadata["uid"], metadata["resourceVersion"]
        if not is_newer(version, self._reported.get(uid, "")):
            return
        self._reported[uid] = version
        name = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
        self._count_unreadable(name, problem)
        self._call(lambda problem: self._tell_unreadable(metadata, problem), problem)

    def _count_unreadable(self, name: str, problem: str) -> None:
        self._metrics.watch_errors.labels(self.resource, "unreadable").inc()
        log.warning("An object cannot be read", extra={"resource": self.resource, "object": name, "err": problem})

    def _call(self, handler: Callable[[Any], None], argument: Any) -> None:
        try:
            handler(argument)
        except Exception:  # the boundary: whatever it is, the watch goes on
            self._metrics.watch_errors.labels(self.resource, "handler").inc()
            metadata = getattr(argument, "metadata", None)
            fields = {"resource": self.resource, "object": getattr(metadata, "name", "")}
            log.exception("A change was lost: its handler failed", extra=fields)
            self.failed(self.resource)


def pod_intake(handlers: ClusterHandlers, metrics: Metrics) -> Intake[Pod]:
    known_pods = handlers.known_pods

    def check(pod: Pod) -> None:
        """Work out what it asks for, which is kept in the pod: an unreadable quantity is to be found at the edge."""
        known = known_pods().get(pod.uid)
        if known is not None:
            pod.derive_like(known)
        _ = pod.resources

    return Intake(
        resources.PODS,
        Pod,
        check,
        handlers.known_pods,
        handlers.pod_changed,
        handlers.pod_deleted,
        handlers.pod_unreadable,
        metrics,
    )


def node_intake(handlers: ClusterHandlers, metrics: Metrics) -> Intake[Node]:
    return Intake(
        resources.NODES,
        Node,
        lambda node: allocatable_of(node.status.allocatable),
        handlers.known_nodes,
        handlers.node_changed,
        handlers.node_deleted,
        lambda _metadata, _problem: None,
        metrics,
    )


def object_intake(name: str, resource: ApiResource, handlers: ObjectHandlers, metrics: Metrics) -> Intake[Any]:
    """The intake of any other resource; `name`: what events call it."""
    return Intake(
        resource,
        struct_of(name),
        lambda _: None,
        lambda: handlers.known_objects(name),
        lambda new: handlers.object_changed(name, new),
        lambda gone: handlers.object_deleted(name, gone),
        lambda _metadata, _problem: None,
        metrics,
    )
