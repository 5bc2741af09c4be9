"""From a file or a mapping to a checked `Config`; ConfigError names every problem."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from scheduler.config.documents import name_of, parse_documents, read_file
from scheduler.config.extenders import leave_to_extenders, read_extenders
from scheduler.config.plugin_request import requested_plugins
from scheduler.config.profiles import API_VERSION, KnownPlugins, read_profiles
from scheduler.config.types import Config
from scheduler.framework.arguments import camel_case, parse_arguments
from scheduler.framework.duration import Duration
from scheduler.framework.errors import ConfigError
from scheduler.loading.registry import PluginRegistry

KIND: Final = "KubeSchedulerConfiguration"
_GROUP: Final = API_VERSION.partition("/")[0]
_REMOVED_VERSIONS: Final = tuple(f"{_GROUP}/{v}" for v in ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3"))


def load_config(
    path: str | None, known_plugins: KnownPlugins, leader_election: Mapping[str, object] = MappingProxyType({})
) -> Config:
    """Read the configuration in a YAML or JSON file, `-` for standard input; without a path, the default one.

    `known_plugins`: every plugin that a profile may enable, by name; a PluginRegistry loads those that the file names
    first. `leader_election`: fields of that section which
    take the place of the file's. Raises ConfigError.
    """
    if path is None:
        _load_plugins({}, known_plugins)
        return config_from_dict({"apiVersion": API_VERSION, "kind": KIND}, known_plugins, leader_election)
    source = name_of(path)
    documents = parse_documents(read_file(path), source)
    if not documents:
        raise ConfigError([f"{source}: the file is empty"])
    if len(documents) > 1:
        raise ConfigError([f"{documents[1].place}: a second document; there must be only one"])
    _load_plugins(documents[0].value, known_plugins)
    try:
        return config_from_dict(documents[0].value, known_plugins, leader_election)
    except ConfigError as error:
        raise ConfigError([f"{source}: {problem}" for problem in error.problems]) from error


def config_from_dict(
    values: object, known_plugins: KnownPlugins, leader_election: Mapping[str, object] = MappingProxyType({})
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
    profiles = read_profiles(values.get("profiles"), known_plugins, problems)
    extenders = read_extenders(values.get("extenders"), problems)
    profiles = leave_to_extenders(profiles, extenders)
    config = parse_arguments(Config, rest, "", problems, profiles=profiles, extenders=extenders)
    if config is not None and leader_election:
        # As a flag, unlike in a file, a zero is a zero.
        election = config.leader_election.with_flags(leader_election)
        problems += (f"leaderElection.{field}: {problem}" for field, problem in election.problems())
        config = replace(config, leader_election=election)
    if config is None or problems:
        raise ConfigError(problems)
    return config


def _load_plugins(values: object, known_plugins: KnownPlugins) -> None:
    """Load what the configuration names beside the plugins that are known. Raises ConfigError."""
    if isinstance(known_plugins, PluginRegistry):
        known_plugins.load(requested_plugins(values if isinstance(values, Mapping) else {}))


def _with_flags(section: object, flags: Mapping[str, object]) -> object:
    """The section with the flags in the place of what the file says, in either spelling."""
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
