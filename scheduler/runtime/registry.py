"""Plugin classes by name."""

from collections.abc import Mapping

from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import Plugin

Registry = Mapping[str, type[Plugin]]


def merge(in_tree: Registry, out_of_tree: Registry) -> Registry:
    """Return all plugins of both. Raises ConfigError if a name stands for two plugins, or not for its own.

    And if a plugin expects its handle as a field, as plugins once did.
    """
    problems = [f"plugin {name!r} is in the registry already" for name in sorted(in_tree.keys() & out_of_tree.keys())]
    merged = {**in_tree, **out_of_tree}
    problems += [
        f"plugin {name!r} is registered under another name than its own, {plugin.name!r}"
        for name, plugin in merged.items()
        if plugin.name != name
    ]
    problems += [
        f"plugin {name!r} has a field `handle`, which would be an argument: take the handle in `start(self, handle)`"
        for name, plugin in merged.items()
        if any(each.name == "handle" for each in getattr(plugin, "__dataclass_fields__", {}).values())
    ]
    if problems:
        raise ConfigError(problems)
    return merged
