"""Plugin classes by name."""

from collections.abc import Mapping

from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import Plugin

Registry = Mapping[str, type[Plugin]]


def merge(in_tree: Registry, out_of_tree: Registry) -> Registry:
    """Return all plugins of both. Raises ConfigError if a name stands for two plugins, or not for its own."""
    problems = [f"plugin {name!r} is in the registry already" for name in sorted(in_tree.keys() & out_of_tree.keys())]
    merged = {**in_tree, **out_of_tree}
    problems += [
        f"plugin {name!r} is registered under another name than its own, {plugin.name!r}"
        for name, plugin in merged.items()
        if plugin.name != name
    ]
    if problems:
        raise ConfigError(problems)
    return merged
