"""Decodes the objects of one resource, from the lines of a watch and the pages of a list.

An object that cannot be read costs that object: it is counted, logged and reported once per version, and the rest of
its page is read.
"""

import logging
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from scheduler.api.objects import Wire
from scheduler.api.unstructured import unstructured_hook
from scheduler.api.versions import is_newer
from scheduler.runtime.metrics import Metrics

log = logging.getLogger(__name__)


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


class WatchEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: T


class AnyWatchEvent(msgspec.Struct, gc=False):
    """The same about anything: not even whether it is an object is known."""

    type: str
    object: Any = None


class Version(Wire, frozen=True):
    """What identifies a version of an object: everything else may be unreadable."""

    uid: str
    resource_version: str


class _Address(Wire, frozen=True):
    metadata: Version


_any_event = msgspec.json.Decoder(AnyWatchEvent)


class ObjectDecoder(Generic[T]):
    """Decodes the objects of one resource."""

    def __init__(
        self,
        resource: str,
        type_: type[T],
        check: Callable[[T], object],
        unreadable: Callable[[dict[str, Any], str], None],
        metrics: Metrics,
    ) -> None:
        """`check` raises ValueError if an object cannot be used; `unreadable` must not raise."""
        self.check = check
        self._resource = resource
        self._type = type_
        self._page: msgspec.json.Decoder[Page[T]] = msgspec.json.Decoder(
            Page[type_],  # type: ignore[valid-type]
            dec_hook=unstructured_hook,
        )
        self._event: msgspec.json.Decoder[WatchEvent[T]] = msgspec.json.Decoder(
            WatchEvent[type_],  # type: ignore[valid-type]
            dec_hook=unstructured_hook,
        )
        self._raw_page = msgspec.json.Decoder(Page[msgspec.Raw])  # type: ignore[type-var]
        self.event = self._event.decode
        """Decodes a line of a watch. Raises ValueError: see `any_event`."""
        self._unreadable = unreadable
        self._metrics = metrics
        self._reported: dict[str, str] = {}
        """UID → the unreadable version that was reported."""

    def any_event(self, line: bytes | bytearray) -> AnyWatchEvent | None:
        """Decode a line of a watch whose object may be anything; None if the line is no event at all."""
        try:
            return _any_event.decode(line)
        except ValueError:
            return None

    def version_of(self, raw: Any) -> Version | None:
        """Return what identifies the version of an object; None, with a report, if there is nothing that does."""
        try:
            return msgspec.convert(raw, _Address).metadata
        except msgspec.ValidationError as error:
            self._count_unreadable("", str(error))
            return None

    def read(self, raw: Any) -> T | None:
        """Convert an object that has a version; None, with a report, if it cannot be read."""
        try:
            found = msgspec.convert(raw, self._type, dec_hook=unstructured_hook)
            self.check(found)
        except ValueError as error:  # msgspec's errors are ValueErrors
            self._report(raw["metadata"], str(error))
            return None
        return found

    def page(self, body: bytes, known: Callable[[str], T | None]) -> Page[T]:
        """Decode a page. Raises msgspec.DecodeError.

        An object that cannot be read is replaced by the version that is known by its UID, or left out.
        """
        try:
            page = self._page.decode(body)
            for item in page.items:
                self.check(item)
        except ValueError:  # rare, so start over, object by object
            raw_page = self._raw_page.decode(body)
            found = (self.read(msgspec.json.decode(raw)) or known(_uid_of(raw)) for raw in raw_page.items)
            page = Page(raw_page.metadata, [item for item in found if item is not None])
        return page

    def forget(self, uid: str) -> None:
        """Forget what was reported of an object that is gone."""
        self._reported.pop(uid, None)

    def _report(self, metadata: dict[str, Any], problem: str) -> None:
        """Report an unreadable object, once per version, ignoring late older ones."""
        uid, version = metadata["uid"], metadata["resourceVersion"]
        if not is_newer(version, self._reported.get(uid, "")):
            return
        self._reported[uid] = version
        name = "/".join(str(metadata[key]) for key in ("namespace", "name") if metadata.get(key))
        self._count_unreadable(name, problem)
        self._unreadable(metadata, problem)

    def _count_unreadable(self, name: str, problem: str) -> None:
        self._metrics.watch_errors.labels(self._resource, "unreadable").inc()
        log.warning("An object cannot be read", extra={"resource": self._resource, "object": name, "err": problem})


def _uid_of(raw: msgspec.Raw) -> str:
    return msgspec.json.decode(raw, type=_Address).metadata.uid
