"""Values that cannot be written to: plugins get the scheduler's own, which all profiles share.

Writing to one raises TypeError or AttributeError in the plugin, which is that plugin's error. It stops mistakes, not
intent: code that wants to write finds a way.
"""

import inspect
from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType, UnionType
from typing import Any, ClassVar, Final, Generic, NoReturn, TypeVar, Union, get_args, get_origin

import msgspec

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})

_NEVER_NONE: Final = ("labels", "annotations")
"""Fields that read as empty where the object has none, or null."""


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
    made = _empty(value)
    left = [] if made is value else [(value, made)]
    while left:  # no recursion, as others choose the depth
        source, target = left.pop()
        for key, item in source.items() if isinstance(source, dict) else enumerate(source):
            inner = _empty(item)
            if inner is not item:
                left.append((item, inner))
            if isinstance(source, dict):
                dict.__setitem__(target, key, inner)
            else:
                list.append(target, inner)
    return made


def _empty(value: Any) -> Any:
    """Return what `value` is to be copied into; itself if it need not be."""
    if type(value) is dict:
        return ReadOnlyDict()
    return ReadOnlyList() if type(value) is list else value


def read_only_attribute(path: str) -> Any:
    """Return a property for the attribute at `path`, such as `_size`: read without a call of Python, never written."""
    return property(attrgetter(path))


class ReadOnlyStruct(msgspec.Struct, frozen=True):
    """Base for structs whose dicts are to be read only: a field that is a dict reads as a view of it.

    The dict itself stays where it is. So nothing costs more but reading such a field, and where that is read for every
    pod, `unguarded` gives the dict. The fields `labels` and `annotations` are never None.

    Raises TypeError for a subclass with a field that could be changed otherwise.
    """

    _unguarded: ClassVar[dict[str, Callable[[Any], Any]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        guarded: dict[str, Callable[[Any], Any]] = {}
        for name, type_ in inspect.get_annotations(cls).items():
            kinds = _containers_in(type_)
            if kinds == {dict}:
                guarded[name] = cls.__dict__[name].__get__
                setattr(cls, name, _guarded(guarded[name], NOTHING if name in _NEVER_NONE else None))
            elif kinds:
                raise TypeError(f"{cls.__name__}.{name}: {type_} can be written to: a tuple cannot")
        cls._unguarded = {**cls._unguarded, **guarded}


def unguarded(struct: type[ReadOnlyStruct], field: str) -> Callable[[Any], Any]:
    """Return what reads a field of these structs as it is stored: a dict that must not be changed, or None."""
    return struct._unguarded[field]


def plain(value: Any) -> Any:
    """Return as a dict what such a field reads as: msgspec's `enc_hook`, as it may be put into another struct."""
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")


def _guarded(stored: Callable[[Any], Any], absent: Mapping[str, str] | None) -> property:
    def shown(struct: Any) -> Mapping[Any, Any] | None:
        value = stored(struct)
        return absent if value is None else MappingProxyType(value)

    return property(shown)


def _containers_in(type_: Any) -> set[type]:
    """Return what can be written to in the type of a field: dict for the field itself, list for anything else."""
    origin = get_origin(type_) or type_
    if origin is ClassVar or not isinstance(origin, type):
        members = get_args(type_) if origin is Union else ()
    elif issubclass(origin, UnionType):
        members = get_args(type_)
    elif issubclass(origin, Mapping):
        return {dict} | ({list} if set().union(*map(_containers_in, get_args(type_))) else set())
    elif issubclass(origin, tuple):
        return {list} if set().union(*map(_containers_in, get_args(type_))) else set()
    else:
        return {origin} if issubclass(origin, list | set | bytearray) else set()
    return set().union(*map(_containers_in, members))
