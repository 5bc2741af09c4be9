"""From sources to plugin classes by name, or to all of their problems: one line each, with file and line.

    read_sources ──► try_out ──► load ──► LoadedPlugins.registry
                     (child)     (here)

`load` depends on nothing but its arguments and what is installed, so a reload calls it with new sources and, if it
raises, goes on with what it has.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple

from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import Plugin
from scheduler.plugin_loading.classes import (
    Lines,
    class_problems,
    lines_in,
    lines_of,
    placed,
    plugin_classes,
    without_plugin,
)
from scheduler.plugin_loading.modules import FilesPackage, ImportProblem, import_file, import_installed
from scheduler.plugin_loading.sources import Directory, EntryPoint, PluginSources
from scheduler.runtime.registry import Registry

IN_TREE = "in-tree"
PROGRAM = "program"

Begun = Callable[[str], None]
"""Is called with the name of the next module."""


class FoundPlugin(NamedTuple):
    plugin: type[Plugin]
    origin: str
    """`in-tree`, `program`, `DIR/FILE.py:LINE`, `module …`, `entry point of …`."""


@dataclass(frozen=True, slots=True)
class LoadedPlugins:
    """Every plugin that a configuration may name."""

    registry: Registry
    origins: Mapping[str, str]
    """Plugin → where it is from."""

    sources: PluginSources = field(default_factory=PluginSources)
    packages: Sequence[FilesPackage] = ()

    def close(self) -> None:
        """Forget the modules of files, when no plugin of theirs is used any more."""
        for package in self.packages:
            package.close()


def load(sources: PluginSources, in_tree: Registry, given: Registry, begun: Begun = lambda _: None) -> LoadedPlugins:
    """Import all plugins, except those in-tree and those that a program of its own has given.

    Raises ConfigError with everything that is wrong; then nothing is left loaded.
    """
    problems: list[str] = []
    packages = [FilesPackage(directory) for directory in sources.directories]
    found = [FoundPlugin(plugin, IN_TREE) for plugin in in_tree.values()]
    found += _given(given, problems)
    for directory, package in zip(sources.directories, packages, strict=True):
        found += _of_files(directory, package, problems, begun)
    for name in sources.modules:
        begun(name)
        found += _of_module(name, problems)
    for entry_point in sources.entry_points:
        begun(entry_point.value)
        found += _of_entry_point(entry_point, problems)
    by_name = _by_name(found, problems)
    if problems:
        for package in packages:
            package.close()
        raise ConfigError(list(dict.fromkeys(problems)))
    registry = {name: each.plugin for name, each in by_name.items()}
    return LoadedPlugins(registry, {name: each.origin for name, each in by_name.items()}, sources, packages)


def _given(given: Mapping[str, Any], problems: list[str]) -> Iterator[FoundPlugin]:
    for name, plugin in given.items():
        if not (inspect.isclass(plugin) and issubclass(plugin, Plugin)):
            problems.append(f"plugin {name!r} of the program is no class that inherits scheduler.framework.Plugin")
            continue
        lines = _lines_of_class(plugin)
        for found in _checked(plugin, lines, f"{PROGRAM}, {lines.of(plugin.__name__)}", problems):
            if plugin.name == name:
                yield found
            else:
                problems.append(f"plugin {name!r} is registered under another name than its own, {plugin.name!r}")


def _of_files(directory: Directory, package: FilesPackage, problems: list[str], begun: Begun) -> Iterator[FoundPlugin]:
    for name, file in package.plugin_files():
        begun(file.path)
        try:
            module = import_file(package, name, file)
        except ImportProblem as problem:
            problems.append(str(problem))
            continue
        classes = plugin_classes(module)
        if not classes:
            problems.append(f"{file.path}: {without_plugin(module)}")
        lines = lines_in(file.content, file.path)
        for cls in classes:
            yield from _checked(cls, lines, lines.of(cls.__name__), problems)


def _of_module(path: str, problems: list[str]) -> Iterator[FoundPlugin]:
    """`package.module` with all of its plugins, or one of them: `package.module:Class`."""
    name, _, attribute = path.partition(":")
    place = f"module {name}"
    try:
        module = import_installed(name, place)
    except ImportProblem as problem:
        problems.append(str(problem))
        return
    if attribute:
        yield from _named(module, attribute, place, problems)
        return
    classes = plugin_classes(module)
    if not classes:
        problems.append(f"{place}: {without_plugin(module)}")
    for cls in classes:
        yield from _checked(cls, _lines_of_class(cls), place, problems)


def _of_entry_point(entry_point: EntryPoint, problems: list[str]) -> Iterator[FoundPlugin]:
    name, _, attribute = entry_point.value.partition(":")
    place = f"entry point {entry_point.name} of {entry_point.package}"
    try:
        module = import_installed(name.strip(), place)
    except ImportProblem as problem:
        problems.append(str(problem))
        return
    if not attribute:
        problems.append(f"{place}: {name!r} is a module; it should name a class of it, as {name}:Class")
        return
    for found in _named(module, attribute.strip(), place, problems):
        if found.plugin.name != entry_point.name:
            problems.append(f"{place}: this is the plugin {found.plugin.name!r}: the entry point should have its name")
            continue
        yield found


def _named(module: ModuleType, attribute: str, place: str, problems: list[str]) -> Iterator[FoundPlugin]:
    cls: Any = module
    for part in attribute.split("."):
        cls = getattr(cls, part, None)
    if cls is None:
        problems.append(f"{place}: there is no {attribute} in {module.__name__}")
    elif not (inspect.isclass(cls) and issubclass(cls, Plugin)):
        what = "does not inherit one" if inspect.isclass(cls) else f"is no class, but of type {type(cls).__name__}"
        problems.append(f"{place}: {attribute} {what}; a plugin inherits FilterPlugin, or another extension point")
    else:
        yield from _checked(cls, _lines_of_class(cls), place, problems)


def _lines_of_class(cls: type[Plugin]) -> Lines:
    return lines_of(inspect.getmodule(cls) or ModuleType(cls.__module__))


def _checked(cls: type[Plugin], lines: Lines, origin: str, problems: list[str]) -> Iterator[FoundPlugin]:
    wrong = placed(cls, class_problems(cls), lines)
    problems += wrong
    if not wrong:
        yield FoundPlugin(cls, origin)


def _by_name(found: Iterable[FoundPlugin], problems: list[str]) -> dict[str, FoundPlugin]:
    by_name: dict[str, FoundPlugin] = {}
    for each in found:
        name = each.plugin.name
        first = by_name.setdefault(name, each)
        if first is each or first.plugin is each.plugin:
            continue
        if first.origin == IN_TREE:
            problems.append(f"{each.origin}: {name!r} is the name of a plugin that is in-tree: choose another one")
        else:
            problems.append(f"{each.origin}: {name!r} is the name of another plugin already, {first.origin}")
    return by_name
