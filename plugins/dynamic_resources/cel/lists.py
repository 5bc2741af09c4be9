"""Kubernetes' CEL extensions for lists and strings: `sum`, `min`, `max`, `isSorted`, `includes`, `indexOf`, `find` …

Rules: k8s.io/apiserver pkg/cel/library/lists.go and regex.go at v0.37.2. Strings have `indexOf` and `lastIndexOf`, too,
and the CEL library allows no further overloads of what it declares: `selectors.py` calls these by other names.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from cel_expr_python import cel

from plugins.dynamic_resources.cel.declarations import BOOL, DOUBLE, DYN, INT, LIST, MAP, STRING, Overload, declared

RENAMED: Final = {
    "indexOf": "loadmasterIndexOf",
    "lastIndexOf": "loadmasterLastIndexOf",
    "range": "loadmasterRange",
    "split": "loadmasterSplit",
}
"""Functions of the library that go by another name: they lack overloads or bounds, or differ."""

_LONGEST: Final = 10_000
"""Entries that `lists.range` may make: as many as a comprehension may go through."""

_KINDS: Final = (
    INT,
    cel.Type.UINT,
    DOUBLE,
    BOOL,
    STRING,
    cel.Type.BYTES,
    cel.Type.TIMESTAMP,
    cel.Type.DURATION,
    MAP,
    LIST,
)
"""The types that a list may be searched for: the library finds no overload for a parameter of any type."""

_REGULAR: Final = cel.NewEnv(
    config=cel.NewEnvConfigFromYaml("name: regular\nextensions:\n- name: optional\n- name: regex\n"),
    variables=dict.fromkeys(("text", "pattern", "wrapped", "marked"), cel.Type.STRING),
)
"""The library's own regular expressions, which take time that grows with the text. Python's would not."""

_IS_PATTERN: Final = _REGULAR.compile("text.matches(pattern)")
_MARK: Final = _REGULAR.compile("regex.replace(text, wrapped, marked)")


def _range(end: int) -> list[int]:
    if end > _LONGEST:
        raise ValueError(f"lists.range: more than {_LONGEST} entries")
    return list(range(end))


def _sum(values: Sequence[Any]) -> Any:
    if not values:
        return 0
    return sum(values[1:], values[0]) if not isinstance(values[0], timedelta) else sum(values, timedelta())


def _extreme(name: str, choose: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    def chosen(values: Sequence[Any]) -> Any:
        if not values:
            raise ValueError(f"{name} called on empty list")
        return choose(values)

    return chosen


def _place(places: Sequence[int], values: Sequence[Any], value: Any) -> int:
    return next(
        (i for i in places if values[i] == value and isinstance(values[i], bool) == isinstance(value, bool)), -1
    )


def _index_of(values: Sequence[Any], value: Any) -> int:
    return _place(range(len(values)), values, value)


def _last_index_of(values: Sequence[Any], value: Any) -> int:
    return _place(range(len(values) - 1, -1, -1), values, value)


def _includes(values: Sequence[Any], value: Any) -> bool:
    return _index_of(values, value) >= 0


def _is_the_same(one: Any, other: Any) -> bool:
    return _includes([one], other)


def _text_index(text: str, part: str, start: int = 0) -> int:
    """Rule: cel-go ext/strings.go (indexOfOffset)."""
    if part and start < 0:
        raise ValueError(f"index out of range: {start}")
    return text.find(part, start) if part else start


def _text_last_index(text: str, part: str) -> int:
    return text.rfind(part)


def _text_last_index_before(text: str, part: str, last: int) -> int:
    """Rule: cel-go ext/strings.go (lastIndexOfOffset)."""
    if not part:
        return last
    if last < 0:
        raise ValueError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part)) if last < len(text) else -1


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    """Rule: Go's strings.SplitN, by which nothing is no character."""
    if most == 0:
        return []
    if separator:
        return text.split(separator, most - 1 if most > 0 else -1)
    if most < 0 or most >= len(text):
        return list(text)
    return [*text[: most - 1], text[most - 1 :]]


def _found(text: str, pattern: str) -> list[str]:
    """Return all matches, from left to right. Raises ValueError for an invalid pattern."""
    checked = _IS_PATTERN.eval(data={"text": "", "pattern": pattern})
    if checked.type().name() != "BOOL":
        raise ValueError(f"Illegal regex: {checked.value()}")
    before, after = _absent_from(text)
    data = {"text": text, "wrapped": f"({pattern})", "marked": f"{before}\\1{after}"}
    marked = _MARK.eval(data=data).value()
    return [part.partition(after)[0] for part in str(marked).split(before)[1:]]


def _absent_from(text: str) -> tuple[str, str]:
    """Two characters of a private plane that the text has not."""
    free = (chr(code) for code in range(0xF0000, 0xFFFFE) if chr(code) not in text)
    return next(free), next(free)


def _find(text: str, pattern: str) -> str:
    return next(iter(_found(text, pattern)), "")


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    found = _found(text, pattern)
    return found if most < 0 else found[:most]


LIST_FUNCTIONS: Final = (
    declared("sum", Overload(DYN, [LIST], _sum)),
    declared("min", Overload(DYN, [LIST], _extreme("min", min))),
    declared("max", Overload(DYN, [LIST], _extreme("max", max))),
    declared(
        "includes",
        *(Overload(BOOL, [LIST, kind], _includes) for kind in _KINDS),
        *(Overload(BOOL, [one, other], _is_the_same) for one in _KINDS if one is not LIST for other in _KINDS),
    ),
    declared("isSorted", Overload(BOOL, [LIST], lambda values: all(a <= b for a, b in pairwise(values)))),
    declared(
        RENAMED["indexOf"],
        *(Overload(INT, [LIST, kind], _index_of) for kind in _KINDS),
        Overload(INT, [STRING, STRING], _text_index),
        Overload(INT, [STRING, STRING, INT], _text_index),
    ),
    declared(
        RENAMED["lastIndexOf"],
        *(Overload(INT, [LIST, kind], _last_index_of) for kind in _KINDS),
        Overload(INT, [STRING, STRING], _text_last_index),
        Overload(INT, [STRING, STRING, INT], _text_last_index_before),
    ),
    declared(RENAMED["range"], Overload(cel.Type.List(INT), [INT], _range, is_member=False)),
    declared(
        RENAMED["split"],
        Overload(cel.Type.List(STRING), [STRING, STRING], _split),
        Overload(cel.Type.List(STRING), [STRING, STRING, INT], _split),
    ),
    declared("find", Overload(STRING, [STRING, STRING], _find)),
    declared("findAll", Overload(LIST, [STRING, STRING], _find_all), Overload(LIST, [STRING, STRING, INT], _find_all)),
)
