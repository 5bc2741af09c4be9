"""The sources of plugins at one moment: their bytes are read, and nothing is run.

A directory may be a mounted ConfigMap. Its files are links to `..data/NAME`, and `..data` is a link that changes when
the ConfigMap does: so all files are read behind one reading of that link, or they might be of two versions.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from scheduler.files.reading import read

ENTRY_POINTS: Final = "loadmaster.plugins"
"""The group in which an installed package names its plugins."""

MAX_BYTES: Final = 4 * 2**20
"""Of one file. A ConfigMap has 1 MiB at most."""

_SWAPPED: Final = "..data"
_TRIES: Final = 5
"""Readings of a directory whose link changes meanwhile."""


class PluginFile(NamedTuple):
    """A file as it was read."""

    path: str
    """As the user named its directory."""

    content: bytes

    @property
    def stem(self) -> str:
        return Path(self.path).stem

    @property
    def is_plugin(self) -> bool:
        """Whether a plugin is expected in it. Others are for imports, `from ._shared import …`, or for pytest."""
        return not (self.stem.startswith(("_", "test_")) or self.stem.endswith("_test") or self.stem == "conftest")


class Directory(NamedTuple):
    """A directory with the Python files directly in it, by name."""

    path: str
    files: tuple[PluginFile, ...]


class EntryPoint(NamedTuple):
    """An installed package's entry point for a plugin."""

    name: str
    """The plugin's name."""

    value: str
    """`package.module:Class`."""

    package: str
    """The installed package and its version."""


@dataclass(frozen=True, slots=True)
class PluginSources:
    """The plugins to load. Equal ones mean that nothing has changed on disk."""

    directories: tuple[Directory, ...] = ()
    modules: tuple[str, ...] = ()
    """`package.module`, or `package.module:Class` for one plugin of several."""

    entry_points: tuple[EntryPoint, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.directories or self.modules or self.entry_points)


def read_sources(
    directories: Sequence[str], modules: Sequence[str], entry_points: Sequence[EntryPoint], problems: list[str]
) -> PluginSources:
    """Read the files in the directories; add what cannot be read to `problems`. What is named twice counts once."""
    by_place: dict[str, str] = {}
    for path in directories:
        by_place.setdefault(os.path.realpath(path), path)
    read = [_directory(path, problems) for path in by_place.values()]
    return PluginSources(tuple(read), tuple(dict.fromkeys(modules)), tuple(entry_points))


def installed_entry_points() -> list[EntryPoint]:
    """Return what installed packages offer. None of it is imported for that."""
    return sorted(
        EntryPoint(each.name, each.value, _package(each)) for each in metadata.entry_points(group=ENTRY_POINTS)
    )


def _package(entry_point: metadata.EntryPoint) -> str:
    return f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist is not None else "?"


def _directory(path: str, problems: list[str]) -> Directory:
    for tries_left in reversed(range(_TRIES)):
        seen = _link(path)
        found: list[str] = []
        files = tuple(_files(path, os.path.realpath(os.path.join(path, _SWAPPED)) if seen else path, found))
        if _link(path) == seen or not tries_left:  # else files of the version before are gone, or will be
            problems += found
            return Directory(path, files)
    raise AssertionError("unreachable")


def _link(path: str) -> str:
    """The target of a mounted ConfigMap's link; empty for any other directory."""
    try:
        return os.readlink(os.path.join(path, _SWAPPED))
    except OSError:
        return ""


def _files(path: str, real: str, problems: list[str]) -> Iterator[PluginFile]:
    try:
        names = sorted(name for name in os.listdir(real) if name.endswith(".py") and not name.startswith("."))
    except OSError as error:
        problems.append(f"{path}: the directory of plugins cannot be read: {error.strerror}")
        return
    for name in names:
        shown = os.path.join(path, name)
        try:
            yield PluginFile(shown, read(os.path.join(real, name), MAX_BYTES))
        except (OSError, ValueError) as error:
            problems.append(f"{shown}: cannot be read: {error.strerror if isinstance(error, OSError) else error}")
