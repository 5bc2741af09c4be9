"""A profile with the plugins of a test."""

from typing import Final

from scheduler.framework.errors import ConfigError
from scheduler.framework.plugin import Plugin
from scheduler.plugin_loading.in_tree import in_tree
from scheduler.runtime.profile import POINTS, ProfilePlugins, point_problems

DEFAULTS: Final = {"queue_sort": "PrioritySort", "bind": "DefaultBinder"}
"""Extension points that no profile is without, and who is there by default."""


def profile_of(*plugins: Plugin) -> ProfilePlugins:
    """A profile with these plugins at each point that they extend, in this order, each with the weight 1.

    Where none of them sorts the queue or binds, the default plugin does. Raises ConfigError as `build` does.
    """
    missing = [name for point, name in DEFAULTS.items() if not any(isinstance(each, POINTS[point]) for each in plugins)]
    every = (*plugins, *(in_tree()[name]() for name in missing))
    at = {point: tuple(plugin for plugin in every if isinstance(plugin, kinds)) for point, kinds in POINTS.items()}
    if problems := list(point_problems(at)):
        raise ConfigError(problems)
    weights = {plugin.name: 1 for plugin in every}
    return ProfilePlugins(at, weights, {plugin.name: plugin for plugin in every}, weights)
