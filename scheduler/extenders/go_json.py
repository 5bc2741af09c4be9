"""JSON read as Go's encoding/json reads it into a struct, since extenders are written against that.

The names of fields are found whatever their case, unknown ones are left out, null changes nothing, a number for an
int64 has neither point nor exponent, bytes that are no UTF-8 are replaced, and what follows the first value is not
looked at. Where we know Go's words for what is wrong, they are used: owners of pods read them.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder

T = TypeVar("T")

_INT: Final = re.compile(rb"-?(0|[1-9][0-9]*)")
_WHITE: Final = b" \t\r\n"
_MAX_DIGITS: Final = 20
_MAX_INT64: Final = 2**63 - 1
_MIN_INT64: Final = -(2**63)

_any_value: Final = Decoder[msgspec.Raw](msgspec.Raw).quick
_any_object: Final = Decoder[dict[str, msgspec.Raw]](dict[str, msgspec.Raw]).quick
_any_list: Final = Decoder[list[msgspec.Raw] | None](list[msgspec.Raw] | None).quick


class BadJson(ValueError):
    """This is not the JSON that it should be; the text says why."""


def first_value(body: bytes) -> bytes:
    """Return the first value of a body, valid and in UTF-8. Raises BadJson."""
    text = body.strip(_WHITE)
    if not text:
        raise BadJson("EOF")
    try:
        _any_value(text)
        if not text.isascii():
            text.decode()
    except UnicodeDecodeError:
        return first_value(text.decode(errors="replace").encode())
    except QUICK_ERRORS as error:
        return _without_rest(text, error)
    return text


def fields_of(value: bytes | msgspec.Raw, kind: str) -> Mapping[str, msgspec.Raw]:
    """Return the members of an object by their names in small letters; nothing for null. Raises BadJson.

    `kind`: what Go calls it, for the message.
    """
    if bytes(value) == b"null":
        return {}
    try:
        members = _any_object(value)
    except QUICK_ERRORS as error:
        raise BadJson(f"json: cannot unmarshal {_kind_of(bytes(value))} into Go value of type {kind}") from error
    return {name.lower(): member for name, member in members.items()}


def items_of(value: bytes, kind: str) -> list[msgspec.Raw]:
    """Return the items of a list; none for null. Raises BadJson."""
    try:
        found = _any_list(value)
    except QUICK_ERRORS as error:
        raise BadJson(f"json: cannot unmarshal {_kind_of(value)} into Go value of type {kind}") from error
    return found or []


def read(value: msgspec.Raw | None, kind: Any, missing: T, place: str) -> T:
    """Return a value as a `kind`, a type for msgspec; `missing` if there is none. Raises BadJson.

    `place`: field and type as Go names them, `Result.Names of type []string`.
    """
    if value is None:
        return missing
    try:
        found = Decoder[T | None](kind | None).quick(value)
    except QUICK_ERRORS as error:
        wrong, place = _wrong_part(bytes(value), place)
        raise BadJson(f"json: cannot unmarshal {_kind_of(wrong)} into Go struct field {place}") from error
    return missing if found is None else found


def _wrong_part(value: bytes, place: str) -> tuple[bytes, str]:
    """Return what is of the wrong type: an item, where the value itself is right."""
    is_list, is_map = "[]string" in place, "map[string]string" in place
    items: list[msgspec.Raw] = []
    if is_list and value[:1] == b"[":
        items = _any_list(value) or []
    elif is_map and value[:1] == b"{":
        items = list(_any_object(value).values())
    wrong = next((bytes(item) for item in items if bytes(item)[:1] not in (b'"', b"n")), None)
    return (value, place) if wrong is None else (wrong, f"{place.partition(' ')[0]} of type string")


def int64(value: msgspec.Raw | None, place: str) -> int:
    """Return a whole number; 0 if there is none. Raises BadJson."""
    text = b"null" if value is None else bytes(value)
    if text == b"null":
        return 0
    if _INT.fullmatch(text) and len(text) <= _MAX_DIGITS:
        number = int(text)
        if _MIN_INT64 <= number <= _MAX_INT64:
            return number
    shown = f"{_kind_of(text)} {text[:40].decode(errors='replace')}" if _kind_of(text) == "number" else _kind_of(text)
    raise BadJson(f"json: cannot unmarshal {shown} into Go struct field {place} of type int64")


def _without_rest(text: bytes, error: Exception) -> bytes:
    """Return the first of several values, if that is what is wrong."""
    try:
        decoded = text.decode(errors="replace")
        _, end = json.JSONDecoder(parse_constant=_no_constant).raw_decode(decoded)
        found = decoded[:end].encode()
        _any_value(found)
    except QUICK_ERRORS:
        raise BadJson(_go_words(text, error)) from error
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _go_words(text: bytes, error: Exception) -> str:
    if "truncated" in str(error):
        return "unexpected EOF"
    first = text[:1].decode("latin-1")
    if first not in '{["-0123456789tfn':
        return f"invalid character {first!r} looking for beginning of value"
    return "nested too deeply" if isinstance(error, RecursionError) else f"invalid JSON: {error}"


def _kind_of(text: bytes) -> str:
    """What Go calls a value of this kind."""
    kinds = {b"{": "object", b"[": "array", b'"': "string", b"t": "bool", b"f": "bool", b"n": "null"}
    return kinds.get(text[:1], "number")
