"""JSON as Go's encoding/json reads it into variables, since extenders are written against that.

Types are put together as Go declares them, of `STRING`, `INT64` and `Pointer`, `Slice`, `Map` and `Struct`:

    BINDING = Struct("ExtenderBindingResult", "v1.ExtenderBindingResult", Error=STRING)
    decode(body, BINDING)["Error"]

The names of fields are found whatever their case, also nested ones, and unknown ones are left out. No two fields of a
struct differ in case only. Of several members with one name the last counts, whole: Go would merge them, but no encoder
writes such objects. A number for an int64 has neither point nor exponent, bytes that are no UTF-8 are replaced, and
what follows the first value is not looked at. Go's words for a problem are used where they are known: owners of pods
read them.

Rule: encoding/json/decode.go of Go 1.26 (object, array, literalStore) and fold.go.
"""

import json
import re
from abc import ABC, abstractmethod
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from scheduler.api.decoding import QUICK_ERRORS, Decoder

_NULL, _QUOTE, _BRACKET, _BRACE = b'n"[{'
"""The first character of a value of a type."""

_INT: Final = re.compile(rb"-?(0|[1-9][0-9]*)")
_WHITE: Final = b" \t\r\n"
_MAX_DIGITS: Final = 20
_MAX_INT64: Final = 2**63 - 1
_MIN_INT64: Final = -(2**63)
_FOLDED: Final = {0x017F: "S", 0x212A: "K"}
"""The letters outside ASCII that Go takes for one of it: long s, and the sign for kelvin."""


_any_value: Final = Decoder[msgspec.Raw](msgspec.Raw).quick
_members: Final = Decoder[dict[str, msgspec.Raw]](dict[str, msgspec.Raw]).quick
_items: Final = Decoder[list[msgspec.Raw]](list[msgspec.Raw]).quick
_text: Final = Decoder[str](str).quick
_texts: Final = Decoder[list[str]](list[str]).quick
_texts_by_name: Final = Decoder[dict[str, str]](dict[str, str]).quick


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


def decode(body: bytes, kind: "Kind") -> Any:
    """Return what Go would find in a variable of this type, which was empty before. Raises BadJson."""
    return kind.read(msgspec.Raw(first_value(body)), _AT_ROOT)


class Place(NamedTuple):
    """The place of a value, for messages."""

    struct: str
    """The innermost struct."""
    path: str
    """The names of the fields that lead to it from the outermost, with dots."""


_AT_ROOT: Final = Place("", "")


class Kind(ABC):
    """A type of Go."""

    name = ""
    """As Go's messages have it."""

    @abstractmethod
    def empty(self) -> Any:
        """Return the value of a variable that nothing was read into."""

    def read(self, value: msgspec.Raw, place: Place) -> Any:
        """Return what a variable has after this was read into it. Raises BadJson."""
        text = memoryview(value)  # not a copy, which may be long
        return self.empty() if text[0] == _NULL else self.read_text(text, place)

    @abstractmethod
    def read_text(self, text: memoryview, place: Place) -> Any:
        """The same as `read` for anything but null."""

    def wrong(self, shown: str, place: Place) -> BadJson:
        """Say that a value is of another type."""
        where = f"struct field {place.struct}.{place.path} of" if place.struct else "value of"
        return BadJson(f"json: cannot unmarshal {shown} into Go {where} type {self.name}")


class _String(Kind):
    name = "string"

    def empty(self) -> str:
        return ""

    def read_text(self, text: memoryview, place: Place) -> str:
        if text[0] != _QUOTE:
            raise self.wrong(_kind_of(text), place)
        try:
            return _text(text)
        except QUICK_ERRORS as error:  # half a surrogate pair
            raise BadJson(f"invalid JSON: {error}") from error


class _Int64(Kind):
    name = "int64"

    def empty(self) -> int:
        return 0

    def read_text(self, text: memoryview, place: Place) -> int:
        if _INT.fullmatch(text) and len(text) <= _MAX_DIGITS:
            number = int(bytes(text))
            if _MIN_INT64 <= number <= _MAX_INT64:
                return number
        kind = _kind_of(text)
        raise self.wrong(f"number {bytes(text[:40]).decode(errors='replace')}" if kind == "number" else kind, place)


STRING: Final = _String()
INT64: Final = _Int64()


class Pointer(Kind):
    """None, or the value that it points at."""

    def __init__(self, to: Kind) -> None:
        self.to = to
        self.name = f"*{to.name}"

    def empty(self) -> None:
        return None

    def read_text(self, text: memoryview, place: Place) -> Any:
        return self.to.read_text(text, place)


class Slice(Kind):
    """A list; empty if it is nil."""

    def __init__(self, of: Kind, name: str = "") -> None:
        """`name`: where it has one of its own."""
        self.of = of
        self.name = name or f"[]{of.name}"

    def empty(self) -> list[Any]:
        return []

    def read_text(self, text: memoryview, place: Place) -> list[Any]:
        if text[0] != _BRACKET:
            raise self.wrong(_kind_of(text), place)
        if self.of is STRING:
            try:
                return list(_texts(text))
            except QUICK_ERRORS:
                pass
        return [self.of.read(item, place) for item in _items(text)]


class Map(Kind):
    """A dict; empty if it is nil. Its keys are taken as they are written."""

    def __init__(self, of: Kind, name: str = "") -> None:
        """`name`: where it has one of its own."""
        self.of = of
        self.name = name or f"map[string]{of.name}"

    def empty(self) -> dict[str, Any]:
        return {}

    def read_text(self, text: memoryview, place: Place) -> dict[str, Any]:
        if text[0] != _BRACE:
            raise self.wrong(_kind_of(text), place)
        if self.of is STRING:
            try:
                return dict(_texts_by_name(text))
            except QUICK_ERRORS:
                pass
        return {key: self.of.read(member, place) for key, member in _members(text).items()}


class Struct(Kind):
    """A dict with all of the fields that matter to us."""

    def __init__(self, struct: str, name: str, /, **fields: Kind) -> None:
        """`struct`: its name without the package. `fields`: by the names that they have in JSON."""
        self.struct = struct
        self.name = name
        self.fields = fields
        self._by_folded_name = {field.upper(): field for field in fields}

    def empty(self) -> dict[str, Any]:
        return {name: kind.empty() for name, kind in self.fields.items()}

    def read_text(self, text: memoryview, place: Place) -> dict[str, Any]:
        if text[0] != _BRACE:
            raise self.wrong(_kind_of(text), place)
        found = self.empty()
        for name, member in _members(text).items():
            field = self._field(name)
            if field is not None:
                inside = Place(self.struct, f"{place.path}.{field}" if place.path else field)
                found[field] = self.fields[field].read(member, inside)
        return found

    def _field(self, name: str) -> str | None:
        """Return the field of this name: the same, or one that differs in case only."""
        if name in self.fields:
            return name
        folded = name if name.isascii() else name.translate(_FOLDED)
        return self._by_folded_name.get(folded.upper()) if folded.isascii() else None


def _without_rest(text: bytes, error: Exception) -> bytes:
    """Return the first of several values, if that is the problem."""
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


def _kind_of(text: memoryview) -> str:
    """Go's name of a value of this kind."""
    kinds = {b"{": "object", b"[": "array", b'"': "string", b"t": "bool", b"f": "bool", b"n": "null"}
    return kinds.get(bytes(text[:1]), "number")
