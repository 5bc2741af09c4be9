"""YAML as Go reads it: kube-scheduler and kubectl read the same files, so they must mean the same here.

A time stays a string, `12:30` is no number, `1e3` is one, and a key may occur once in a mapping. This builds the
values straight from libyaml's events, in a sixth of the time of PyYAML's own loader. That loader recurses in C and
crashes on deep nesting; this one counts the depth.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import yaml

MAX_DEPTH: Final = 200
"""Levels of nesting. Objects of the API have about twenty."""

MAX_ALIASED: Final = 4_000_000
"""Bytes of JSON that aliases of a text may stand for, each time that they do: few lines can stand for billions."""

_WRITTEN_OUT: Final = 1e21
"""Below it Go writes a number with all its digits."""

_SIZE: Final = 4
"""Bytes that a value takes in JSON in addition to its text: quotes or brackets, a comma."""

_EVENTS: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # PyYAML may have been built without libyaml
_TAG: Final = "tag:yaml.org,2002:"
_NO_KEY: Final = object()
_MERGE: Final = object()

_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INT: Final = re.compile(r"([-+]?)(0b[01]+|0o?[0-7]+|0x[0-9a-fA-F]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?((\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))|\.(nan|NaN|NAN)")


def read_yaml(text: str, max_aliased: int = MAX_ALIASED) -> Iterator[tuple[int, Any]]:
    """Yield line and value of each document in `text`; an empty one is None. Raises yaml.YAMLError.

    `max_aliased`: bytes that aliases may stand for, in all documents together.
    """
    events, aliased = events_of(text), 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            first = next(events)
            value, aliased = _document(first, events, max_aliased, aliased)
            yield _mark(first).line + 1, value


def events_of(text: str) -> Iterator[yaml.Event]:
    """Yield what `text` is made of, in its order. Raises yaml.YAMLError."""
    return yaml.parse(text, Loader=_EVENTS)


def _document(event: yaml.Event, events: Iterator[yaml.Event], max_aliased: int, aliased: int) -> tuple[Any, int]:
    """Build the value that starts with `event`; return with it what aliases stand for up to its end, in bytes."""
    anchors: dict[str, tuple[Any, int]] = {}
    open_: list[_Collection] = []
    while True:
        if isinstance(event, yaml.CollectionStartEvent):
            if len(open_) == MAX_DEPTH:
                raise _error("nested too deeply", event)
            open_.append(_Collection(event))
        else:
            if isinstance(event, yaml.ScalarEvent):
                value, anchor, size = _scalar(event), event.anchor, _SIZE + len(event.value)
            elif isinstance(event, yaml.AliasEvent):
                # The anchor of a collection is known once it is complete: it cannot contain itself.
                if event.anchor not in anchors:
                    raise _error(f"there is no anchor {event.anchor!r} before this", event)
                (value, size), anchor = anchors[event.anchor], None
                aliased += size
                if aliased > max_aliased:
                    raise _error(f"aliases stand for more than {max_aliased} bytes", event)
            else:
                closed = open_.pop()
                value, anchor, size = closed.finished(), closed.anchor, closed.size
            if anchor is not None:
                anchors[anchor] = value, size
            if not open_:
                return value, aliased
            open_[-1].add(value, event)
            open_[-1].size += size
        event = next(events)


class _Collection:
    __slots__ = ("_key", "_merged", "_value", "anchor", "size")

    def __init__(self, start: yaml.CollectionStartEvent) -> None:
        is_list = isinstance(start, yaml.SequenceStartEvent)
        if start.tag not in (None, "!", _TAG + ("seq" if is_list else "map")):
            raise _error(f"the tag {start.tag!r} means nothing here", start)
        self.anchor = start.anchor
        self.size = _SIZE
        """Bytes that it takes in JSON, about."""
        self._value: Any = [] if is_list else {}
        self._key: Any = _NO_KEY
        self._merged: list[Any] = []

    def add(self, value: Any, event: yaml.Event) -> None:
        if type(self._value) is list:
            self._value.append(value)
        elif self._key is _NO_KEY:
            if isinstance(value, list | dict):
                raise _error("a key must not be a list or a mapping", event)
            if value in self._value:
                raise _error(f"the key {value!r} is there twice", event)
            self._key = _MERGE if value == "<<" and _is_plain(event) else value
        elif self._key is _MERGE:
            self._merge(value, event)
            self._key = _NO_KEY
        else:
            self._value[self._key] = value
            self._key = _NO_KEY

    def _merge(self, value: Any, event: yaml.Event) -> None:
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            raise _error("only mappings can be merged", event)
        self._merged += mappings

    def finished(self) -> Any:
        """Return the value; merged keys do not replace its own."""
        for mapping in self._merged:
            self._value = {**mapping, **self._value}
        return self._value


def _scalar(event: yaml.ScalarEvent) -> Any:
    try:
        if event.tag is None:
            return _plain_scalar(event.value) if _is_plain(event) else event.value
        return _tagged(event.tag, event)
    except ValueError as error:
        raise _error("not a number that can be read", event) from error


@lru_cache(maxsize=65_536)
def _plain_scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "+-.0123456789":
        digits = text.replace("_", "")
        if (match := _INT.fullmatch(digits)) is not None:
            return int(match[1] + _with_octal_mark(match[2]), 0)
        if _FLOAT.fullmatch(digits):
            word = digits.lower()
            return _as_json(float(word.replace(".", "") if word.endswith(("inf", "nan")) else word))
    return text


def _as_json(number: float) -> int | float:
    """Go makes JSON of YAML, in which `1e+06`, as Helm writes a million, is 1000000: an integer."""
    return int(number) if abs(number) < _WRITTEN_OUT and number.is_integer() else number


def _with_octal_mark(digits: str) -> str:
    """Python wants 0o17 where YAML has 017."""
    return f"0o{digits[1:]}" if digits[0] == "0" and digits[1:].isdigit() else digits


def _is_plain(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and bool(event.implicit[0])


def _tagged(tag: str, event: yaml.ScalarEvent) -> Any:
    if tag in ("!", _TAG + "str"):
        return event.value
    value = _plain_scalar(event.value)
    kinds = {"int": int, "float": int | float, "bool": bool, "null": type(None)}
    kind = kinds.get(tag.removeprefix(_TAG))
    if kind is None:
        raise _error(f"the tag {tag!r} means nothing here", event)
    if not isinstance(value, kind):
        raise _error(f"{event.value!r} does not fit its tag", event)
    return value


def _error(problem: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError("", None, problem, _mark(event))


def _mark(event: yaml.Event) -> Any:
    """The start of the event. The stubs do not know that there always is a mark, and of which kind."""
    return event.start_mark
