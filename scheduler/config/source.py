"""The source of the configuration: read at the start, and again whenever it may have changed.

Plugins come with it, from files and modules. They are first tried out in a process of their own, which takes a while: a
running scheduler goes on meanwhile.
"""

import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scheduler.config.documents import STDIN
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.load import ConfigFile, config_of, read_config, requested_plugins
from scheduler.config.options import RunOptions
from scheduler.config.types import DEFAULT_GATES, Config
from scheduler.plugin_loading.registry import PluginRegistry, PluginRequest
from scheduler.runtime.guards.plugin_exits import refused_exits
from scheduler.runtime.registry import Registry

MAX_FILES: Final = 10_000
"""Of a directory of plugins that are looked at for changes."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, with the plugins that it may name."""

    config: Config
    registry: Registry


class ConfigurationSource:
    """The file and the plugins, as the options of `run` name them."""

    def __init__(self, options: RunOptions, gates: FeatureGates = DEFAULT_GATES) -> None:
        self._options = options
        self._gates = gates
        self._directories: tuple[str, ...] = ()
        """All directories of plugins: those of the command line, and those of the newest configuration."""

    @property
    def name(self) -> str:
        """The file; empty if there is none."""
        return self._options.config or ""

    def load(self) -> Loaded:
        """Read everything. Raises ConfigError."""
        file, registry = read_config(self._options.config), self._options.registry
        if isinstance(registry, PluginRegistry):
            registry.prepare(self._request(file, registry))
        with refused_exits():
            return self._load(file, registry)

    async def load_again(self, before: Registry) -> Loaded:
        """Read everything again; `before`: the plugins so far, of which files that have not changed stay loaded.

        Raises ConfigError.
        """
        file, registry = read_config(self._options.config, pipe_seconds=0.0), before  # a scheduler at work cannot wait
        if isinstance(before, PluginRegistry):
            registry = renewed = before.renewed()
            await renewed.prepare_meanwhile(self._request(file, renewed))
        with refused_exits():
            return self._load(file, registry)

    def _request(self, file: ConfigFile | None, registry: PluginRegistry) -> PluginRequest:
        values = {} if file is None else file.values
        request = requested_plugins(values if isinstance(values, Mapping) else {})
        self._directories = (*registry.directories, *request.directories)
        return request

    def _load(self, file: ConfigFile | None, registry: Registry) -> Loaded:
        options = self._options
        config = config_of(file, registry, options.leader_election, options.deprecated, self._gates)
        own = registry.directories if isinstance(registry, PluginRegistry) else ()
        self._directories = (*own, *config.loadmaster.plugin_directories)
        return Loaded(config, registry)

    def signature(self) -> Hashable:
        """Something that is another one once a file has changed; None if none can.

        Also if a link to it points elsewhere, or if it is overwritten in place and has the size and the time of before.
        """
        path = self._options.config
        if path == STDIN:
            return None  # it is read once, and without it nothing can be read again
        file = None if path is None else _stamp(Path(path))
        return file, tuple(tuple(_stamps(directory)) for directory in self._directories)


def _stamps(directory: str) -> Iterator[Hashable]:
    yield _stamp(Path(directory))
    try:
        names = sorted(name for name in os.listdir(directory)[:MAX_FILES] if name.endswith(".py"))
    except OSError as error:
        yield str(error)
        return
    for name in names:
        yield name, _stamp(Path(directory, name))


def _stamp(path: Path) -> Hashable:
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        return type(error).__name__, str(error)
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
