"""Decodes the objects of one resource, from the lines of a watch and the pages of a list.

An object that cannot be read costs that object: it is counted, logged and reported once per version, and the rest of
its page is read. An object is still readable if only unused parts are nested too deeply, or not Unicode: see
`scheduler.api.wording.folding`.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder, Unreadable
from scheduler.api.objects import ObjectMeta, Wire
from scheduler.api.unstructured import unstructured_hook
from scheduler.api.versions import is_newer
from scheduler.process.metrics import Metrics

log = logging.getLogger(__name__)

MAX_REPORTED: Final = 10_000
"""Unreadable objects remembered: of most, the deletion is seen."""


class HasMetadata(Protocol):
    @property
    def metadata(self) -> Any: ...


T = TypeVar("T", bound=HasMetadata)


class ListMeta(Wire, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One page of a list."""

    metadata: ListMeta
    items: list[T]


class _WirePage(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """As it comes: `null` is a way to write that there are no items."""

    metadata: ListMeta
    items: list[T] | None


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: T


class OddWatchEvent(msgspec.Struct, gc=False):
    """The same about anything: not even whether it is an object is known."""

    type: str
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Identity(Wire, frozen=True):
    uid: str
    resource_version: str
    name: Any = ""
    namespace: Any = ""


class _Identified(Wire, frozen=True):
    metadata: _Identity


_odd_event: Decoder[OddWatchEvent] = Decoder(OddWatchEvent)
_raw_page: Decoder[Any] = Decoder(_WirePage[msgspec.Raw])  # type: ignore[type-var]
_identified: Decoder[_Identified] = Decoder(_Identified)
_identified_page: Decoder[_WirePage[_Identified]] = Decoder(_WirePage[_Identified])


class ObjectDecoder(Generic[T]):
    """Decodes the objects of one resource."""

    def __init__(
        self,
        resource: str,
        type_: type[T],
        check: Callable[[T], object],
        unreadable: Callable[[ObjectMeta, str], None],
        metrics: Metrics,
        keep_raw: Callable[[T, msgspec.Raw], None] | None = None,
    ) -> None:
        """`check` raises ValueError if an object cannot be used; `unreadable` must not raise.

        `keep_raw` is called with each object and its JSON, where that is needed: it costs a second look at the bytes.
        """
        self.check = check
        self._keep_raw = keep_raw
        self._resource = resource
        self._object: Decoder[T] = Decoder(type_, unstructured_hook)
        self._page: Decoder[_WirePage[T]] = Decoder(_WirePage[type_], unstructured_hook)  # type: ignore[valid-type]
        event: Decoder[WatchEvent[T]] = Decoder(WatchEvent[type_], unstructured_hook)  # type: ignore[valid-type]
        self.event = event.quick if keep_raw is None else self._event_with_raw
        """Decodes a line of a watch. Raises one of QUICK_ERRORS: see `odd_event`."""
        self._quick_event = event.quick
        self._unreadable = unreadable
        self._metrics = metrics
        self._reported: dict[str, str] = {}
        """UID → the unreadable version that was reported."""

    def _event_with_raw(self, line: bytes | bytearray | msgspec.Raw) -> WatchEvent[T]:
        event = self._quick_event(line)
        if self._keep_raw is not None:
            self._keep_raw(event.object, _odd_event.quick(line).object)
        return event

    def odd_event(self, line: bytes | bytearray) -> OddWatchEvent | None:
        """Decode a line of a watch whose object may be anything; None if the line is no event at all."""
        try:
            return _odd_event.decode(line)
        except Unreadable:
            return None

    def identity_of(self, raw: msgspec.Raw) -> ObjectMeta | None:
        """Return what identifies a version of an object: UID, version and name. None, with a report, without any.

        The rest of the object may be unreadable.
        """
        try:
            found = _identified.decode(raw).metadata
        except Unreadable as error:
            self._count_unreadable("", str(error))
            return None
        if not (found.uid and found.resource_version):
            self._count_unreadable("", "an object without UID or resource version")
            return None
        name, namespace = (text if isinstance(text, str) else "" for text in (found.name, found.namespace))
        return ObjectMeta(uid=found.uid, resource_version=found.resource_version, name=name, namespace=namespace)

    def read(self, raw: msgspec.Raw, identity: ObjectMeta) -> T | None:
        """Decode an object; None, with a report, if it cannot be read."""
        try:
            found = self._object.decode(raw)
        except Unreadable as error:
            self.report(identity, error)
            return None
        if self._keep_raw is not None:
            self._keep_raw(found, raw)
        return found if self._is_usable(found) else None

    def page(
        self,
        body: bytes,
        known: Callable[[str], T | None],
        unchanged: Callable[[str, str], T | None] | None = None,
    ) -> Page[T]:
        """Decode a page. Raises Unreadable if that cannot be done object by object either.

        An object that cannot be read is replaced by the version that is known by its UID, or left out.

        `unchanged` returns the object of a UID at this very version, if it is known: it need not be decoded.
        """
        if self._keep_raw is not None:
            return self._odd_page(body, known)
        try:
            if unchanged is not None:
                return self._page_of_changes(body, known, unchanged)
            page = self._page.quick(body)
        except QUICK_ERRORS:  # rare, so start over, object by object
            return self._odd_page(body, known)
        found = [item if self._is_usable(item) else known(item.metadata.uid) for item in page.items or ()]
        return Page(page.metadata, [item for item in found if item is not None])

    def report(self, identity: ObjectMeta, error: ValueError) -> None:
        """Report an unreadable object, once per version, ignoring late older ones."""
        uid, version = identity.uid, identity.resource_version
        if not is_newer(version, self._reported.get(uid, "")):
            return
        self._reported[uid] = version
        if len(self._reported) > MAX_REPORTED:
            del self._reported[next(iter(self._reported))]
        problem = str(Unreadable(error))
        self._count_unreadable("/".join(filter(None, (identity.namespace, identity.name))), problem)
        self._unreadable(identity, problem)

    def forget(self, uid: str) -> None:
        """Forget what was reported of an object that is gone."""
        self._reported.pop(uid, None)

    def _page_of_changes(
        self, body: bytes, known: Callable[[str], T | None], unchanged: Callable[[str, str], T | None]
    ) -> Page[T]:
        """Decode what has changed only: a third of the time, and no second copy of what is known."""
        page = _identified_page.quick(body)
        listed = page.items or []
        found = [unchanged(each.metadata.uid, each.metadata.resource_version) for each in listed]
        if None in found:
            raws = _raw_page.quick(body).items or []
            found = [self._changed(raw, known) if same is None else same for same, raw in zip(found, raws, strict=True)]
        return Page(page.metadata, [item for item in found if item is not None])

    def _changed(self, raw: msgspec.Raw, known: Callable[[str], T | None]) -> T | None:
        identity = self.identity_of(raw)
        return None if identity is None else self.read(raw, identity) or known(identity.uid)

    def _odd_page(self, body: bytes, known: Callable[[str], T | None]) -> Page[T]:
        page = _raw_page.decode(body)
        items = [self._changed(raw, known) for raw in page.items or ()]
        return Page(page.metadata, [item for item in items if item is not None])

    def _is_usable(self, found: T) -> bool:
        try:
            self.check(found)
        except ValueError as error:
            self.report(found.metadata, error)
            return False
        return True

    def _count_unreadable(self, name: str, problem: str) -> None:
        self._metrics.watch_errors.labels(self._resource, "unreadable").inc()
        log.warning("An object cannot be read", extra={"resource": self._resource, "object": name, "err": problem})
