"""The classes of a module that are plugins, and the problems of a plugin before it is ever called.

Among these are mistakes that would only show at run time, or not at all: a method that is never called because its base
is missing, a coroutine where nothing is awaited, a method with other parameters than it is called with.
"""

import ast
import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, NamedTuple

from scheduler.api.wording.near_names import near_names
from scheduler.framework import plugin as points
from scheduler.framework.arguments import unreadable_arguments
from scheduler.framework.nodes.nodes import Aspect
from scheduler.framework.plugin import Plugin, SignPlugin, Write


class Lines(NamedTuple):
    """The lines of one module. What is not found has the line of what it is in."""

    file: str
    classes: dict[str, int]
    members: dict[tuple[str, str], int]
    """(Class, method or attribute) → line."""

    def of(self, cls: str, member: str = "") -> str:
        """Return `file:line` of a class, or of a member of it."""
        line = self.members.get((cls, member)) or self.classes.get(cls)
        return f"{self.file}:{line}" if line else self.file


def lines_of(module: ModuleType) -> Lines:
    """Return the lines of a module that was imported, if its source is available."""
    try:
        source = inspect.getsource(module)
        file = inspect.getsourcefile(module) or module.__name__
    except (OSError, TypeError, SyntaxError):
        return Lines(getattr(module, "__file__", None) or module.__name__, {}, {})
    return lines_in(source, file)


@lru_cache(maxsize=64)
def lines_in(source: str | bytes, file: str) -> Lines:
    """Return the lines of a source that can be compiled."""
    lines = Lines(file, {}, {})
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            lines.classes.setdefault(node.name, node.lineno)
            for statement in node.body:
                for name in _names(statement):
                    lines.members[node.name, name] = statement.lineno
    return lines


def _names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case _:
            return []


INTERFACES: Final[tuple[type[Plugin], ...]] = tuple(
    each
    for each in vars(points).values()
    if inspect.isclass(each) and issubclass(each, Plugin) and each.__module__ == points.__name__
)
"""Plugin, and a class for each extension point."""

_METHODS: Final[Mapping[str, type[Plugin]]] = {
    name: interface
    for interface in INTERFACES
    for name, member in vars(interface).items()
    if inspect.isfunction(member) and not name.startswith("_")
}
"""Method → the interface that has it."""

_ALONE: Final = (points.SignPlugin, points.PreFilterExtensions, points.NormalizeScorePlugin)
"""Interfaces that add to others, and are no extension points by themselves."""

MAX_NAME: Final = 100
"""Characters of a plugin's name, which is a label of metrics."""

_FLAGS: Final = ("reads_raw_pods", "signs_spec", "normalizes_by_range")
_EITHER: Final[Sequence[tuple[type, type]]] = (
    (points.FilterPlugin, points.FilterNodesPlugin),
    (points.ScorePlugin, points.ScoreNodesPlugin),
)
_FRAMEWORK: Final = "scheduler.framework"

Problem = tuple[str, str]
"""A method or an attribute, or empty for the class as a whole; its problem."""


def plugin_classes(module: ModuleType) -> list[type[Plugin]]:
    """Return the plugins that a module, or a package with its modules, defines: imported ones are left out.

    Classes whose names begin with an underscore are bases of others.
    """
    found = {each: None for name, each in vars(module).items() if inspect.isclass(each) and not name.startswith("_")}
    return [each for each in found if issubclass(each, Plugin) and _is_of(module, each)]


def without_plugin(module: ModuleType) -> str:
    """Return what to say of a module in which there is no plugin."""
    for each in vars(module).values():
        if inspect.isclass(each) and _is_of(module, each):
            called = [name for name in vars(each) if name in _METHODS]
            if called:
                lacks = f"has a method {called[0]}, but does not inherit {_METHODS[called[0]].__name__}"
                return f"there is no plugin in it: {each.__name__} {lacks}"
    return "there is no plugin in it: a class that inherits FilterPlugin, or another one of scheduler.framework"


def class_problems(cls: type) -> list[Problem]:
    """Return all that is wrong with the class of a plugin."""
    problems = [*_interface_problems(cls), *_attribute_problems(cls)]
    if not inspect.isabstract(cls):
        problems += (("", problem) for problem in unreadable_arguments(cls))
    return problems


def placed(cls: type[Plugin], problems: Iterable[Problem], lines: Lines) -> list[str]:
    """Return the problems as lines: file, line, class."""
    return [f"{lines.of(cls.__name__, member)}: {cls.__name__}: {problem}" for member, problem in problems]


def _is_of(module: ModuleType, cls: type[Any]) -> bool:
    return cls.__module__ == module.__name__ or cls.__module__.startswith(f"{module.__name__}.")


def _interface_problems(cls: type) -> Iterator[Problem]:
    if all(issubclass(base, _ALONE) or base is Plugin for base in INTERFACES if issubclass(cls, base)):
        yield "", "it inherits no extension point, such as FilterPlugin: it would never be called"
    for forms in _EITHER:
        if all(issubclass(cls, form) for form in forms):
            yield "", f"it inherits {' and '.join(form.__name__ for form in forms)}, of which a plugin has one"
    own = [each for each in vars(cls) if each not in _METHODS and inspect.isroutine(vars(cls)[each])]
    for name in sorted(getattr(cls, "__abstractmethods__", ())):
        near = near_names(name, own)
        misspelt = f"; is its method {near[0]} meant to be it?" if near else ""
        yield "", f"it lacks the method {name}{_signature(_METHODS.get(name), name)}{misspelt}"
    for name, interface in _METHODS.items():
        member = inspect.getattr_static(cls, name, None)
        if member is None or _is_inherited(cls, name):
            continue
        if issubclass(cls, interface):
            yield from _method_problems(name, member, vars(interface)[name])
        elif inspect.isroutine(member):
            bases = " or ".join(each.__name__ for each in INTERFACES if name in vars(each))
            yield name, f"it has a method {name}, which is never called: inherit {bases}, or choose another name"


def _is_inherited(cls: type, name: str) -> bool:
    """Return whether what a class has by this name is the interface's own."""
    owner = next(each for each in cls.__mro__ if name in vars(each))
    return owner.__module__.startswith(_FRAMEWORK)


def _method_problems(name: str, member: Any, expected: Callable[..., Any]) -> Iterator[Problem]:
    bound = isinstance(member, staticmethod)
    function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
    if not callable(function):
        yield name, f"{name} is no method, but a {type(member).__name__}"
        return
    if inspect.iscoroutinefunction(expected):
        if inspect.isfunction(function) and not hasattr(function, "__wrapped__") and not _is_coroutine(function):
            yield name, f"{name} is awaited: write `async def {name}`"
    elif _is_coroutine(function):
        yield name, f"{name} is a coroutine, but is not awaited: write `def {name}`"
    elif inspect.isgeneratorfunction(function) and name != "events_to_register":
        yield name, f"{name} has a `yield`, so that it answers with a generator: return the answer"
    try:
        parameters = inspect.signature(function)
        asked = list(inspect.signature(expected).parameters)
        parameters.bind(*asked[1:] if bound else asked)
    except (TypeError, ValueError) as error:
        if isinstance(error, TypeError):
            yield name, f"{name} is called with ({', '.join(asked)}), but takes {parameters}"


def _is_coroutine(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _signature(interface: type[Plugin] | None, name: str) -> str:
    if interface is None:
        return "()"
    parameters = inspect.signature(vars(interface)[name]).parameters
    return f"({', '.join(each for each in parameters)})"


def _attribute_problems(cls: type[Any]) -> Iterator[Problem]:
    of_instances = {each.name for each in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for attribute in ("name", "reads", "parts", "writes", "aspects", "signs_despite_objects", *_FLAGS):
        if attribute in of_instances:
            yield attribute, f"{attribute} would be an argument of the plugin: write `{attribute}: ClassVar[…] = …`"
    if "handle" in of_instances:
        yield "handle", "handle would be an argument of the plugin: take the handle in `start(self, handle)`"
    if "name" not in of_instances:
        yield from _name_problems(cls)
    for attribute, is_right, expected in _EXPECTED:
        value = getattr(cls, attribute, None)
        if attribute not in of_instances and value is not None and not is_right(value):
            yield attribute, f"{attribute} should be {expected}, not {value!r:.100}"
    if issubclass(cls, SignPlugin) and getattr(cls, "aspects", None) is None:
        yield "", "it signs pods, so it says what it reads of nodes: `aspects: ClassVar[fw.Aspect] = fw.Aspect.LABELS`"


def _name_problems(cls: type[Any]) -> Iterator[Problem]:
    name = getattr(cls, "name", None)
    if name is None:
        yield "", f'it has no name: write `name: ClassVar[str] = "{cls.__name__}"` into it'
    elif not isinstance(name, str):
        yield "name", f"its name should be a string, not {name!r:.100}"
    elif not name or not name.isprintable() or " " in name:
        yield "name", f"its name {name!r:.100} should be one word"
    elif len(name) > MAX_NAME:
        yield "name", f"its name {name!r:.100}… should have at most {MAX_NAME} characters"


def _is_strings(value: object) -> bool:
    """A string is a sequence of strings too, but never what was meant."""
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)


_EXPECTED: Final[Sequence[tuple[str, Callable[[Any], bool], str]]] = (
    ("reads", _is_strings, "a tuple of resources, such as (fw.SERVICE,)"),
    (
        "parts",
        lambda value: isinstance(value, Mapping) and all(map(_is_strings, value.values())),
        'a mapping of resources to tuples of paths, such as {fw.SERVICE: ("spec.selector",)}',
    ),
    (
        "writes",
        lambda value: isinstance(value, Sequence) and all(isinstance(each, Write) for each in value),
        "a tuple of fw.Write",
    ),
    ("aspects", lambda value: isinstance(value, Aspect), "fw.Aspect.LABELS or others of fw.Aspect, joined by |"),
    ("signs_despite_objects", lambda value: isinstance(value, str), "a sentence"),
    *((flag, lambda value: isinstance(value, bool), "True or False") for flag in _FLAGS),
)
"""Attribute, what is right, and how that is said."""
