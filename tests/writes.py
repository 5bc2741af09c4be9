"""Looks for what can be written to among all that can be reached from a value, as a plugin might by mistake."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import partial
from operator import getitem, setitem
from typing import Any, Final, get_args, get_type_hints

import msgspec
import numpy as np

PLAIN: Final = (str, bytes, int, float, bool, type(None), Enum, datetime, type, msgspec.Raw, msgspec.UnsetType)
"""What nobody can change."""

MAX_DEPTH: Final = 14

Calls = Mapping[str, Sequence[tuple[Any, ...]]]
"""`Protocol.method` → the arguments to ask it with; none for one that does something and returns no data."""


class Writes:
    """Everything that was looked at, and what of it could be written to."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.looked_at: list[str] = []
        self.found: list[str] = []
        self.unknown: list[str] = []
        """Methods that `calls` does not have: so that nothing new is left out."""

    def look(self, path: str, read: Callable[[], Any], protocol: Any = None, depth: int = 0) -> None:
        """Look at what `read` returns, and at all that can be reached from there."""
        try:
            value = read()
        except LookupError:  # a field that nobody needs, which is not decoded
            return
        if isinstance(value, PLAIN) or depth > MAX_DEPTH:
            return
        self.looked_at.append(path)
        if protocol is not None and not is_container(value):
            self._look_at_role(path, value, protocol, depth)
            return
        if not is_own_copy(value, read):
            self.found += [f"{path}: {how}" for how in writes_to(value)]
        for step, inner in reachable(value):
            self.look(path + step, inner, protocol, depth + 1)

    def _look_at_role(self, path: str, value: Any, protocol: Any, depth: int) -> None:
        """Look at a value by what the interface names of it."""
        for name in sorted(name for name in dir(protocol) if not name.startswith("_")):
            member = getattr(protocol, name)
            at = f"{path}.{name}"
            if isinstance(member, property) and member.fget is not None:
                if sets(value, name):
                    self.found.append(f"{at}: can be assigned to")
                self.look(at, partial(getattr, value, name), role_of(member.fget), depth + 1)
                continue
            key = f"{protocol.__name__}.{name}"
            if key not in self.calls:
                self.unknown.append(key)
            for arguments in self.calls.get(key, ()):
                ask = partial(getattr(value, name), *arguments)
                self.look(f"{at}{arguments}", ask, role_of(member), depth + 1)


def role_of(method: Any) -> Any:
    """The Protocol that a method returns, by itself or in a container; None if there is none."""
    return protocol_in(get_type_hints(method).get("return"))


def protocol_in(hint: Any) -> Any:
    if getattr(hint, "_is_protocol", False) and hint.__module__.startswith("scheduler."):
        return hint
    return next(filter(None, map(protocol_in, get_args(hint))), None)


def is_container(value: Any) -> bool:
    """Whether a value has others in it, and no names for them."""
    return hasattr(value, "__iter__") and not hasattr(value, "_fields")


def reachable(value: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what a container or an object has, each with a step to it."""
    if isinstance(value, np.ndarray):
        return
    if isinstance(value, Mapping):
        for key in list(value)[:3]:
            yield f"[{key!r}]", partial(getitem, value, key)
            yield f" key {key!r}", partial(_itself, key)
    elif isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        for index in range(min(3, len(value))):
            yield f"[{index}]", partial(getitem, value, index)
    elif is_container(value):
        for index, inner in enumerate(list(value)[:3]):
            yield f"<{index}>", partial(_itself, inner)
    else:
        for name in attributes(value):
            yield f".{name}", partial(getattr, value, name)


def _itself(value: Any) -> Any:
    return value


def attributes(value: Any) -> list[str]:
    """The names of the data of an object."""
    kind = type(value)
    if isinstance(value, msgspec.Struct):
        names = list(kind.__struct_fields__)
    elif is_dataclass(value):
        names = [each.name for each in fields(value)]
    else:
        names = list(getattr(value, "_fields", ())) + list(getattr(value, "__dict__", ()))
    names += [name for name in dir(kind) if isinstance(getattr(kind, name, None), property)]
    return sorted({name for name in names if not name.startswith("_")})


def is_own_copy(value: Any, read: Callable[[], Any]) -> bool:
    """Whether each reader gets another one, so that writing to it changes nothing for anybody else."""
    again = read()
    if again is value:
        return False
    if isinstance(value, np.ndarray):
        return not np.shares_memory(value, again)
    return isinstance(value, dict | list | set) and type(value) in (dict, list, set)


def writes_to(value: Any) -> Iterator[str]:
    """Try to write to a value in all the ways that come to mind; yield those that work."""
    if isinstance(value, np.ndarray):
        if works(lambda: np.add(value, 0, out=value, casting="unsafe")):
            yield "in-place operators change it"
        if len(value) and works(lambda: value.__setitem__(0, value[0])):
            yield "its entries can be assigned to"
        return
    for method, arguments in (("update", ()), ("extend", ((),)), ("__ior__", ({},)), ("__iadd__", ((),)), ("sort", ())):
        if hasattr(value, method) and works(lambda: getattr(value, method)(*arguments)):  # noqa: B023
            yield f"it has a method {method}"
    if isinstance(value, set | bytearray):
        yield f"it is a {type(value).__name__}"
    if isinstance(value, Mapping):
        key, entry = next(iter(value.items()), ("x", "y"))
        if works(lambda: setitem(value, key, entry)):  # type: ignore[call-overload]
            yield "its entries can be assigned to"
    if isinstance(value, tuple | list | Mapping | set | frozenset):
        return
    yield from (f"its attribute {name} can be assigned to" for name in attributes(value) if sets(value, name))


def sets(value: Any, name: str) -> bool:
    """Whether an attribute can be assigned to; it has the same value then."""
    try:
        same = getattr(value, name)
    except LookupError:
        return False
    return works(lambda: setattr(value, name, same))


def works(write: Callable[[], object]) -> bool:
    try:
        write()
    except (TypeError, AttributeError, ValueError):
        return False
    return True
