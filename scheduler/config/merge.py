"""The plugins in a file, merged into the default ones.

Rule: mergePlugins and mergePluginSet in pkg/scheduler/apis/config/v1/default_plugins.go at v1.36.3.
"""

from scheduler.runtime.profile_spec import PLUGIN_SETS, PluginRef, Plugins, PluginSet


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """Merge `custom` into `default`, set by set."""
    return Plugins(**{name: merge_set(getattr(default, name), getattr(custom, name)) for name in PLUGIN_SETS})


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """Defaults that are not disabled come first, in their order; custom ones replace those of the same name there.

    Disabled plugins stay in the result: expanding MultiPoint needs them.
    """
    disabled = {ref.name: PluginRef(ref.name) for ref in (*custom.disabled, *default.disabled)}
    own = {ref.name: ref for ref in custom.enabled}
    kept = () if "*" in disabled else tuple(own.get(r.name, r) for r in default.enabled if r.name not in disabled)
    added = tuple(ref for ref in custom.enabled if ref not in kept)
    return PluginSet((*kept, *added), tuple(disabled.values()))
