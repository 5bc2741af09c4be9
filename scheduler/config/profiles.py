"""The profiles of a configuration: from the file to the specs from which the framework builds them.

Rule: pkg/scheduler/apis/config/validation/validation.go and what NewFramework in pkg/scheduler/framework/runtime
checks later. Here all of it is checked while loading, so that the message has the field's path.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from scheduler.config.defaults import (
    DEFAULT_SCHEDULER_NAME,
    FOR_POD_GROUPS,
    REMOVED,
    default_plugins,
    merge_plugins,
)
from scheduler.config.feature_gates import FeatureGates
from scheduler.config.types import percentage_problem
from scheduler.framework.arguments import arguments_of, camel_case, did_you_mean, parse_arguments
from scheduler.framework.field_errors import duplicate, invalid, required
from scheduler.framework.plugin import Plugin
from scheduler.runtime.profile import POINTS
from scheduler.runtime.profile_spec import PLUGIN_SETS, Plugins, PluginSet, ProfileSpec

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
MAX_PROFILES: Final = 1_000
"""Each has plugins and stored answers of its own."""

_MAX_WEIGHT: Final = 2**31 - 1

KnownPlugins = Mapping[str, type[Plugin]]


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The arguments of one plugin, as the file has them."""

    name: str
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile as the file has it."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = field(default_factory=Plugins)
    plugin_config: tuple[PluginConfig, ...] = ()

    def problems(self) -> Iterator[tuple[str, str]]:
        problem = percentage_problem(self.percentage_of_nodes_to_score)
        if problem is not None:
            yield "percentageOfNodesToScore", problem


class _Checked(NamedTuple):
    path: str
    spec: ProfileSpec
    queue_sort: Sequence[str]
    queue_sort_arguments: Sequence[Any]


def read_profiles(
    values: object, known: KnownPlugins, problems: list[str], gates: FeatureGates
) -> tuple[ProfileSpec, ...]:
    """Return the profiles that can be read; add everything that is wrong to `problems`."""
    if not isinstance(values, list | None):
        problems.append("profiles: expected a list")
        return ()
    entries = values or [{}]
    if len(entries) > MAX_PROFILES:
        problems.append(f"profiles: Too many: {len(entries)}: must have at most {MAX_PROFILES} items")
        return ()
    checked = []
    for index, entry in enumerate(entries):
        path = f"profiles[{index}]"
        profile = parse_arguments(Profile, entry, path, problems) or _readable_part(entry)
        if profile.scheduler_name is None and len(entries) == 1:
            profile = replace(profile, scheduler_name=DEFAULT_SCHEDULER_NAME)
        checked.append(_check(profile, path, known, problems, gates))
    _check_together(checked, problems)
    return tuple(profile.spec for profile in checked)


def _readable_part(entry: Any) -> Profile:
    """Return the valid fields of an invalid profile, so that the other rules are checked in the same pass."""
    if not isinstance(entry, dict):
        return Profile("?")
    if isinstance(entry.get("plugins"), dict):
        entry = {**entry, "plugins": _readable_fields(Plugins, entry["plugins"])}
    fields = {"schedulerName": "?", **_readable_fields(Profile, entry)}
    return parse_arguments(Profile, fields, "", []) or Profile("?")


def _readable_fields(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if parse_arguments(cls, {key: value}, "", []) is not None}


def _check(profile: Profile, path: str, known: KnownPlugins, problems: list[str], gates: FeatureGates) -> _Checked:
    if not profile.scheduler_name:
        problems.append(f"{path}.schedulerName: {required()}")
    before = len(problems)
    for name in PLUGIN_SETS:
        _check_set(name, getattr(profile.plugins, name), f"{path}.plugins.{camel_case(name)}", known, problems)
    plugins = merge_plugins(default_plugins(gates), profile.plugins)
    if not gates.generic_workload:
        problems += (
            f"{path}.plugins: {invalid(name, 'this plugin needs the feature gate GenericWorkload')}"
            for name in _enabled(profile.plugins)
            if name in FOR_POD_GROUPS
        )
    if len(problems) == before:
        _check_effect(plugins, path, known, problems)
    plugin_config = _check_plugin_config(profile.plugin_config, path, known, problems)
    _check_defaults(plugins, plugin_config, path, known, problems)
    spec = ProfileSpec(profile.scheduler_name or "", plugins, plugin_config, profile.percentage_of_nodes_to_score)
    queue_sort = _names_at("queue_sort", plugins, known)
    arguments = [_effective_arguments(name, plugin_config, known) for name in queue_sort]
    return _Checked(path, spec, queue_sort, arguments)


def _check_set(name: str, chosen: PluginSet, path: str, known: KnownPlugins, problems: list[str]) -> None:
    seen: set[str] = set()
    for index, ref in enumerate(chosen.enabled):
        at = f"{path}.enabled[{index}]"
        if ref.name in seen:
            problems.append(f"{at}: {duplicate(ref.name)}")
        seen.add(ref.name)
        if (problem := _name_problem(ref.name, known)) is not None:
            problems.append(f"{at}: {problem}")
        elif name in POINTS and not issubclass(known[ref.name], POINTS[name]):
            problems.append(f"{at}: {invalid(ref.name, f'this plugin does not extend {_left_out(name)}')}")
        if abs(ref.weight) > _MAX_WEIGHT:
            problems.append(f"{at}.weight: {invalid(ref.weight, 'does not fit into 32 bits')}")
    for index, ref in enumerate(chosen.disabled):
        # Plugins that do not exist here can be disabled: configurations written for kube-scheduler do so.
        if ref.name not in known and ref.name not in {"*"} | REMOVED:
            problems.append(f"{path}.disabled[{index}]: {_unknown(ref.name, known)}")


def _left_out(point: str) -> str:
    """Configurations for kube-scheduler with scheduler-plugins name plugins where they need not be named here."""
    if point == "queue_sort":
        return "queueSort here, and need not: leave out plugins.queueSort, with what it disables"
    return f"{camel_case(point)}: leave it out here"


def _check_effect(plugins: Plugins, path: str, known: KnownPlugins, problems: list[str]) -> None:
    sorts = _names_at("queue_sort", plugins, known)
    if len(sorts) != 1:
        detail = f"only one queue sort plugin required, but got {len(sorts)}"
        problems.append(f"{path}.plugins.queueSort: {invalid(sorts, detail)}")
    if not _names_at("bind", plugins, known):
        problems.append(f"{path}.plugins.bind: {required('at least one bind plugin is needed')}")
    generators = _names_at("placement_generate", plugins, known)
    if len(generators) > 1:
        detail = "at most one placement generate plugin is allowed"
        problems.append(f"{path}.plugins.placementGenerate: {invalid(generators, detail)}")


def _check_plugin_config(
    entries: Sequence[PluginConfig], path: str, known: KnownPlugins, problems: list[str]
) -> dict[str, dict[str, Any]]:
    """Return the arguments by plugin, checking that each plugin accepts its own."""
    arguments: dict[str, dict[str, Any]] = {}
    for index, entry in enumerate(entries):
        at = f"{path}.pluginConfig[{index}]"
        if entry.name in arguments:
            problems.append(f"{at}: {duplicate(entry.name)}")
        # kube-scheduler ignores arguments for a name that is no plugin, without a warning.
        problem = None if entry.name not in REMOVED else _name_problem(entry.name, known)
        if problem is not None:
            problems.append(f"{at}: {problem}")
        args = dict(entry.args)
        _check_type(entry.name, args.pop("apiVersion", None), args.pop("kind", None), f"{at}.args", problems)
        if entry.name in known:
            parse_arguments(known[entry.name], args, f"{at}.args", problems)
        arguments.setdefault(entry.name, args)
    return arguments


def _check_type(name: str, api_version: object, kind: object, path: str, problems: list[str]) -> None:
    if api_version not in (None, API_VERSION):
        problems.append(f"{path}.apiVersion: {invalid(api_version, f'must be {json.dumps(API_VERSION)}')}")
    if kind not in (None, f"{name}Args"):
        problems.append(f"{path}.kind: {invalid(kind, f'args for plugin {name} must be of type {name}Args')}")


def _check_defaults(
    plugins: Plugins, plugin_config: Mapping[str, Any], path: str, known: KnownPlugins, problems: list[str]
) -> None:
    """A plugin may have arguments without a default; then it cannot be enabled without a pluginConfig."""
    for name in _enabled(plugins):
        if name in known and name not in plugin_config:
            parse_arguments(known[name], {}, f"{path}.pluginConfig[{name}].args", problems)


def _check_together(profiles: Sequence[_Checked], problems: list[str]) -> None:
    seen: set[str] = set()
    for profile in profiles:
        name = profile.spec.scheduler_name
        if name in seen and name not in ("", "?"):
            problems.append(f"{profile.path}.schedulerName: {duplicate(name)}")
        seen.add(name)
    sorted_by_one = [profile for profile in profiles if len(profile.queue_sort) == 1]
    for profile in sorted_by_one[1:]:
        if profile.queue_sort != sorted_by_one[0].queue_sort:
            detail = "must be the same for all profiles"
            problems.append(f"{profile.path}.plugins.queueSort: {invalid(profile.queue_sort[0], detail)}")
        elif profile.queue_sort_arguments != sorted_by_one[0].queue_sort_arguments:
            detail = "queueSort must be the same for all profiles"
            problems.append(f"{profile.path}.pluginConfig: {invalid(profile.queue_sort_arguments[0], detail)}")


def _name_problem(name: str, known: KnownPlugins) -> str | None:
    if name in known:
        return None
    if name in REMOVED:
        detail = f'was invalid in version "{API_VERSION}" (KubeSchedulerConfiguration is version "{API_VERSION}")'
        return invalid(name, detail)
    return _unknown(name, known)


def _unknown(name: str, known: KnownPlugins) -> str:
    return f"unknown plugin {json.dumps(name)}{did_you_mean(name, known)}"


def _enabled(plugins: Plugins) -> list[str]:
    return list(dict.fromkeys(ref.name for name in PLUGIN_SETS for ref in getattr(plugins, name).enabled))


def _names_at(point: str, plugins: Plugins, known: KnownPlugins) -> list[str]:
    """Return the plugins in effect at an extension point once MultiPoint is expanded."""
    chosen: PluginSet = getattr(plugins, point)
    names = {ref.name: None for ref in chosen.enabled}
    disabled = {ref.name for ref in chosen.disabled}
    if "*" not in disabled:
        names.update((ref.name, None) for ref in plugins.multi_point.enabled if ref.name not in disabled)
    return [name for name in names if name in known and issubclass(known[name], POINTS[point])]


def _effective_arguments(name: str, plugin_config: Mapping[str, Mapping[str, Any]], known: KnownPlugins) -> Any:
    plugin = parse_arguments(known[name], plugin_config.get(name, {}), "", [])
    return None if plugin is None else arguments_of(plugin)
