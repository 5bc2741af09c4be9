"""The plugins of one file, whatever else is in its directory."""

import os

from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.load import LoadedPlugins, load
from scheduler.plugin_loading.sources import Directory, PluginSources, read_sources
from scheduler.plugin_loading.trial import try_out
from scheduler.runtime.registry import Registry


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
