"""All plugins that a configuration may name, by name.

in-tree, and given by a program ─► made ─► prepare (reads, tries out; blocks) ─► load ─► the configuration's too
                                     ▲                                            │
                                     └──────────── renewed: for a reload ─────────┘
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import Plugin
from scheduler.plugin_loading.load import LoadedPlugins, load
from scheduler.plugin_loading.sources import EntryPoint, PluginSources, installed_entry_points, read_sources
from scheduler.plugin_loading.trial import SECONDS, try_out, try_out_meanwhile
from scheduler.runtime.registry import Registry


class PluginRequest(NamedTuple):
    """A configuration's sources of plugins."""

    directories: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    names: frozenset[str] | None = frozenset()
    """The plugins that it names: entry points of other names are left alone. None: all of them are wanted."""

    config: object = None
    """All of it, as parsed: plugins are tried out with it."""


class PluginRegistry(Mapping[str, type[Plugin]]):
    """A registry, for one configuration. It does not change after `load`."""

    def __init__(
        self,
        in_tree: Registry,
        given: Registry | None = None,
        directories: Sequence[str] = (),
        *,
        before: "PluginRegistry | None" = None,
        seconds: float = SECONDS,
    ) -> None:
        """`directories`: of the command line, in addition to those of a configuration; `seconds`: for the import of a
        module.

        `before`: an earlier one, whose plugins are taken again if no file has changed since. Raises ConfigError for
        plugins that were given.
        """
        self._in_tree, self._given = in_tree, given or {}
        self.directories = tuple(directories)
        """Those of the command line."""
        self._before = None if before is None else before.loaded
        self._config_before = None if before is None else before._config
        self._config: object = None
        """With which the plugins were tried out."""
        self._seconds = seconds
        self._wants_every_entry_point = False
        self._unread: list[str] = []
        """The parts of it that could not be read."""
        self._prepared: tuple[PluginRequest, PluginSources] | None = None
        self.loaded: LoadedPlugins = load(PluginSources(), self._in_tree, self._given)
        """Of all plugins, the classes and where they are from."""

    def want_every_entry_point(self) -> None:
        """Load from now on what packages offer, whether a profile names it or not."""
        self._wants_every_entry_point = True

    def prepare(self, request: PluginRequest) -> None:
        """Read the sources and try the plugins out in a process of their own; blocks for as long as that takes.

        Raises ConfigError with everything that is wrong.
        """
        sources = self._read(request)
        is_new = self._is_new(sources, request)
        self._refuse(try_out(sources, self.loaded.registry, self._seconds, request.config) if is_new else [])
        self._prepared = request, sources

    async def prepare_meanwhile(self, request: PluginRequest) -> None:
        """The same, while others go on."""
        sources = self._read(request)
        is_new = self._is_new(sources, request)
        self._refuse(
            await try_out_meanwhile(sources, self.loaded.registry, self._seconds, request.config) if is_new else []
        )
        self._prepared = request, sources

    def _read(self, request: PluginRequest) -> PluginSources:
        self._prepared, self._unread = None, []
        names = None if self._wants_every_entry_point else request.names
        entry_points = _wanted(names, self.loaded.registry)
        directories = (*self.directories, *request.directories)
        return read_sources(directories, request.modules, entry_points, self._unread)

    def _is_new(self, sources: PluginSources, request: PluginRequest) -> bool:
        self._config = request.config
        is_known = self._before is not None and self._before.sources == sources
        return bool(sources) and not (is_known and self._config_before == request.config)

    def _refuse(self, problems: Sequence[str]) -> None:
        if self._unread or problems:
            raise ConfigError([*self._unread, *problems])

    def load(self, request: PluginRequest) -> None:
        """Load what a configuration asks for: quick, if it was prepared. Raises ConfigError, which changes nothing."""
        if self._prepared is None or self._prepared[0] != request:
            self.prepare(request)
        assert self._prepared is not None
        sources = self._prepared[1]
        if self._before is not None and self._before.sources == sources:
            self.loaded = self._before
        else:
            self.loaded = load(sources, self._in_tree, self._given)

    def renewed(self) -> "PluginRegistry":
        """Return a registry for the next version of the configuration; files that have not changed stay loaded."""
        return PluginRegistry(self._in_tree, self._given, self.directories, before=self, seconds=self._seconds)

    def close(self, successor: "PluginRegistry | None" = None) -> None:
        """Forget the modules of files, when no plugin of this registry is used any more, except those of a
        successor."""
        if successor is None or successor.loaded is not self.loaded:
            self.loaded.close()

    def __getitem__(self, name: str) -> type[Plugin]:
        return self.loaded.registry[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.loaded.registry)

    def __len__(self) -> int:
        return len(self.loaded.registry)


def _wanted(names: frozenset[str] | None, known: Registry) -> list[EntryPoint]:
    """The entry points of these names. Searching installed packages takes a while, so known plugins are left out."""
    if names is not None and names <= known.keys():
        return []
    return [each for each in installed_entry_points() if names is None or each.name in names]
