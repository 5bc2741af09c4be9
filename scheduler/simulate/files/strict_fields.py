"""Fields that an object does not have: the API server would drop them, or refuse the object, as kubectl asks it to.

A decoder that knows all fields looks first, in a few microseconds; where it finds something, the object is walked.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder
from scheduler.api.near_names import near_names
from scheduler.api.undecoded import attribute_of
from scheduler.simulate.files.written import WrittenObject
from scheduler.simulate.files.written_kinds import KINDS, TOP

MAX_TOLD: Final = 20
"""Unknown fields of one object that are told."""


def unknown_fields(obj: WrittenObject) -> list[str]:
    """Return a line for each field that objects of this kind do not have. Raises Unreadable."""
    kind = TOP.get(obj.label)
    if kind is None:
        return []
    try:
        _decoder(kind).quick(obj.raw)
    except QUICK_ERRORS:
        found = list(_unknown(obj.content(), kind, ""))
        more = [f"and {len(found) - MAX_TOLD} more unknown fields"] if len(found) > MAX_TOLD else []
        return found[:MAX_TOLD] + more
    return []


def _unknown(value: Any, kind: str, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        return  # of another type, which is told by who reads it
    fields = _fields(kind)
    for key, inner in value.items():
        at = f"{path}.{key}" if path else f"{key}"
        if key not in fields:
            near = near_names(f"{key}", fields)
            yield f"{at}: unknown field" + (f'; did you mean "{near[0]}"?' if near else "")
            continue
        prefix, below = fields[key]
        if not below:
            continue
        if prefix == "[]":
            for index, each in enumerate(inner if isinstance(inner, list) else ()):
                yield from _unknown(each, below, f"{at}[{index}]")
        elif prefix == "{}":
            for name, each in inner.items() if isinstance(inner, Mapping) else ():
                yield from _unknown(each, below, f"{at}[{name}]")
        else:
            yield from _unknown(inner, below, at)


_HOLDERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "": lambda struct: struct,
    "[]": lambda struct: list.__class_getitem__(struct),
    "{}": lambda struct: dict.__class_getitem__((str, struct)),
}


@functools.cache
def _fields(kind: str) -> dict[str, tuple[str, str]]:
    """Field → how it holds objects, and of which kind; both are empty if it holds none."""
    fields = {}
    for field in KINDS[kind].split():
        key, _, inner = field.partition(":")
        prefix = inner[:2] if inner[:2] in ("[]", "{}") else ""
        fields[key] = prefix, inner.removeprefix(prefix)
    return fields


@functools.cache
def _decoder(kind: str) -> Decoder[Any]:
    return Decoder(_struct(kind))


@functools.cache
def _struct(kind: str) -> Any:
    """A struct with all fields of a kind, and no others."""
    fields = []
    names = {}
    for key, (prefix, inner) in _fields(kind).items():
        type_: Any = Any
        if inner:
            type_ = _HOLDERS[prefix](_struct(inner)) | None
        attribute = attribute_of(key)
        names[attribute] = key
        fields.append((attribute, type_, None))
    return msgspec.defstruct(kind, fields, rename=names, forbid_unknown_fields=True, gc=False)
