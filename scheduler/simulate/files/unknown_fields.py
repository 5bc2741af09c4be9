"""Unknown fields, which the API server would drop, and fields of a wrong type, for which it would refuse the object.

The table `known_fields` has the fields that there are, a kind a line:

    Pod v1 apiVersion kind metadata:ObjectMeta spec:PodSpec status:PodStatus

`a:B` is a field with an object of kind B, `a:[]B` one with a list of them, `a:{}B` one with a mapping to them; so are
`a:string`, `a:integer` and `a:boolean`. A kind that is no object of its own has `-` for its version.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder
from scheduler.api.wording.near_names import near_names
from scheduler.files.generated import table
from scheduler.simulate.files.objects import WrittenObject

SCALARS: Final[Mapping[str, type[Any]]] = {"string": str, "integer": int, "boolean": bool}

MAX_REPORTED: Final = 20
"""Unknown fields of one object that are reported."""


@cache
def known_fields() -> dict[str, tuple[str | None, dict[str, str]]]:
    """Return kind → its version, and field → what it holds."""
    kinds = {}
    for kind, (version, *fields) in table("known_fields").items():
        holds = {key: held for key, _, held in (field.partition(":") for field in fields)}
        kinds[kind] = None if version == "-" else version, holds
    return kinds


def unknown_fields(obj: WrittenObject) -> list[str]:
    """Return a line for each field that objects of this kind do not have, or not of this type. Raises Unreadable."""
    if known_fields().get(obj.kind, (None, {}))[0] != obj.api_version:
        return []
    try:
        _decoder(obj.kind).quick(obj.raw)  # it takes a few microseconds
    except QUICK_ERRORS:
        found = list(_unknown(obj.content(), obj.kind, ""))
        more = [f"and {len(found) - MAX_REPORTED} more such fields"] if len(found) > MAX_REPORTED else []
        return found[:MAX_REPORTED] + more
    return []


def _unknown(value: Any, kind: str, path: str) -> Iterator[str]:
    if kind in SCALARS:
        if value is not None and type(value) is not SCALARS[kind]:
            yield f"{path}: expected {SCALARS[kind].__name__}, got {type(value).__name__}"
        return
    if not isinstance(value, Mapping):
        return  # of another type, which its decoder reports
    fields = known_fields()[kind][1]
    for key, inner in value.items():
        at = f"{path}.{key}" if path else f"{key}"
        if key not in fields:
            yield f"{at}: unknown field{_hint(f'{key}', fields)}"
        elif fields[key]:
            below = fields[key].lstrip("[]{}")
            for place, each in _held(fields[key], inner):
                yield from _unknown(each, below, f"{at}{place}")


def _hint(key: str, fields: Iterable[str]) -> str:
    if key.startswith("$"):
        return ": a directive, which only a patch may have"
    near = near_names(key, fields)
    return f'; did you mean "{near[0]}"?' if near else ""


def _held(holds: str, value: Any) -> Iterator[tuple[str, Any]]:
    if holds.startswith("[]"):
        yield from ((f"[{index}]", each) for index, each in enumerate(value if isinstance(value, list) else ()))
    elif holds.startswith("{}"):
        yield from ((f"[{name}]", each) for name, each in (value if isinstance(value, Mapping) else {}).items())
    else:
        yield "", value


@cache
def _decoder(kind: str) -> Decoder[Any]:
    return Decoder(_struct(kind))


_HOLDERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "[]": lambda struct: list.__class_getitem__(struct),
    "{}": lambda struct: dict.__class_getitem__((str, struct)),
}


@cache
def _struct(kind: str) -> Any:
    """A struct with all fields of a kind, and no others."""
    fields, names = [], {}
    for index, (key, holds) in enumerate(known_fields()[kind][1].items()):
        type_ = Any
        if holds:
            below = holds.lstrip("[]{}")
            inner = SCALARS.get(below) or _struct(below)
            if holds != below:
                inner |= None
            type_ = _HOLDERS.get(holds[:2], lambda struct: struct)(inner) | None
        fields.append((f"f{index}", type_, None))
        names[f"f{index}"] = key
    return msgspec.defstruct(kind, fields, rename=names, forbid_unknown_fields=True, gc=False)
