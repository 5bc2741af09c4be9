"""The YAML that kubectl prints, read by its lines: in a third of the time that libyaml takes.

This understands one value a line, nested by indentation, and gives up at everything else: comments, anchors, texts of
several lines, escapes, what is there twice. Then `yaml_reader` reads that object, or the whole text if the object alone
makes no sense, so what is read here is read in the same way there: a property test compares both.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

import msgspec
import yaml

from scheduler.config.yaml_reader import WORDS, plain_scalar, read_yaml
from scheduler.simulate.files.written import raw_of

MAX_INDENT: Final = 100

_LINE: Final = re.compile(
    r"""^(\ *)(-\ )?
    (?:([A-Za-z_][\w./-]{0,200}):(?=\ |$)\ ?)?     # a key
    (?:
        ([A-Za-z0-9_./(<$+^;][ -~]*)               # a plain value: see _ODD for what it must not contain
        | ('(?:[ -&(-~]|'')*' | "[ !#-\[\]-~]*")
        | (\{\}|\[\])
    )?$""",
    re.VERBOSE | re.MULTILINE | re.ASCII,
)
_ODD: Final = re.compile(r":(?: |$)| #| $")
"""What ends a plain value, or makes it something else."""

_TOP: Final = re.compile(r"^items:\n(?=- )", re.MULTILINE)
_AFTER: Final = re.compile(r"\n(?=[^ \n-])")
"""Before what comes after the items of a list: it is not indented."""


class Item(NamedTuple):
    """One item of a list, in the text."""

    start: int
    end: int


class PlainList(NamedTuple):
    """A list as kubectl prints it: `items` at the top, and each item at the beginning of a line."""

    rest: dict[str, Any]
    """All but the items."""

    items: list[Item]


def find_list(text: str) -> PlainList | None:
    """Look for the items of the only document in `text`; None if it has another form."""
    top = _TOP.search(text)
    if top is None or "\n---" in text or "\n..." in text or text[:1] == "%":
        return None
    last = text.rfind("\n- ", top.end() - 1)
    after = _AFTER.search(text, last + 1)
    end = len(text) if after is None else after.start() + 1
    rest = read_plain(text[: top.start()] + text[end:])
    if not isinstance(rest, dict) or "items" in rest:
        return None
    starts = [match.start() for match in re.finditer(r"^- ", text[top.end() : end], re.MULTILINE)]
    places = [top.end() + start for start in starts]
    return PlainList(rest, [Item(start, stop) for start, stop in zip(places, [*places[1:], end], strict=True)])


def read_items(text: str, items: list[Item]) -> Iterator[bytes | msgspec.Raw]:
    """Yield the JSON of each. Raises yaml.YAMLError or ValueError if one cannot be read by itself."""
    for item in items:
        lines = f"  {text[item.start + 2 : item.end]}"
        value = read_plain(lines)
        if value is not None:
            yield msgspec.json.encode(value)
            continue
        documents = [value for _, value in read_yaml(lines)]
        if len(documents) != 1:
            raise yaml.YAMLError("more than one document")
        yield raw_of(documents[0])


def read_plain(text: str) -> Any | None:
    """Return the mapping in `text`, or None if it is not as plain as that."""
    lines = _LINE.findall(text)
    if text[-1:] == "\n":
        lines.pop()  # the empty rest after it
    if len(lines) != text.count("\n") + (text[-1:] != "\n"):
        return None
    try:
        return _nested(lines)
    except _NotPlain:
        return None


class _NotPlain(Exception):
    pass


def _nested(lines: list[tuple[str, ...]]) -> Any:
    """Build the mapping that the lines describe. Raises _NotPlain."""
    open_: list[tuple[int, Any]] = []
    """Indentation and collection, outermost first."""
    at, parent = -1, cast("Any", None)  # the last of them
    waits_at, waiting = -1, ""  # indentation and key of the last line, if its value is on the next ones
    for indentation, dash, key, *value in lines:
        indent = len(indentation)
        if waits_at >= 0 and (indent > waits_at or (dash and indent == waits_at)):
            at, parent = indent, _opened(open_, indent, dash, parent, waiting)
        elif indent != at or (type(parent) is list) is not (dash != ""):
            at, parent = indent, _closed(open_, indent, is_entry=dash != "")
        waits_at = -1
        if dash:
            if not key:
                parent.append(_value(*value))
                continue
            mapping: dict[str, Any] = {}
            parent.append(mapping)
            at, parent = indent + 2, mapping
            open_.append((at, mapping))
        if not key or key in parent or key in WORDS:
            raise _NotPlain
        if any(value):
            parent[key] = _value(*value)
        else:
            parent[key] = None
            waits_at, waiting = at, key
    return open_[0][1]


def _value(plain: str, quoted: str, empty: str) -> Any:
    if plain:
        value = plain_scalar(plain)
        if _ODD.search(plain) or (type(value) is float and not math.isfinite(value)):
            raise _NotPlain
        return value
    if quoted:
        return quoted[1:-1].replace("''", "'") if quoted[0] == "'" else quoted[1:-1]
    if empty:
        return {} if empty == "{}" else []
    raise _NotPlain


def _opened(open_: list[tuple[int, Any]], indent: int, dash: str, parent: Any, key: str) -> Any:
    """Open a collection that is the value of the key. Raises _NotPlain."""
    if indent > MAX_INDENT:
        raise _NotPlain
    new: Any = [] if dash else {}
    parent[key] = new
    open_.append((indent, new))
    return new


def _closed(open_: list[tuple[int, Any]], indent: int, *, is_entry: bool) -> Any:
    """Close what ends before a line with this indentation, and return what the line belongs to. Raises _NotPlain."""
    if not open_ and not is_entry and indent <= MAX_INDENT:
        open_.append((indent, {}))
    while open_ and (open_[-1][0] > indent or (open_[-1][0] == indent and not is_entry and type(open_[-1][1]) is list)):
        open_.pop()
    if not open_ or open_[-1][0] != indent or (type(open_[-1][1]) is list) is not is_entry:
        raise _NotPlain
    return open_[-1][1]
