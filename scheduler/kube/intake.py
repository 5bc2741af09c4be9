"""Takes in all that is learned about the cluster, from the watch and from lists.

Both sources report the same objects, one of them always a little late, so versions decide: what is not newer than what
we have is dropped. Versions of one resource compare as numbers (KEP-5504).
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Generic, Protocol

from prometheus_client import Counter

from scheduler.api.decoding import QUICK_ERRORS
from scheduler.api.objects import Node, ObjectMeta
from scheduler.api.pod import Pod
from scheduler.api.requests import allocatable_of
from scheduler.api.unstructured import Unstructured
from scheduler.api.versions import is_newer
from scheduler.framework import resources
from scheduler.framework.resources import ApiResource, struct_of
from scheduler.kube.object_decoder import ObjectDecoder, Page, T
from scheduler.runtime.metrics import Metrics

log = logging.getLogger(__name__)

PODS: Final = resources.PODS.name
NODES: Final = resources.NODES.name

POD_FIELD_SELECTOR: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""A terminated pod holds no resources. For the watch it is DELETED when it terminates."""

DELETED: Final = "DELETED"
CHANGES: Final = ("ADDED", "MODIFIED", DELETED)
"""Types of watch events about objects; others are BOOKMARK and ERROR."""


class ClusterHandlers(Protocol):
    """The scheduler's reactions to changes. Synchronous and quick; called on the event loop.

    Order holds per UID, not between objects: a pod may come before its node, and a new node before the deletion of
    the old one of that name: compare UIDs.
    """

    def pod_changed(self, pod: Pod) -> None: ...
    def pod_deleted(self, pod: Pod) -> None:
        """A known pod is gone or has terminated."""

    def node_changed(self, node: Node) -> None: ...
    def node_deleted(self, node: Node) -> None: ...

    def pod_unreadable(self, identity: ObjectMeta, problem: str) -> None:
        """A pod cannot be read; the version we know stays. Called once per version.

        `identity`: its UID, version and name.
        """

    def known_pods(self) -> Mapping[str, Pod]:
        """UID → the newest version taken in. A live view: called for every event."""

    def known_nodes(self) -> Mapping[str, Node]:
        """UID → the newest version taken in."""


class ObjectHandlers(Protocol):
    """The same for all other resources, named as in events: `storage.k8s.io/StorageClass`."""

    def object_changed(self, resource: str, new: Any) -> None: ...
    def object_deleted(self, resource: str, gone: Any) -> None:
        """A known object is gone."""

    def known_objects(self, resource: str) -> Mapping[str, Any]:
        """UID → the newest version taken in. A live view."""


class Intake(Generic[T]):
    """Takes in the objects of one resource."""

    def __init__(
        self,
        resource: ApiResource,
        type_: type[T],
        check: Callable[[T], object],
        known: Callable[[], Mapping[str, T]],
        changed: Callable[[T], None],
        deleted: Callable[[T], None],
        unreadable: Callable[[ObjectMeta, str], None],
        metrics: Metrics,
    ) -> None:
        self.api = resource
        self.resource = resource.name
        self._decoder: ObjectDecoder[T] = ObjectDecoder(resource.name, type_, check, self._call_unreadable, metrics)
        self._known = known
        self._changed = changed
        self._deleted = deleted
        self._unreadable = unreadable
        self._metrics = metrics
        self._event_counts: dict[str, Counter] = {}
        self._compared_at = ""
        """Version of the last compared list: what it lacked is gone, whatever the late watch still reports."""
        self._gone: dict[str, str] | None = None
        """UID → the version of a deletion seen by the watch; kept only while a list is compared."""
        self.failed: Callable[[str], None] = lambda _: None
        """Called with the resource when a change was lost: only a comparison finds it again. Set by `Relister`."""

    def from_line(self, line: bytes | bytearray) -> str | None:
        """Take in one line of a watch, as sent by the API server. Never raises.

        Returns the version of its object, empty if unknown; None if the line is not about an object.
        """
        try:
            event = self._decoder.event(line)
        except QUICK_ERRORS:  # rare, so start over, expecting less
            return self._from_odd_line(line)
        type_, found = event.type, event.object
        if type_ not in CHANGES:
            return None
        uid: str = found.metadata.uid
        version: str = found.metadata.resource_version
        if not (uid and version):
            return self._from_odd_line(line)
        if type_ == DELETED:
            self._count(type_)
            self._delete(uid, version)
        elif self._is_new(uid, version):
            try:
                self._decoder.check(found)
            except ValueError as error:
                self._count(type_)
                self._decoder.report(found.metadata, error)
                return version
            self._count(type_)
            self._call(self._changed, found)
        else:
            self._count(type_)
        return version

    def _from_odd_line(self, line: bytes | bytearray) -> str | None:
        event = self._decoder.odd_event(line)
        if event is None or event.type not in CHANGES:
            return None
        self._count(event.type)
        identity = self._decoder.identity_of(event.object)
        if identity is None:
            return ""
        uid, version = identity.uid, identity.resource_version
        if event.type == DELETED:
            self._delete(uid, version)
        elif self._is_new(uid, version):
            found = self._decoder.read(event.object, identity)
            if found is not None:
                self._call(self._changed, found)
        return version

    def _is_new(self, uid: str, version: str) -> bool:
        known = self._known().get(uid)
        return is_newer(version, self._compared_at if known is None else known.metadata.resource_version)

    def _delete(self, uid: str, version: str) -> None:
        """Take in a deletion. Handlers get the version that we know; unknown objects are skipped."""
        if self._gone is not None:
            self._gone[uid] = version
        self._decoder.forget(uid)
        known = self._known().get(uid)
        if known is not None and not is_newer(known.metadata.resource_version, version):
            self._call(self._deleted, known)

    def _count(self, type_: str) -> None:
        count = self._event_counts.get(type_)
        if count is None:  # a look-up by labels costs more than decoding the event
            count = self._event_counts[type_] = self._metrics.watch_events.labels(self.resource, type_)
        count.inc()

    def start_listing(self) -> None:
        """Remember deletions from now on: the list under way may still contain those objects."""
        self._gone = {}

    def end_listing(self) -> None:
        self._gone = None

    def compared(self, version: str) -> None:
        """Note that our state is as new as a list of that version."""
        self._compared_at = version

    def read_page(self, body: bytes) -> Page[T]:
        """Decode a page. Raises Unreadable.

        An object that cannot be read is replaced by the version that we know, or left out.
        """
        return self._decoder.page(body, lambda uid: self._known().get(uid))

    def difference(self, listed: T) -> str | None:
        """What a listed object would change: `added`, `updated`, or None if ours is as new."""
        uid, version = listed.metadata.uid, listed.metadata.resource_version
        known = self._known().get(uid)
        if known is not None:
            return "updated" if is_newer(version, known.metadata.resource_version) else None
        gone = self._gone.get(uid) if self._gone else None
        return "added" if gone is None or is_newer(version, gone) else None

    def take(self, listed: T) -> None:
        """Take in a listed object that differs. Never raises."""
        self._call(self._changed, listed)

    def all_known(self) -> list[T]:
        """All objects that we know."""
        return list(self._known().values())

    def missing(self, listed: set[str], version: str) -> list[T]:
        """Objects that we know and a list of that version lacks: deleted, unless newer than the list."""
        return [
            known
            for uid, known in self._known().items()
            if uid not in listed and not is_newer(known.metadata.resource_version, version)
        ]

    def drop(self, known: T) -> None:
        """Take in the absence of a known object. Never raises."""
        self._call(self._deleted, known)

    def _call_unreadable(self, identity: ObjectMeta, problem: str) -> None:
        self._call(lambda identity: self._unreadable(identity, problem), identity)

    def _call(self, handler: Callable[[Any], None], argument: Any) -> None:
        try:
            handler(argument)
        except Exception:  # the boundary: whatever it is, the watch continues
            self._metrics.watch_errors.labels(self.resource, "handler").inc()
            metadata = getattr(argument, "metadata", None)
            fields = {"resource": self.resource, "object": getattr(metadata, "name", "")}
            log.exception("A change was lost: its handler failed", extra=fields)
            self.failed(self.resource)


def pod_intake(handlers: ClusterHandlers, metrics: Metrics) -> Intake[Pod]:
    known_pods = handlers.known_pods

    def check(pod: Pod) -> None:
        """Derive its requests, which the pod keeps: an unreadable quantity must be found here."""
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
        lambda _identity, _problem: None,
        metrics,
    )


def object_intake(
    name: str,
    resource: ApiResource,
    handlers: ObjectHandlers,
    metrics: Metrics,
    parts: Collection[str] | None = None,
) -> Intake[Any]:
    """The intake of any other resource; `name`: its name in events.

    `parts`: what is read of its objects besides their metadata; None for everything.
    """

    def reduce(new: Any) -> None:
        if parts is not None and isinstance(new, Unstructured):
            new.keep_only(parts)

    return Intake(
        resource,
        struct_of(name),
        reduce,
        lambda: handlers.known_objects(name),
        lambda new: handlers.object_changed(name, new),
        lambda gone: handlers.object_deleted(name, gone),
        lambda _identity, _problem: None,
        metrics,
    )
