"""A configuration's sources of plugins: read before everything else, as the rest depends on them.

Wrong values are ignored here; they are refused when the whole configuration is read.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.framework.arguments import camel_case
from scheduler.plugin_loading.registry import PluginRequest
from scheduler.runtime.profile_spec import PLUGIN_SETS

_SETS = {spelling for name in PLUGIN_SETS for spelling in (name, camel_case(name))}


def requested_plugins(values: Mapping[str, Any]) -> PluginRequest:
    """Return the directories and modules that a parsed configuration names, and the plugins of its profiles."""
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
