"""From the values in a file to typed objects and back, by the type hints of their fields.

A plugin is a dataclass whose fields are its arguments; a file spells them in camelCase or as they are. The sections
of the configuration are read in the same way. Every problem is found in one go and has the path of its field:

    profiles[0].pluginConfig[2].args.strict: expected bool, got 'yes'
"""

import dataclasses
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import msgspec

from scheduler.api.read_only import ReadOnlyDict, ReadOnlyList, frozen
from scheduler.api.wording.near_names import near_names
from scheduler.framework.duration import Duration
from scheduler.framework.field_errors import not_supported, required
from scheduler.framework.tracebacks import described_with_place

T = TypeVar("T")

MAX_HINTS: Final = 100
"""Problems with such a hint, and problems of one list, that are reported: a file may have a million."""

YAML: Final = "yaml"
"""Key in a dataclass field's metadata: how files spell it, where that is not its name in camelCase."""


@runtime_checkable
class HasRules(Protocol):
    """An object with rules for its arguments beyond their types."""

    def problems(self) -> Iterable[tuple[str, str]]:
        """Return (path of the field as a file spells it, message) of each broken rule; `""` is the object itself."""


def parse_arguments(
    cls: type[T], values: Mapping[str, Any], path: str, problems: list[str], **injected: Any
) -> T | None:
    """Make a `cls` from the values that a file has at `path`, or add to `problems` and return None.

    A null counts as not given. `injected` are fields that do not come from the file; a class that has no such field
    does without. Whatever `__post_init__` raises is a problem of the whole object.
    """
    made: T | None = _read_object(cls, values, path, problems, injected)
    return made


def arguments_of(made: Any) -> dict[str, Any]:
    """Return the arguments of a plugin as a file would spell them."""
    return {
        argument.key: _written(value)
        for argument in _arguments(made.__class__)
        if (value := getattr(made, argument.name)) is not None
    }


def argument_texts(cls: type) -> list[str]:
    """Return a line about each argument: how files spell it, its type, its default."""
    defaults = {each.name: _default(each) for each in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else {}
    return [f"{each.key}: {_kind_text(each.kind)}{defaults[each.name]}" for each in _arguments(cls)]


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is not dataclasses.MISSING:
        value = _written(field.default)
        return f" = {value if isinstance(value, Mapping | list) else _shown(value)}"
    if field.default_factory is not dataclasses.MISSING:
        return f" = {_written(field.default_factory())}"
    return ", required"


def _kind_text(kind: Any) -> str:
    if isinstance(kind, type) and kind in _SCALARS:
        return _SCALARS[kind][0]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(repr(choice.value) for choice in kind)
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)


def unreadable_arguments(cls: type) -> list[str]:
    """Return the problems of the types of a plugin's fields: a file can have some types only."""
    try:
        arguments = _arguments(cls)
    except Exception as error:  # noqa: BLE001  evaluates the author's annotations
        return [f"the types of its fields cannot be read: {type(error).__name__}: {error}"]
    return [
        f"its field {each.name} has the type {each.kind}, which cannot be read from a file"
        for each in arguments
        if not _is_readable(each.kind)
    ]


def _is_readable(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    if origin is Any or origin is Literal:
        return True
    if origin in (Union, types.UnionType):
        return all(_is_readable(member) for member in get_args(kind) if member is not types.NoneType)
    if not isinstance(origin, type):
        return False
    if origin in _SCALARS or issubclass(origin, Enum):
        return True
    if dataclasses.is_dataclass(origin) or issubclass(origin, msgspec.Struct):
        return not unreadable_arguments(origin)
    if issubclass(origin, Mapping):
        return not get_args(kind) or _is_readable(get_args(kind)[1])
    if issubclass(origin, Sequence | AbstractSet):
        return not get_args(kind) or _is_readable(get_args(kind)[0])
    return False


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown `name`: the most similar known one, if there is any."""
    near = near_names(name, known)
    return f"; did you mean {near[0]!r}?" if near else ""


class _Argument(NamedTuple):
    name: str
    key: str
    kind: Any
    required: bool
    has_two_spellings: bool = False


@cache
def _arguments(cls: type) -> tuple[_Argument, ...]:
    """A plugin that is no dataclass has no arguments."""
    if issubclass(cls, msgspec.Struct):
        return tuple(_Argument(f.name, f.encode_name, f.type, f.required) for f in msgspec.structs.fields(cls))
    if not dataclasses.is_dataclass(cls):
        return ()
    hints = get_type_hints(cls)
    return tuple(
        _Argument(
            f.name,
            f.metadata.get(YAML, camel_case(f.name)),
            hints[f.name],
            f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING,
            has_two_spellings=True,
        )
        for f in dataclasses.fields(cls)
        if f.init
    )


def _read_object(
    cls: Any,
    value: object,
    path: str,
    problems: list[str],
    injected: Mapping[str, Any] = types.MappingProxyType({}),
) -> Any:
    if not isinstance(value, Mapping):
        return _wrong("a mapping", value, path, problems)
    arguments = _arguments(cls)
    given = {argument.name: injected[argument.name] for argument in arguments if argument.name in injected}
    readable = [argument for argument in arguments if argument.name not in injected]
    before = len(problems)
    wrong = _read_fields(readable, value, given, path, problems)
    missing = [argument for argument in readable if argument.required and argument.name not in given]
    problems.extend(f"{join(path, each.key)}: {required()}" for each in missing if each.key not in wrong)
    if missing:
        return None
    # Where some fields are wrong, the rules for the others are still checked, with defaults in the place of wrong ones.
    try:
        made = cls(**given)
    except Exception as error:  # noqa: BLE001  the class's own code: whatever it raises is reported
        if len(problems) == before:
            detail = str(error) if isinstance(error, TypeError | ValueError) else described_with_place(error)
            problems.append(f"{path}: {detail}" if path else detail)
        return None
    if isinstance(made, HasRules):
        try:
            broken = [(field, message) for field, message in made.problems() if _first_key(field) not in wrong]
        except Exception as error:  # noqa: BLE001  likewise
            broken = [("", f"problems: {described_with_place(error)}")]
        problems.extend(f"{join(path, field)}: {message}" for field, message in broken)
    return made if len(problems) == before else None


def _read_fields(
    arguments: Sequence[_Argument], value: Mapping[Any, Any], given: dict[str, Any], path: str, problems: list[str]
) -> set[str]:
    """Put what can be read into `given`; return the keys of what cannot."""
    by_key = {argument.name: argument for argument in arguments if argument.has_two_spellings}
    by_key |= {argument.key: argument for argument in arguments}
    wrong: set[str] = set()
    for key, item in value.items():
        at = join(path, str(key))
        argument = by_key.get(key) if isinstance(key, str) else None
        if argument is None:
            known = [each.key for each in arguments] if len(problems) < MAX_HINTS else []
            problems.append(f"{at}: unknown field{did_you_mean(str(key), known)}")
        elif argument.name in given or argument.key in wrong:
            problems.append(f"{at}: given twice, as {argument.key!r} and {argument.name!r}")
        elif item is not None:
            before = len(problems)
            read = _read(argument.kind, item, at, problems)
            if len(problems) == before:
                given[argument.name] = read
            else:
                wrong.add(argument.key)
    return wrong


def _read(kind: Any, value: object, path: str, problems: list[str]) -> Any:
    """Return `value` as `kind`. If it is not one, add to `problems`; the returned value then means nothing."""
    origin = get_origin(kind) or kind
    if origin is Any:
        return frozen(value)
    if origin in (Union, types.UnionType):
        return _read_union(kind, value, path, problems)
    if origin is Literal:
        return _read_choice({choice: choice for choice in get_args(kind)}, value, path, problems)
    if isinstance(origin, type):
        if origin in _SCALARS:
            return _read_scalar(origin, value, path, problems)
        if issubclass(origin, Enum):
            return _read_choice({choice.value: choice for choice in origin}, value, path, problems)
        if dataclasses.is_dataclass(origin) or issubclass(origin, msgspec.Struct):
            return _read_object(origin, value, path, problems)
        if issubclass(origin, Mapping):
            return _read_mapping(kind, value, path, problems)
        if issubclass(origin, Sequence | AbstractSet):
            return _read_list(kind, origin, value, path, problems)
    raise TypeError(f"{path}: fields of type {kind} cannot be read from a file")


def _read_union(kind: Any, value: object, path: str, problems: list[str]) -> Any:
    members = [member for member in get_args(kind) if member is not types.NoneType]
    for member in members:
        mine: list[str] = []
        read = _read(member, value, path, mine)
        if not mine:
            return read
    if len(members) == 1:
        problems.extend(mine)
        return None
    names = [_SCALARS[member][0] if member in _SCALARS else str(member) for member in members]
    return _wrong(" or ".join(names), value, path, problems)


def _read_choice(choices: Mapping[Any, Any], value: object, path: str, problems: list[str]) -> Any:
    for choice, meaning in choices.items():
        if type(choice) is type(value) and choice == value:
            return meaning
    problems.append(f"{path}: {not_supported(value, choices)}")
    return None


def _read_mapping(kind: Any, value: object, path: str, problems: list[str]) -> Any:
    if not isinstance(value, Mapping):
        return _wrong("a mapping", value, path, problems)
    item_kind = get_args(kind)[1] if get_args(kind) else Any
    problems.extend(f"{path}[{key}]: the key must be a string" for key in value if not isinstance(key, str))
    return ReadOnlyDict({key: _read(item_kind, item, f"{path}[{key}]", problems) for key, item in value.items()})


def _read_list(kind: Any, origin: type, value: object, path: str, problems: list[str]) -> Any:
    if not isinstance(value, list | tuple):
        return _wrong("a list", value, path, problems)
    item_kind = get_args(kind)[0] if get_args(kind) else Any
    items, enough = [], len(problems) + MAX_HINTS
    for index, item in enumerate(value):
        items.append(_read(item_kind, item, f"{path}[{index}]", problems))
        if len(problems) > enough:
            break
    if issubclass(origin, list):
        return ReadOnlyList(items)
    return frozenset(items) if issubclass(origin, AbstractSet) else tuple(items)


def _read_scalar(kind: type, value: object, path: str, problems: list[str]) -> Any:
    name, convert = _SCALARS[kind]
    try:
        return convert(value)
    except TypeError:
        return _wrong(name, value, path, problems)
    except ValueError as error:
        problems.append(f"{path}: {error}")
        return None


def _exactly(kind: type) -> Callable[[Any], Any]:
    def convert(value: object) -> object:
        if type(value) is not kind:  # so bool is not an int
            raise TypeError
        return value

    return convert


def _int(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{_shown(value)} does not fit into 64 bits")
    return value


def _float(value: object) -> float:
    if not isinstance(value, float):
        return float(_int(value))
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, got {value}")
    return value


def _duration(value: object) -> Duration:
    if not isinstance(value, str):
        raise TypeError
    return Duration.parse(value)


_SCALARS: Final[Mapping[type, tuple[str, Callable[[Any], Any]]]] = {
    bool: ("bool", _exactly(bool)),
    int: ("int", _int),
    float: ("number", _float),
    str: ("string", _exactly(str)),
    Duration: ("a duration such as '15s'", _duration),
}


def _wrong(expected: str, value: object, path: str, problems: list[str]) -> Any:
    problems.append(f"{path}: expected {expected}, got {_shown(value)}" if path else f"expected {expected}")


def _shown(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            text = repr(value)
            return text if len(text) <= 60 else f"{text[:56]} ..."


def _written(value: object) -> Any:
    match value:
        case Duration():
            return str(value)
        case Enum():
            return value.value
        case Mapping():
            return {key: _written(item) for key, item in value.items()}
        case list() | tuple():
            return [_written(item) for item in value]
        case frozenset() | set():
            return sorted(map(_written, value))
        case msgspec.Struct():
            return arguments_of(value)
        case _:
            return arguments_of(value) if dataclasses.is_dataclass(value) else value


def camel_case(name: str) -> str:
    """Return how a file spells the field `name`."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(map(str.capitalize, rest))


def join(path: str, field: str) -> str:
    """Return the path of a field of the object at `path`."""
    if not path or not field:
        return path + field
    return f"{path}{field}" if field.startswith("[") else f"{path}.{field}"


def _first_key(field: str) -> str:
    return field.partition(".")[0].partition("[")[0]
