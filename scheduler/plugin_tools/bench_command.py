"""`loadmaster plugins bench`: what the plugins of a file add to a decision, as text and as JSON."""

import argparse
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from scheduler.api.decoding import convert
from scheduler.api.objects import Node
from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import allocatable_of
from scheduler.api.wording.text import printable
from scheduler.config.documents import parse_documents, read_file
from scheduler.config.load import config_from_dict, load_config
from scheduler.config.profiles import API_VERSION, KIND
from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    Plugin,
    PostFilterPlugin,
    QueueSortPlugin,
    ScorePlugin,
    SignPlugin,
)
from scheduler.plugin_loading.load import LoadedPlugins, load
from scheduler.plugin_loading.registry import PluginRegistry
from scheduler.plugin_loading.sources import Directory, PluginSources, read_sources
from scheduler.plugin_loading.trial import try_out
from scheduler.plugin_tools.bench import ALIKE, DIFFERENT, Bench, Workload, measure
from scheduler.plugin_tools.workload import POD
from scheduler.runtime.profile import POINTS
from scheduler.runtime.profile_spec import ProfileSpec
from scheduler.runtime.registry import Registry
from scheduler.testing.handles import DEFAULTS

MAX_NODES: Final = 100_000
MAX_SECONDS: Final = 3600
MAX_MANIFEST_BYTES: Final = 1 << 20

_SHAPES: Final = {ALIKE: "pods alike", DIFFERENT: "each its own shape"}


def report(options: argparse.Namespace, registry: Registry) -> str:
    """Measure, and return the text to print. `registry`: the plugins in addition to those of the file.

    Raises ConfigError.
    """
    if not 1 <= options.nodes <= MAX_NODES:
        raise ConfigError([f"--nodes: must be from 1 to {MAX_NODES}, got {options.nodes}"])
    if not 0 < options.seconds <= MAX_SECONDS:
        raise ConfigError([f"--seconds: must be more than 0 and at most {MAX_SECONDS}, got {options.seconds:g}"])
    node = {} if options.node is None else _node(options.node)
    pod = POD if options.pod is None else _pod(options.pod)
    loaded = load_file(options.file, registry)
    try:
        mine = {name: plugin for name, plugin in loaded.registry.items() if name not in registry}
        seconds = options.seconds / len(mine)
        found = []
        for name, plugin in mine.items():
            spec = _profile(name, loaded.registry, options.config)
            bench = Bench(plugin, spec, loaded.registry, options.nodes, node, pod, seconds)
            found.append((plugin, measure(bench)))
    finally:
        loaded.close()
    if options.output == "json":
        return json.dumps({"plugins": [_document(plugin, options.nodes, each) for plugin, each in found]}, indent=2)
    return "\n\n".join("\n".join(_text(plugin, options.nodes, each)) for plugin, each in found)


def _manifest(path: str, kind: str, check: Callable[[Any], object]) -> dict[str, Any]:
    """`check` raises ValueError for a manifest that is none."""
    documents = parse_documents(read_file(path, MAX_MANIFEST_BYTES), path)
    if len(documents) != 1 or not isinstance(documents[0].value, dict) or documents[0].value.get("kind") != kind:
        raise ConfigError([f"{path}: this is not one {kind}"])
    manifest: dict[str, Any] = {"metadata": {}, "spec": {}, **documents[0].value}
    try:
        check(manifest)
    except ValueError as error:
        raise ConfigError([f"{path}: {error}"]) from error
    return manifest


def _node(path: str) -> Mapping[str, Any]:
    return _manifest(path, "Node", lambda node: allocatable_of(convert(node, Node).status.allocatable))


def _pod(path: str) -> Mapping[str, Any]:
    pod = _manifest(path, "Pod", lambda pod: convert(pod, Pod).requests)
    if not pod["spec"].get("containers"):
        raise ConfigError([f"{path}: the pod has no containers"])
    return pod


def _profile(name: str, registry: Registry, config: str | None) -> ProfileSpec:
    """The first profile of a configuration that enables the plugin; without one, the default profile with it."""
    known = PluginRegistry(registry)
    if config is not None:
        found = next((each for each in load_config(config, known).profiles if name in each.enabled), None)
        if found is None:
            raise ConfigError([f"{config}: no profile enables {name}"])
        return found
    plugins: dict[str, Any] = {"multiPoint": {"enabled": [{"name": name}]}}
    if issubclass(registry[name], QueueSortPlugin):
        plugins["queueSort"] = {"enabled": [{"name": name}], "disabled": [{"name": "*"}]}
    for kind, point, default in (
        (BindPlugin, "bind", DEFAULTS["bind"]),
        (PostFilterPlugin, "postFilter", "DefaultPreemption"),
    ):
        if issubclass(registry[name], kind):  # before the default one, which leaves it nothing to do
            plugins[point] = {"enabled": [{"name": name}, {"name": default}]}
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    (spec,) = config_from_dict({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, known).profiles
    return spec


def _points(plugin: type[Plugin], workloads: Iterable[Workload]) -> list[str]:
    """The plugin's extension points in the order in which a pod meets them, then what else was called."""
    own = [
        "".join(map(str.capitalize, point.split("_"))) for point, kinds in POINTS.items() if issubclass(plugin, kinds)
    ]
    return list(dict.fromkeys([*own, *sorted({point for each in workloads for point in each.by_point})]))


def _form(plugin: type[Plugin], point: str) -> str:
    if point not in ("Filter", "Score"):
        return "once a pod"
    kind = FilterPlugin if point == "Filter" else ScorePlugin
    return "node by node" if issubclass(plugin, kind) else "by columns"


def _is_stored(plugin: type[Plugin], point: str) -> bool | None:
    return issubclass(plugin, SignPlugin) if point in ("Filter", "Score") else None


def _document(plugin: type[Plugin], nodes: int, workloads: list[Workload]) -> dict[str, Any]:
    return {
        "plugin": plugin.name,
        "nodes": nodes,
        "workloads": [
            {
                "pods": each.name,
                "decisions": each.decisions,
                "withoutMicroseconds": _micros(each.without),
                "withMicroseconds": _micros(each.with_plugin),
                "addedMicroseconds": _micros(each.added),
                "extensionPoints": [
                    {
                        "name": point,
                        "form": _form(plugin, point),
                        "signed": _is_stored(plugin, point),
                        "microseconds": _micros(each.by_point.get(point, 0.0)),
                    }
                    for point in _points(plugin, workloads)
                ],
                "placed": each.placed,
                "notPlaced": dict(each.problems),
            }
            for each in workloads
        ],
    }


def _micros(seconds: float) -> float:
    return round(seconds * 1e6, 1)


def _text(plugin: type[Plugin], nodes: int, workloads: list[Workload]) -> Iterator[str]:
    yield f"{plugin.name} on {nodes:,} nodes: medians in µs"
    yield ""
    yield _row("", "", "", (_SHAPES[each.name] for each in workloads))
    yield _row("a decision without it", "", "", (_shown(each.without) for each in workloads))
    yield _row("with it", "", "", (_shown(each.with_plugin) for each in workloads))
    yield _row("it adds", "", "", (_shown(each.added) for each in workloads))
    yield ""
    yield _row("ITS OWN CALLS", "ASKED", "SIGNED", ("" for _ in workloads))
    for point in _points(plugin, workloads):
        stored = {True: "yes", False: "no", None: "-"}[_is_stored(plugin, point)]
        times = (_shown(each.by_point.get(point, 0.0)) for each in workloads)
        yield _row(point, _form(plugin, point), stored, times)
    yield ""
    yield _row("decisions measured", "", "", (f"{each.decisions}" for each in workloads))
    yield _row("pods placed", "", "", (f"{each.placed}" for each in workloads))
    for problem, count in sorted({key: each.problems[key] for each in workloads for key in each.problems}.items()):
        yield printable(f"not placed: {count}: {problem}")
    slow = [point for point in ("Filter", "Score") if point in _points(plugin, ()) and not _is_stored(plugin, point)]
    if slow:
        yield 'It is asked about all nodes for each pod: see "When it must be fast" in docs/plugins.md.'


def _row(title: str, form: str, signed: str, cells: Iterable[str]) -> str:
    return f"{title:<24}{form:<14}{signed:<8}{''.join(f'{cell:>20}' for cell in cells)}".rstrip()


def _shown(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


def load_file(path: str, known: Registry) -> LoadedPlugins:
    """Load the plugins of a Python file as the scheduler does, after a trial in a process of its own.

    Of the other files next to it, only those are there that it may import: their names begin with an underscore.
    `known`: the plugins that have their names already. Raises ConfigError with everything that is wrong.
    """
    folder, name = os.path.split(path)
    if not os.path.isfile(path):
        raise ConfigError([f"{path}: {'this is no file' if os.path.exists(path) else 'there is no such file'}"])
    problems: list[str] = []
    (directory,) = read_sources([folder or os.curdir], (), (), problems).directories
    shown = os.path.join(directory.path, name)
    files = tuple(file for file in directory.files if file.path == shown or not file.is_plugin)
    ours = [file for file in files if file.path == shown]
    if not ours or not ours[0].is_plugin:
        about_it = [problem for problem in problems if problem.startswith(f"{shown}:")]
        raise ConfigError(about_it or [f"{path}: plugins are in files whose names end in .py; tests and _… are none"])
    sources = PluginSources((Directory(directory.path, files),))
    wrong = try_out(sources, known)
    if wrong:
        raise ConfigError(wrong)
    return load(sources, known, {})
