"""CEL expressions over devices: `device.attributes["gpu.example.com"].model == "A100"`.

The evaluator is Google's (cel-expr-python, the C++ implementation); this file defines what it sees of a device. It
takes 11 MB of memory, so it is loaded with the first device or expression that is looked at.

Rule: k8s.io/dynamic-resource-allocation cel/compile.go at v0.37.2. What differs is in docs/differences.md.
"""

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final, NamedTuple

from scheduler.api.devices import Attribute, Device
from scheduler.api.recent_caches import RecentCache

_CACHE_BYTES: Final = 32 << 20
_BYTES_A_CHARACTER: Final = 100
"""About what the evaluator takes for each character of an expression."""
_EXPRESSION_BYTES: Final = 4096
"""And for the expression as such."""

_SLOW_SECONDS: Final = 0.002
"""CPU time of an evaluation that counts as slow. Most take a tenth of a millisecond, and none should be noticed."""

_SLOW_LIMIT: Final = 0.2
"""CPU time in all that slow evaluations of one expression may take. The API server lets expressions pass that take
240 ms for each device, and anyone who may create a claim writes them: nothing else is scheduled meanwhile."""

_TYPES: Final[Mapping[str, str]] = {
    "NULL": "null_type",
    "DURATION": "google.protobuf.Duration",
    "TIMESTAMP": "google.protobuf.Timestamp",
}
"""Types of the library that cel-go does not only write in small letters."""

_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)

_numbers = count()

_TOKENS: Final = re.compile(
    r"""(?P<string>[rRbB]{0,2}(?:"{3}(?:[^\\]|\\.)*?"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))"""
    r"""|(?P<comment>//[^\n]*)"""
    r"""|(?P<map>\bdevice\s*\.\s*(?:attributes|capacity)\b)(?=\s*(?:\[|\.\s*(?P<domain>[A-Za-z_]\w*)\b(?!\s*\()))"""
    r"""|(?P<renamed>(?:(?<=\.)\s*(?P<member>indexOf|lastIndexOf|split)|\blists\s*\.\s*(?P<function>range))(?=\s*\())"""
    r"""|(?P<other>.)""",
    re.DOTALL,
)


class SelectorError(Exception):
    """An expression fails for a device; the text is kube-scheduler's for selectors."""

    kind = "CEL runtime error"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}{_HINT if 'no such key:' in self.reason else ''}"


class NotCompiled(SelectorError):
    """An expression cannot be compiled, whatever the device."""

    kind = "CEL compile error"


class DeviceView(NamedTuple):
    """A device as expressions see it, made once for all expressions."""

    driver: str
    allow_multiple_allocations: bool
    attributes: dict[str, dict[str, Any]]
    """Domain → name → value."""
    capacity: dict[str, dict[str, Any]]


class Program:
    """A compiled expression."""

    __slots__ = ("_domains", "_now", "_problem", "_program", "_slow", "number")

    def __init__(self, text: str, now: Callable[[], float] = time.thread_time) -> None:
        """`now`: seconds of CPU time."""
        self._now = now
        self._slow = 0.0
        self.number = next(_numbers)
        """No other expression has it, not even one of the same text that is compiled later."""
        from plugins.dynamic_resources.cel.environment import ENVIRONMENT

        written, self._domains = _with_defaults(text)
        self._problem = ""
        self._program: Any = None
        try:
            program = ENVIRONMENT.compile(written)
        except (RuntimeError, ValueError) as error:
            self._problem = f"compilation failed: {_unwrapped(_as_written(text) or str(error))}"
            return
        self._problem = self.objection(program.return_type().name())
        if not self._problem:
            self._program = program

    def objection(self, kind: str) -> str:
        """Return the problem of a result of this kind, if any."""
        return ""

    def evaluated(self, device: DeviceView) -> Any:
        """Return the result for a device. Raises SelectorError."""
        if self._problem:
            raise (NotCompiled if self._program is None else SelectorError)(self._problem)
        # A domain of which the device has nothing is an empty map, not an error.
        known: dict[str, dict[str, Any]] = {domain: {} for domain in (*self._domains, device.driver)}
        seen = {
            "driver": device.driver,
            "allowMultipleAllocations": device.allow_multiple_allocations,
            "attributes": device.attributes,
            "capacity": device.capacity,
            "attributes_or_empty": known | device.attributes,
            "capacity_or_empty": known | device.capacity,
        }
        data = {"device": seen}
        started = self._now()
        try:
            found = self._program.eval(data=data)
        except (RuntimeError, ValueError, TypeError) as error:
            raise SelectorError(_reworded(str(error))) from error
        finally:
            seconds = self._now() - started
            if seconds > _SLOW_SECONDS:
                self._charge(seconds, data)
        kind = found.type().name()
        if kind == "ERROR" or kind == "UNKNOWN":
            raise SelectorError(_reworded(str(found.value())))
        return found

    def _charge(self, seconds: float, data: dict[str, Any]) -> None:
        """Count the time of a slow evaluation; too much in all, and the expression is not evaluated again.

        What took long may have been no matter of the expression: a collection of garbage, which takes as long as there
        are objects, or the first use of something. So the last one is timed again before that.
        """
        if self._slow + seconds > _SLOW_LIMIT:
            started = self._now()
            with suppress(RuntimeError, ValueError, TypeError):  # as in the first place
                self._program.eval(data=data)
            if self._now() - started <= _SLOW_SECONDS:
                return
            self._problem = f"too slow: {seconds * 1000:.0f} ms for one device"
        self._slow += seconds


class Expression(Program):
    """A compiled selector."""

    __slots__ = ()

    def objection(self, kind: str) -> str:
        # DYN stands for the types that the library lacks, too.
        is_right = kind == "BOOL" or "DYN" in kind
        return "" if is_right else f"must evaluate to bool or the unknown type, not {spelled(kind)}"

    def matches(self, device: DeviceView) -> bool:
        """Return whether a device matches. Raises SelectorError."""
        found = self.evaluated(device)
        kind = found.type().name()
        if kind != "BOOL":
            raise SelectorError(f"CEL result of type {kind.lower()} could not be converted to bool")
        return bool(found.value())


def _as_written(text: str) -> str:
    """Return why an expression cannot be compiled that is not rewritten, with the places of its own text."""
    from plugins.dynamic_resources.cel.environment import ENVIRONMENT

    try:
        ENVIRONMENT.compile(text)
    except (RuntimeError, ValueError) as error:
        return str(error)
    return ""


def spelled(kind: str) -> str:
    """Return a type of the library as cel-go calls it: LIST<INT> is list(int)."""
    for name, spelled in _TYPES.items():
        kind = kind.replace(name, spelled)
    return re.sub(r"[A-Z]{2,}", lambda match: match[0].lower(), kind).replace("<", "(").replace(">", ")")


def compiled(text: str) -> Expression:
    """Return an expression, ready to be asked; one that cannot be compiled says so when it is."""
    return _compiled.get(text) or _compiled.put(text, Expression(text))


def _weight_of(text: str, expression: Expression) -> int:
    return _EXPRESSION_BYTES + _BYTES_A_CHARACTER * len(text)


_compiled: RecentCache[str, Expression] = RecentCache("device selectors", _CACHE_BYTES, _weight_of)


def view_of(driver: str, device: Device) -> DeviceView:
    """Return what expressions see of a device. Raises SelectorError for a value that has no supported kind."""
    from plugins.dynamic_resources.cel.values import quantity

    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in (device.attributes or {}).items():
        domain, _, identifier = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[identifier] = _value_of(name, attribute)
    capacity: dict[str, dict[str, Any]] = {}
    for name, amount in (device.capacity or {}).items():
        domain, _, identifier = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[identifier] = quantity(amount.value)
    return DeviceView(driver, bool(device.allow_multiple_allocations), attributes, capacity)


def _value_of(name: str, attribute: Attribute) -> Any:
    """Rule: getAttributeValue."""
    for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
        if values is not None:
            return list(values)
    if attribute.version_values is not None:
        return [_version_of(name, text) for text in attribute.version_values]
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise SelectorError(f"attribute {name}: unsupported attribute value")
    return _version_of(name, attribute.version_value)


def _version_of(name: str, text: str) -> Any:
    from plugins.dynamic_resources.cel.values import version

    try:
        return version(text)
    except ValueError as error:
        raise SelectorError(f"attribute {name}: parse semantic version: {error}") from error


def _with_defaults(text: str) -> tuple[str, frozenset[str]]:
    """Return the expression with look-ups that give an empty map for an unknown domain, and the domains it may name.

    In kube-scheduler a look-up of any domain succeeds, while `in` and iteration show only those that are there.
    """
    from plugins.dynamic_resources.cel.lists import RENAMED

    domains = set()
    parts = []
    for match in _TOKENS.finditer(text):
        part = match[0]
        if match["string"]:
            domains.add(part.lstrip("rRbB").strip("\"'"))
        elif match["map"]:
            part = "".join(part.split()) + "_or_empty"
            if match["domain"]:
                domains.add(match["domain"])
        elif match["renamed"]:
            part = RENAMED[match["member"] or match["function"]]
        parts.append(part)
    return "".join(parts), frozenset(domains)


_MESSAGES: Final[Mapping[str, str]] = {
    r'Key not found in map : "(.*)"': "no such key: {0}",
    r"No matching overloads found.*": "no such overload",
    r"divide by zero": "division by zero",
    r"modulus by zero": "modulus by zero",
}


def _unwrapped(error: str) -> str:
    """Return an error of the library without its code."""
    return re.sub(r" \[[A-Z_]+\]$", "", re.sub(r"^[A-Z_]+: ", "", error))


def _reworded(error: str) -> str:
    """The library's words for the commonest errors are not those of cel-go."""
    text = _unwrapped(error)
    for pattern, words in _MESSAGES.items():
        match = re.fullmatch(pattern, text, re.DOTALL)
        if match is not None:
            return words.format(*match.groups())
    return text
