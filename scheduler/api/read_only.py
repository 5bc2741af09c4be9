"""Values that cannot be written to: what a plugin is handed is the scheduler's own, and shared by all profiles.

Writing to one raises TypeError or AttributeError in the plugin, which is that plugin's error. It stops mistakes, not
intent: whoever wants to write finds a way.
"""

from collections.abc import Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Generic, NoReturn, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class ReadOnlyDict(dict[KeyT, ValueT], Generic[KeyT, ValueT]):
    """A dict that refuses to be written to. A copy of it, also a deep one, is a dict as any other.

    Its owner writes to it by the methods of dict: `dict.__setitem__(values, key, value)`.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type, tuple[dict[KeyT, ValueT]]]:
        return dict, (dict(self),)


class ReadOnlyList(list[ValueT], Generic[ValueT]):
    """A list that refuses to be written to. A copy of it, also a deep one, is a list as any other.

    Its owner writes to it by the methods of list: `list.append(values, value)`.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type, tuple[list[ValueT]]]:
        return list, (list(self),)


def _refuse(self: object, *args: object, **options: object) -> NoReturn:
    kind = "dict" if isinstance(self, dict) else "list"
    raise TypeError(f"this {kind} is read-only, as the scheduler itself uses it: change a copy of it, {kind}(…)")


def _forbid(kind: type, methods: str) -> None:
    for method in methods.split():
        setattr(kind, method, _refuse)


_forbid(ReadOnlyDict, "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update")
_forbid(
    ReadOnlyList,
    "__setitem__ __delitem__ __iadd__ __imul__ append clear extend insert pop remove reverse sort",
)


def frozen(value: Any) -> Any:
    """Return parsed JSON or YAML with read-only dicts and lists in the place of all others, at any depth."""
    if type(value) is dict:
        made: ReadOnlyDict[Any, Any] = ReadOnlyDict()
        for key, item in value.items():
            dict.__setitem__(made, key, frozen(item) if type(item) in (dict, list) else item)
        return made
    if type(value) is list:
        return ReadOnlyList([frozen(item) if type(item) in (dict, list) else item for item in value])
    return value


def read_only_attribute(path: str) -> Any:
    """Return a property for the attribute at `path`, such as `_size`: read without a call of Python, never written."""
    return property(attrgetter(path))
