"""From a file or a mapping to a checked `Config`; ConfigError names every problem."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from scheduler.config.defaults import CAPACITY_SCHEDULING, COSCHEDULING
from scheduler.config.documents import PIPE_SECONDS, name_of, parse_documents, read_file
from scheduler.config.extenders import leave_to_extenders, read_extenders
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.places import with_lines
from scheduler.config.profiles import API_VERSION, KIND, KnownPlugins, read_profiles
from scheduler.config.types import DEFAULT_GATES, Config
from scheduler.framework.arguments import camel_case, parse_arguments
from scheduler.framework.duration import Duration
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.registry import PluginRegistry, PluginRequest
from scheduler.runtime.profile_spec import PLUGIN_SETS

_logger = logging.getLogger(__name__)

_GROUP: Final = API_VERSION.partition("/")[0]
_REMOVED_VERSIONS: Final = tuple(f"{_GROUP}/{v}" for v in ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3"))

STRONG: Final = "loadmaster.podMaxInUnschedulablePodsSeconds"
"""Path of the field whose deprecated flag counts together with a file, too."""

MAX_BYTES: Final = 1 << 20
"""Of a file: as much as a ConfigMap holds. It takes half a second to read, and a scheduler at work may have to."""

MAX_ALIASED: Final = 100_000
"""Bytes that aliases may stand for in a file."""

MAX_PROBLEMS: Final = 100
"""The number of problems of a file that are printed; a last line counts the others."""

_SETS: Final = {spelling for name in PLUGIN_SETS for spelling in (name, camel_case(name))}


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file as it was read."""

    source: str
    """How to name it."""

    text: str
    values: object
    """The content of its first document."""


def load_config(
    path: str | None,
    known_plugins: KnownPlugins,
    leader_election: Mapping[str, object] = MappingProxyType({}),
    deprecated: Mapping[str, object] = MappingProxyType({}),
    gates: FeatureGates = DEFAULT_GATES,
) -> Config:
    """Read the configuration in a YAML or JSON file, `-` for standard input; without a path, the default one.

    `known_plugins`: every plugin that a profile may enable, by name; a PluginRegistry loads those that the file names
    first. `leader_election`: fields of that section which take the place of the file's. `deprecated`: path → value of
    further fields, of which a file leaves only those that are `STRONG`. `gates`: the feature gates. Raises ConfigError.
    """
    return config_of(read_config(path), known_plugins, leader_election, deprecated, gates)


def read_config(path: str | None, pipe_seconds: float = PIPE_SECONDS) -> ConfigFile | None:
    """Read and parse the file, and no more; None if there is none. Raises ConfigError.

    `pipe_seconds`: how long a pipe is waited for; 0 if the path must not be one.
    """
    if path is None:
        return None
    text, source = read_file(path, MAX_BYTES, pipe_seconds), name_of(path)
    return ConfigFile(source, text, values_of(text, source))


def config_of(
    file: ConfigFile | None,
    known_plugins: KnownPlugins,
    leader_election: Mapping[str, object] = MappingProxyType({}),
    deprecated: Mapping[str, object] = MappingProxyType({}),
    gates: FeatureGates = DEFAULT_GATES,
) -> Config:
    """The same as `load_config` for a file that was read."""
    # A file has seconds as a number.
    deprecated = {key: float(each) if isinstance(each, Duration) else each for key, each in deprecated.items()}
    if file is None:
        load_plugins({}, known_plugins)
        header = {"apiVersion": API_VERSION, "kind": KIND}
        return config_from_dict(_with_fields(header, deprecated), known_plugins, leader_election, gates)
    config = _checked(file, known_plugins, leader_election, gates)
    strong = deprecated.get(STRONG)
    if not isinstance(strong, float):
        return config
    settings = replace(config.loadmaster, pod_max_in_unschedulable_pods_seconds=strong)
    if problems := [f"loadmaster.{field}: {problem}" for field, problem in settings.problems()]:
        raise ConfigError(problems)
    return replace(config, loadmaster=settings)


def _checked(
    file: ConfigFile, known_plugins: KnownPlugins, leader_election: Mapping[str, object], gates: FeatureGates
) -> Config:
    load_plugins(file.values, known_plugins)
    try:
        return config_from_dict(file.values, known_plugins, leader_election, gates)
    except ConfigError as error:
        printed, more = error.problems[:MAX_PROBLEMS], len(error.problems) - MAX_PROBLEMS
        rest = [f"{file.source}: and {more} more problems"] if more > 0 else []
        raise ConfigError([*with_lines(printed, file.text, file.source), *rest]) from error


def values_of(text: str, source: str) -> object:
    """Return what the first document in a file has: kube-scheduler reads no other. Raises ConfigError."""
    documents = parse_documents(text, source, MAX_ALIASED)
    if not documents:
        raise ConfigError([f"{source}: the file is empty"])
    if len(documents) > 1:
        _logger.warning("A second document of the configuration has no effect", extra={"at": documents[1].place})
    value: object = documents[0].value
    return value


def config_from_dict(
    values: object,
    known_plugins: KnownPlugins,
    leader_election: Mapping[str, object] = MappingProxyType({}),
    gates: FeatureGates = DEFAULT_GATES,
) -> Config:
    """Read a configuration from parsed YAML or JSON. Raises ConfigError."""
    if not isinstance(values, Mapping):
        raise ConfigError([f"expected a mapping with apiVersion {API_VERSION} and kind {KIND}"])
    problems = _header_problems(values)
    if problems:
        raise ConfigError(problems)  # it is something else: problems of its fields would mislead
    rest = {key: value for key, value in values.items() if key not in ("apiVersion", "kind", "profiles", "extenders")}
    if leader_election:
        rest["leaderElection"] = _with_flags(rest.get("leaderElection"), leader_election)
    profiles = read_profiles(values.get("profiles"), known_plugins, problems, gates)
    extenders = read_extenders(values.get("extenders"), problems)
    if extenders and gates.generic_workload:
        problems.append("extenders: not available together with the feature gate GenericWorkload yet")
    if extenders and any(COSCHEDULING in profile.enabled for profile in profiles):
        problems.append(f"extenders: not available together with the plugin {COSCHEDULING} yet")
    with_shares = [each for each in profiles if CAPACITY_SCHEDULING in each.enabled]
    arguments = [each.plugin_config.get(CAPACITY_SCHEDULING, {}) for each in with_shares]
    if any(each != arguments[0] for each in arguments):
        problems.append(f"profiles: all that have {CAPACITY_SCHEDULING} must have the same arguments for it")
    profiles = leave_to_extenders(profiles, extenders)
    config = parse_arguments(Config, rest, "", problems, profiles=profiles, extenders=extenders, gates=gates)
    if config is not None and leader_election:
        # As a flag, unlike in a file, a zero is a zero.
        election = config.leader_election.with_flags(leader_election)
        problems += (f"leaderElection.{field}: {problem}" for field, problem in election.problems())
        config = replace(config, leader_election=election)
    if config is None or problems:
        raise ConfigError(problems)
    return config


def load_plugins(values: object, known_plugins: KnownPlugins) -> None:
    """Load the configuration's plugins in addition to the known ones. Raises ConfigError."""
    if isinstance(known_plugins, PluginRegistry):
        known_plugins.load(requested_plugins(values if isinstance(values, Mapping) else {}))


def requested_plugins(values: Mapping[str, Any]) -> PluginRequest:
    """Return the directories and modules that a parsed configuration names, and the plugins of its profiles.

    They are read before everything else, as the rest depends on them. Wrong values are ignored: they are refused when
    the whole configuration is read.
    """
    settings = values.get("loadmaster")
    directories = _strings(settings, "pluginDirectories", "plugin_directories")
    modules = _strings(settings, "pluginModules", "plugin_modules")
    profiles = values.get("profiles")
    names = frozenset(name for profile in (profiles if isinstance(profiles, list) else ()) for name in _names(profile))
    return PluginRequest(tuple(each for each in directories if each.startswith("/")), tuple(modules), names, values)


def _strings(section: object, *spellings: str) -> list[str]:
    if not isinstance(section, Mapping):
        return []
    found = [section[each] for each in spellings if each in section]
    return [each for value in found if isinstance(value, list) for each in value if isinstance(each, str) and each]


def _names(profile: object) -> Iterator[str]:
    if not isinstance(profile, Mapping):
        return
    sets = profile.get("plugins")
    for key, chosen in sets.items() if isinstance(sets, Mapping) else ():
        if key in _SETS and isinstance(chosen, Mapping):
            yield from _named(chosen.get("enabled"))
            yield from _named(chosen.get("disabled"))
    for spelling in ("pluginConfig", "plugin_config"):
        yield from _named(profile.get(spelling))


def _named(entries: object) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(name := entry.get("name"), str) and name != "*":
            yield name


def _with_fields(values: Mapping[str, object], fields: Mapping[str, object]) -> dict[str, object]:
    """The values with these fields, given by their paths of one or two names."""
    merged = dict(values)
    for path, value in fields.items():
        section, dot, name = path.partition(".")
        known = merged.get(section)
        merged[section] = {**(known if isinstance(known, dict) else {}), name: value} if dot else value
    return merged


def _with_flags(section: object, flags: Mapping[str, object]) -> object:
    """The section with the flags in place of the file's values, in either spelling."""
    if not isinstance(section, Mapping | None):
        return section
    kept = {key: value for key, value in (section or {}).items() if camel_case(str(key)) not in flags}
    given = {key: value for key, value in flags.items() if value or value is False}
    return kept | {key: str(value) if isinstance(value, Duration) else value for key, value in given.items()}


def _header_problems(values: Mapping[str, object]) -> list[str]:
    version, kind = values.get("apiVersion"), values.get("kind")
    problems = []
    if version in _REMOVED_VERSIONS:
        problems.append(f"apiVersion: {version} was removed from kube-scheduler; use {API_VERSION}")
    elif version != API_VERSION:
        problems.append(f"apiVersion: expected {API_VERSION}, got {'none' if version is None else repr(version)}")
    if kind != KIND:
        problems.append(f"kind: expected {KIND}, got {'none' if kind is None else repr(kind)}")
    return problems
