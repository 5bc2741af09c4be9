"""Quantities and versions in CEL expressions, with the functions that Kubernetes adds for them.

The CEL library knows no types of ours at run time, so a quantity is a map with one entry, and so is a version: both in
a normal form, for which `==` is right. The API server checked the types when it stored the expression. Rules:
k8s.io/apiserver pkg/cel/library/quantity.go and semverlib.go at v0.36.3.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from plugins.dynamic_resources.cel.declarations import (
    BOOL,
    DOUBLE,
    INT,
    MAP,
    STRING,
    Overload,
    Value,
    declared,
    succeeds,
)
from scheduler.api.quantities.quantity import INT64_MAX, NANO, parse_quantity

_QUANTITY, _VERSION = "quantity", "semver"
_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_SEMVER: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def quantity(text: str | int | float) -> Value:
    """Return a quantity as CEL sees it. Raises ValueError if it cannot be read."""
    return _of_nanos(parse_quantity(text))


class SemanticVersion(NamedTuple):
    """A semantic version without its build metadata, which no comparison looks at."""

    major: int
    minor: int
    patch: int
    pre_release: tuple[str, ...]

    def compared_to(self, other: "SemanticVersion") -> int:
        """Return -1, 0 or 1, by the precedence of semver.org 2.0.0."""
        if self[:3] != other[:3]:
            return -1 if self[:3] < other[:3] else 1
        if not self.pre_release or not other.pre_release:
            return bool(other.pre_release) - bool(self.pre_release)
        mine, theirs = ([_precedence(each) for each in v.pre_release] for v in (self, other))
        return (mine > theirs) - (mine < theirs)


def _precedence(identifier: str) -> tuple[bool, int, str]:
    """Numbers come before words; numbers by size, words by their letters."""
    return (False, int(identifier), "") if identifier.isdigit() else (True, 0, identifier)


def parse_version(text: str) -> SemanticVersion:
    """Read a semantic version. Raises ValueError if it is none."""
    match = _SEMVER.fullmatch(text)
    if match is None:
        raise ValueError(f"not a semantic version: {text!r}")
    pre_release = tuple(match[4].split(".")) if match[4] else ()
    if any(each.isdigit() and len(each) > 1 and each[0] == "0" for each in pre_release):
        raise ValueError(f"numeric prerelease version must not contain leading zeroes {text!r}")
    return SemanticVersion(int(match[1]), int(match[2]), int(match[3]), pre_release)


def version(text: str) -> Value:
    """Return a version as CEL sees it. Raises ValueError if it cannot be read."""
    found = parse_version(text)
    numbers = f"{found.major}.{found.minor}.{found.patch}"
    return {_VERSION: "-".join((numbers, ".".join(found.pre_release))) if found.pre_release else numbers}


def _normalised_version(text: str, normalise: bool) -> Value:
    """Rule: normalizeAndParse: a leading v, leading zeros and missing numbers are forgiven."""
    if not normalise:
        return version(text)
    parts = text.removeprefix("v").split(".", 2)
    for i, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[i] = stripped if stripped[:1].isdigit() else "0" + stripped
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return version(".".join(parts))


def _of_nanos(nanos: int) -> Value:
    return {_QUANTITY: str(nanos)}


def _nanos(value: Value) -> int:
    return int(value[_QUANTITY])


def _compare(one: Value, other: Value) -> int:
    """Compare two of a kind. Raises ValueError for anything else, as a call without an overload."""
    if _QUANTITY in one and _QUANTITY in other:
        return (_nanos(one) > _nanos(other)) - (_nanos(one) < _nanos(other))
    if _VERSION in one and _VERSION in other:
        return parse_version(one[_VERSION]).compared_to(parse_version(other[_VERSION]))
    raise ValueError("no such overload")


def _quantity_only(compute: Callable[[int], Any]) -> Callable[[Value], Any]:
    def checked(value: Value) -> Any:
        if _QUANTITY not in value:
            raise ValueError("no such overload")
        return compute(_nanos(value))

    return checked


def _version_only(index: int) -> Callable[[Value], int]:
    def part(value: Value) -> int:
        if _VERSION not in value:
            raise ValueError("no such overload")
        found = parse_version(value[_VERSION])[index]
        assert isinstance(found, int)
        return found

    return part


def _is_integer(nanos: int) -> bool:
    return nanos % NANO == 0 and -INT64_MAX - 1 <= nanos // NANO <= INT64_MAX


def _as_integer(nanos: int) -> int:
    if not _is_integer(nanos):
        raise ValueError("cannot convert value to integer")
    return nanos // NANO


def _sum(sign: int) -> Callable[[Value, Value], Value]:
    def added(one: Value, other: Value) -> Value:
        if _QUANTITY not in one or _QUANTITY not in other:
            raise ValueError("no such overload")
        return _of_nanos(_nanos(one) + sign * _nanos(other))

    return added


def _sum_with_int(sign: int) -> Callable[[Value, int], Value]:
    return lambda one, other: _sum(sign)(one, _of_nanos(other * NANO))


VALUE_FUNCTIONS: Final = (
    declared("quantity", Overload(MAP, [STRING], quantity, is_member=False)),
    declared("isQuantity", Overload(BOOL, [STRING], succeeds(quantity), is_member=False)),
    declared(
        "semver",
        Overload(MAP, [STRING], version, is_member=False),
        Overload(MAP, [STRING, BOOL], _normalised_version, is_member=False),
    ),
    declared(
        "isSemver",
        Overload(BOOL, [STRING], succeeds(version), is_member=False),
        Overload(BOOL, [STRING, BOOL], succeeds(_normalised_version), is_member=False),
    ),
    declared("compareTo", Overload(INT, [MAP, MAP], _compare)),
    declared("isGreaterThan", Overload(BOOL, [MAP, MAP], lambda one, other: _compare(one, other) > 0)),
    declared("isLessThan", Overload(BOOL, [MAP, MAP], lambda one, other: _compare(one, other) < 0)),
    declared("isInteger", Overload(BOOL, [MAP], _quantity_only(_is_integer))),
    declared("asInteger", Overload(INT, [MAP], _quantity_only(_as_integer))),
    declared("asApproximateFloat", Overload(DOUBLE, [MAP], _quantity_only(lambda nanos: nanos / NANO))),
    declared("sign", Overload(INT, [MAP], _quantity_only(lambda nanos: (nanos > 0) - (nanos < 0)))),
    declared("add", Overload(MAP, [MAP, MAP], _sum(1)), Overload(MAP, [MAP, INT], _sum_with_int(1))),
    declared("sub", Overload(MAP, [MAP, MAP], _sum(-1)), Overload(MAP, [MAP, INT], _sum_with_int(-1))),
    declared("major", Overload(INT, [MAP], _version_only(0))),
    declared("minor", Overload(INT, [MAP], _version_only(1))),
    declared("patch", Overload(INT, [MAP], _version_only(2))),
)
"""Kubernetes' CEL extensions for quantities and versions."""
