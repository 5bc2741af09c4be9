"""Takes in objects of the cluster, from the watch and from lists.

Both sources report the same objects, one of them always a little late, so versions decide: an object that is not newer
than ours is dropped. Versions of one resource compare as numbers (KEP-5504).

    (right) ──a handler raises──► DIRTY ──the same from a list, and it works──► (right)
                                  └─▲ events of the object: only their version is noted

A change whose handler failed may be done in part. So the object is dirty until the next list, which takes it in again
at any version. What the watch reports meanwhile is left to that list as well: a handler that always fails for one
object is called once for each comparison at most.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Generic, NamedTuple, NoReturn, Protocol

import msgspec
from prometheus_client import Counter

from scheduler.api.decoding import QUICK_ERRORS
from scheduler.api.node_images import share_images
from scheduler.api.objects import Node, ObjectMeta
from scheduler.api.pods.pod import Pod, keep_raw_pod
from scheduler.api.pods.requests import allocatable_of
from scheduler.api.unstructured import Unstructured
from scheduler.api.versions import is_newer, newest_of
from scheduler.framework.errors import SchedulerError
from scheduler.framework.nodes import resources
from scheduler.framework.nodes.resources import ApiResource, struct_of
from scheduler.kube.informers.object_decoder import ObjectDecoder, Page, T
from scheduler.process.metrics import Metrics
from scheduler.state.listeners import ListenerFailed

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
    def pod_repaired(self, pod: Pod) -> None:
        """Take in a pod for which one of these failed, whatever of it was done."""

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

    def mend(self) -> None:
        """Put right what a call that failed may have left half done. Called before objects are repaired."""


class ObjectHandlers(Protocol):
    """Handlers for all other resources, named as in events: `storage.k8s.io/StorageClass`."""

    def object_changed(self, resource: str, new: Any) -> None: ...
    def object_repaired(self, resource: str, new: Any) -> None: ...
    def object_deleted(self, resource: str, gone: Any) -> None:
        """A known object is gone."""

    def known_objects(self, resource: str) -> Mapping[str, Any]:
        """UID → the newest version taken in. A live view."""

    def mend(self, resource: str) -> None: ...


class Restored(SchedulerError):
    """The API server has gone back in time, as after a restore of etcd: everything has to be read again."""


class Reactions(NamedTuple, Generic[T]):
    """The scheduler's handlers for the objects of one resource."""

    known: Callable[[], Mapping[str, T]]
    changed: Callable[[T], None]
    repaired: Callable[[T], None]
    deleted: Callable[[T], None]
    mend: Callable[[], None]
    unreadable: Callable[[ObjectMeta, str], None] = lambda _identity, _problem: None


class _Dirty(NamedTuple, Generic[T]):
    object: T
    version: str
    """The newest that was reported, of its deletion maybe."""


def _ignore(_resource: str) -> None:
    """Without a relister there is no one to notify."""


class Intake(Generic[T]):
    """Takes in the objects of one resource."""

    def __init__(
        self,
        resource: ApiResource,
        type_: type[T],
        check: Callable[[T], object],
        reactions: Reactions[T],
        metrics: Metrics,
        failed: Callable[[str], None] = _ignore,
        keep_raw: Callable[[T, msgspec.Raw], None] | None = None,
    ) -> None:
        """`failed` is called with the resource when a change was lost: only a comparison finds it again.

        `keep_raw`: see ObjectDecoder.
        """
        self.api = resource
        self.resource = resource.name
        self._check = check
        self._type = type_
        self._keep_raw = keep_raw
        self._metrics = metrics
        self._decoder = self._made_decoder()
        self._outdated: set[str] = set()
        """UIDs of objects that were decoded in another way than what comes now: see `decode_into`, `keep`."""
        self._react = reactions
        self._known = reactions.known
        self._failed = failed
        self._event_counts: dict[str, Counter] = {}
        self._compared_at = ""
        """Version of the last compared list: what it lacked is gone, whatever the late watch still reports."""
        self._gone: dict[str, str] | None = None
        """UID → the version of a deletion seen by the watch; kept only while a list is compared."""
        self._dirty: dict[str, _Dirty[T]] = {}
        self.expects_list = False
        """Whether nothing may be taken in before a list is, as it would be half of the truth."""
        self._early: dict[str, T] = {}
        """UID → what the watch reports while that list is on its way."""
        self._last_event = ""
        """Version of the last event."""

    def _made_decoder(self) -> ObjectDecoder[T]:
        return ObjectDecoder(
            self.resource, self._type, self._check, self._call_unreadable, self._metrics, self._keep_raw
        )

    def decode_into(self, type_: type[T]) -> None:
        """Decode into another struct from now on. What is known already differs from any list until a list has it."""
        self._type = type_
        self._decode_again()

    def keep(self, keep_raw: Callable[[T, msgspec.Raw], None] | None) -> bool:
        """Keep this of an object's JSON from now on; return whether it is something else, as after `decode_into`."""
        if keep_raw is self._keep_raw:
            return False
        self._keep_raw = keep_raw
        self._decode_again()
        return True

    def _decode_again(self) -> None:
        self._decoder = self._made_decoder()
        self._outdated = set(self._known())

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
        self._last_event = version
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
            self._take_event(uid, found)
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
                self._take_event(uid, found)
        return version

    def _take_event(self, uid: str, found: T) -> None:
        if self.expects_list:
            if self._gone is not None:  # else the list is yet to be asked for, and will have it
                self._early[uid] = found
        elif not (self._dirty and self._is_put_off(uid, found.metadata.resource_version)):
            self._outdated.discard(uid)
            self._call(self._react.changed, found)

    def _is_put_off(self, uid: str, version: str) -> bool:
        """Return whether an object is dirty: then the version is noted that a list must have to put it right."""
        dirty = self._dirty.get(uid)
        if dirty is None:
            return False
        if is_newer(version, dirty.version):
            self._dirty[uid] = _Dirty(dirty.object, version)
        return True

    def _is_new(self, uid: str, version: str) -> bool:
        known = self._known().get(uid)
        return is_newer(version, self._compared_at if known is None else known.metadata.resource_version)

    def _delete(self, uid: str, version: str) -> None:
        """Take in a deletion. Handlers get the version that we know; unknown objects are skipped."""
        if self._gone is not None:
            self._gone[uid] = version
        self._decoder.forget(uid)
        self._early.pop(uid, None)
        self._outdated.discard(uid)
        if self._dirty and self._is_put_off(uid, version):
            return
        known = self._known().get(uid)
        if known is not None and not is_newer(known.metadata.resource_version, version):
            self._call(self._react.deleted, known, version)

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
        self._early.clear()

    def expect_list(self) -> None:
        """Take in nothing that the watch reports until a list has been compared."""
        self.expects_list = True

    def compared(self, version: str) -> None:
        """Note that our state is as new as a list of that version."""
        self._compared_at = version
        self.expects_list = False
        for uid, found in self._early.items():
            if self._is_new(uid, found.metadata.resource_version):
                self._take_event(uid, found)
        self._early.clear()

    @property
    def newest(self) -> str:
        """The newest version that the API server has shown of the resource, or nearly so."""
        return newest_of(self._last_event, self._compared_at)

    def check_age(self, version: str, newest: str) -> None:
        """Raise Restored if a consistent read has a `version` older than the `newest` before it was asked for."""
        if is_newer(newest, version):
            self._report_restore(newest, version)

    def _report_restore(self, seen: str, found: str) -> NoReturn:
        fields = {"resource": self.resource, "seen": seen, "found": found}
        log.critical("The API server has gone back in time: was etcd restored? All is to be learned anew", extra=fields)
        raise Restored(f"{self.resource}: version {seen} was seen, and now the newest is {found}")

    def read_page(self, body: bytes) -> Page[T]:
        """Decode a page. Raises Unreadable.

        An object that cannot be read is replaced by the version that we know, or left out. One that we know already at
        its version stands in the page as we know it, once there may be any.
        """
        return self._decoder.page(body, self._known().get, self._unchanged if self._compared_at else None)

    def _unchanged(self, uid: str, version: str) -> T | None:
        """Return the object that a list has at this version, if a list has nothing more to say of it."""
        known = self._known().get(uid)
        if known is None or known.metadata.resource_version != version:
            return None
        return None if uid in self._outdated or uid in self._dirty else known

    def difference(self, listed: T, list_version: str) -> str | None:
        """The change that an object in a list would make: `added`, `updated`, `failed` if it is dirty, or None: ours
        is as new.

        Raises Restored if the list should have the version that we know, and has an older one.
        """
        uid, version = listed.metadata.uid, listed.metadata.resource_version
        known = self._known().get(uid)
        if known is not None and is_newer(known.metadata.resource_version, version):
            if not is_newer(known.metadata.resource_version, list_version):
                self._report_restore(known.metadata.resource_version, version)
            return None
        if self._dirty and uid in self._dirty:
            return None if is_newer(self._dirty[uid].version, version) else "failed"
        if known is not None:
            return "updated" if version != known.metadata.resource_version or uid in self._outdated else None
        gone = self._gone.get(uid) if self._gone else None
        return "added" if gone is None or is_newer(version, gone) else None

    def take(self, listed: T) -> None:
        """Take in a listed object that differs. Never raises."""
        uid = listed.metadata.uid
        if uid in self._dirty or uid in self._outdated:
            self._outdated.discard(uid)
            self._call(self._react.repaired, listed)
        else:
            self._call(self._react.changed, listed)

    @property
    def is_dirty(self) -> bool:
        """Whether a handler has failed for an object, which is not repaired yet."""
        return bool(self._dirty)

    def mend(self) -> None:
        """Put right what handlers may have left half done, before objects are repaired. Raises whatever fails then."""
        self._react.mend()

    def uids(self) -> list[str]:
        """The UIDs of all objects that we know, or may know in part."""
        known = self._known()
        return [*known, *(uid for uid in self._dirty if uid not in known)]

    def name_of(self, uid: str) -> str:
        """The name of one of these; empty if it is none any more."""
        found = self._any_of(uid)
        return found.metadata.name if found is not None else ""

    def is_missing(self, uid: str, version: str) -> bool:
        """Return whether an object is gone that a list of that version lacks: it is known, or dirty, and not newer."""
        dirty, known = self._dirty.get(uid), self._known().get(uid)
        if dirty is not None:
            return not is_newer(dirty.version, version)
        return known is not None and not is_newer(known.metadata.resource_version, version)

    def drop(self, uid: str) -> None:
        """Take in the absence of an object, if it is known or dirty. Never raises."""
        self._outdated.discard(uid)
        found = self._any_of(uid)
        if found is not None:
            self._call(self._react.deleted, found)

    def _any_of(self, uid: str) -> T | None:
        dirty = self._dirty.get(uid)
        return self._known().get(uid) or (None if dirty is None else dirty.object)

    def _call_unreadable(self, identity: ObjectMeta, problem: str) -> None:
        try:
            self._react.unreadable(identity, problem)
        except Exception:  # the boundary: only a report is lost
            self._metrics.watch_errors.labels(self.resource, "handler").inc()
            log.exception("An unreadable object is not reported", extra={"resource": self.resource})

    def _call(self, handler: Callable[[T], None], found: T, version: str = "") -> None:
        """Let a handler react to an object, deleted at `version` maybe; it is dirty exactly if that fails."""
        metadata = found.metadata
        try:
            handler(found)
        except BaseException as error:  # the boundary: whatever a plugin raises, too, the watch continues
            reason = "listener" if isinstance(error, ListenerFailed) else "handler"
            self._metrics.watch_errors.labels(self.resource, reason).inc()
            fields = {"resource": self.resource, "object": metadata.name}
            log.exception("A change was lost, or done in part: its handler failed", extra=fields)
            dirty = self._dirty.get(metadata.uid)
            newest = newest_of(version, metadata.resource_version, dirty.version if dirty is not None else "")
            self._dirty[metadata.uid] = _Dirty(found, newest)
            self._failed(self.resource)
        else:
            if self._dirty:
                self._dirty.pop(metadata.uid, None)


def pod_intake(
    handlers: ClusterHandlers,
    metrics: Metrics,
    failed: Callable[[str], None] = _ignore,
    *,
    raw: bool = False,
) -> Intake[Pod]:
    """The intake of pods. `raw`: keeps them as JSON, too, for plugins that read it."""
    known_pods = handlers.known_pods
    previous: Pod | None = None

    def check(pod: Pod) -> None:
        """Derive its requests, which the pod keeps: an unreadable quantity must be found here."""
        nonlocal previous
        known = known_pods().get(pod.uid)
        if known is not None:
            pod.derive_like(known)
        elif previous is not None:
            pod.share_requests(previous)  # pods of a Deployment come one after the other
        _ = pod.resources
        previous = pod

    reactions = Reactions(
        known_pods,
        handlers.pod_changed,
        handlers.pod_repaired,
        handlers.pod_deleted,
        handlers.mend,
        handlers.pod_unreadable,
    )
    return Intake(resources.PODS, Pod, check, reactions, metrics, failed, keep_raw_pod if raw else None)


def node_intake(
    handlers: ClusterHandlers,
    metrics: Metrics,
    failed: Callable[[str], None] = _ignore,
    keep_raw: Callable[[Node, msgspec.Raw], None] | None = None,
) -> Intake[Node]:
    """The intake of nodes; `keep_raw`: see scheduler.kube.informers.raw_nodes."""
    changed, known_nodes = handlers.node_changed, handlers.known_nodes

    def check(node: Node) -> None:
        allocatable_of(node.status.allocatable)
        share_images(node, known_nodes().get(node.metadata.uid))

    reactions = Reactions(known_nodes, changed, changed, handlers.node_deleted, handlers.mend)
    return Intake(resources.NODES, Node, check, reactions, metrics, failed, keep_raw)


def object_intake(
    name: str,
    resource: ApiResource,
    handlers: ObjectHandlers,
    metrics: Metrics,
    reduce: "Reduction | None" = None,
    failed: Callable[[str], None] = _ignore,
) -> Intake[Any]:
    """The intake of any other resource; `name`: its name in events. `reduce`: what is kept of its objects."""
    reactions: Reactions[Any] = Reactions(
        lambda: handlers.known_objects(name),
        lambda new: handlers.object_changed(name, new),
        lambda new: handlers.object_repaired(name, new),
        lambda gone: handlers.object_deleted(name, gone),
        lambda: handlers.mend(name),
    )
    return Intake(resource, struct_of(name), reduce or Reduction(None), reactions, metrics, failed)


class Reduction:
    """Leaves of an object only its metadata and some parts, for memory; which, may change."""

    def __init__(self, parts: Collection[str] | None) -> None:
        """`parts`: what is read; None for everything."""
        self.parts = parts

    def __call__(self, new: Any) -> None:
        if self.parts is not None and isinstance(new, Unstructured):
            new.keep_only(self.parts)
