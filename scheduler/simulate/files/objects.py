"""The objects of files, one by one, still as JSON."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from scheduler.api.decoding import Decoder, Unreadable, convert
from scheduler.config.documents import Document
from scheduler.framework.errors import ConfigError

T = TypeVar("T")


@dataclass(slots=True)
class WrittenObject:
    place: str
    kind: str
    api_version: str
    raw: msgspec.Raw

    @property
    def label(self) -> str:
        """Its name where objects are counted: `Service`, `Budget (example.com/v1)`."""
        return self.kind if self.api_version == "v1" else f"{self.kind} ({self.api_version})"

    def content(self) -> dict[str, Any]:
        """Parse the object. Raises Unreadable."""
        return {"kind": self.kind, "apiVersion": self.api_version, **_mapping.decode(self.raw)}


class _Head(msgspec.Struct):
    kind: Any = None
    api_version: Any = msgspec.field(default=None, name="apiVersion")


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


_head: Final[Decoder[_Head]] = Decoder(_Head)
_list: Final[Decoder[_List]] = Decoder(_List)
_mapping: Final[Decoder[dict[str, Any]]] = Decoder(dict[str, Any])

NO_KIND: Final = "not a Kubernetes object: it has no kind"

MAX_RECENT: Final = 200
"""Problems among which one of the same field is looked for."""

_decoders: Final[dict[type[Any], Decoder[Any]]] = {}

_QUICK_HEAD: Final = re.compile(rb'\s*{\s*"apiVersion":\s*"([\w./-]+)",\s*"kind":\s*"(\w+)"')
"""As the API server writes it: looking for it in the whole object takes ten times as long."""


_PATH: Final = re.compile(r"(.*) - at (?:`key` in )?`\$\.?(.*)`")


def reworded(error: Unreadable | RecursionError) -> str:
    """msgspec: Expected `int`, got `str` - at `$.spec.priority`."""
    text = str(Unreadable(error))
    match = _PATH.fullmatch(text)
    message, path = (match[1], match[2]) if match else (text, "")
    message = message[:1].lower() + message[1:].replace("`", "")
    return f"{path}: {message}" if path else message


def report(problems: list[str], place: str, problem: str) -> None:
    """Add a problem that begins with the path of a field, unless one of that field was added a moment ago."""
    path, is_of_any_key, _ = problem.partition(": ")[0].partition("[...]")
    start = f"{place}: {path}" + ("[" if is_of_any_key else ": ")
    if not any(known.startswith(start) for known in problems[-MAX_RECENT:]):
        problems.append(f"{place}: {problem}")


def decoded(raw: msgspec.Raw, type_: type[T]) -> T:
    """Decode an object. Raises Unreadable."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = Decoder(type_)
    try:
        made: T = decoder.decode(raw)
    except Unreadable:
        # The API server treats null as absent. Few objects have one where it matters, so they are only removed now.
        return convert(without_null(_mapping.decode(raw)), type_)
    return made


def without_null(value: Any) -> Any:
    """Return parsed JSON without the members that are null."""
    match value:
        case Mapping():
            return {key: without_null(item) for key, item in value.items() if item is not None}
        case list():
            return [without_null(item) for item in value]
        case _:
            return value


def raw_of(value: Any) -> msgspec.Raw:
    """Return a parsed value as JSON. Raises ValueError for what JSON does not have."""
    if isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.Raw(json.dumps(value, allow_nan=False).encode())
    except ValueError as error:
        raise ValueError("a number that is too large, .inf or .nan: JSON has none of them") from error


def as_written(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield parsed documents as JSON. Raises ConfigError."""
    for document in documents:
        try:
            yield replace(document, value=raw_of(document.value))
        except ValueError as error:
            raise ConfigError([f"{document.place}: {error}"]) from error


def written_objects(documents: Iterable[Document], problems: list[str], notes: list[str]) -> Iterator[WrittenObject]:
    """Yield the objects, and the items of lists; the items of a PodList need not say that they are pods.

    Add errors to `problems`, and files of a directory that are no objects, such as Helm's values, to `notes`.
    """
    for document in as_written(documents):
        if not document.is_named and not _has_kind(document.value):
            notes.append(f"{document.place}: left out: {NO_KIND}")
            continue
        yield from _objects(document.place, document.value, _Head(), problems)


def _has_kind(raw: msgspec.Raw) -> bool:
    try:
        return bool(_head_of(raw).kind)
    except Unreadable:
        return False


def _objects(place: str, raw: msgspec.Raw, common: _Head, problems: list[str]) -> Iterator[WrittenObject]:
    try:
        head = _head_of(raw)
    except Unreadable:
        head = _Head()
    kind = common.kind if head.kind is None else head.kind
    version = common.api_version if head.api_version is None else head.api_version
    if not isinstance(kind, str) or not kind:
        problems.append(f"{place}: {NO_KIND}")
    elif kind.endswith("List"):
        try:
            items = _list.decode(raw).items or ()
        except Unreadable:
            problems.append(f"{place}: items: expected a list")
            return
        item_kind = kind.removesuffix("List")
        inner = _Head(item_kind, version) if item_kind else _Head()
        for index, item in enumerate(items):
            yield from _objects(f"{place}: items[{index}]", item, inner, problems)
    else:
        yield WrittenObject(place, kind, "v1" if version is None else str(version), raw)


def _head_of(raw: msgspec.Raw) -> _Head:
    match = _QUICK_HEAD.match(memoryview(raw))
    return _head.decode(raw) if match is None else _Head(match[2].decode(), match[1].decode())
