"""The specification of a profile as data: the framework builds one from it, `scheduler.config` reads it from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin in a list of enabled or disabled ones."""

    name: str
    """The plugin's name; `*` in a list of disabled ones means all."""

    weight: int = 0
    """How much its score counts. 0 means: none was set."""


@dataclass(frozen=True, slots=True)
class PluginSet:
    """The enabled plugins, in this order, and the disabled ones."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins of one profile, defaults merged in, MultiPoint not yet expanded."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()


PLUGIN_SETS: Final = tuple(f.name for f in fields(Plugins))
"""The names of the sets: `multi_point` and each extension point."""


@dataclass(frozen=True, slots=True)
class ProfileSpec:
    """One profile: which pods it takes, and with which plugins."""

    scheduler_name: str
    """Pods take the profile whose name is their `spec.schedulerName`."""

    plugins: Plugins
    plugin_config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Plugin name → its arguments as the file spells them, for those that have any. `parse_arguments` reads them."""

    percentage_of_nodes_to_score: int | None = None
    """Percent, 0 to 100. None: what the configuration says for all profiles. 0: all of them, as 100."""

    @property
    def enabled(self) -> tuple[str, ...]:
        """The plugins that are enabled at any point, each once."""
        return tuple(dict.fromkeys(ref.name for each in PLUGIN_SETS for ref in getattr(self.plugins, each).enabled))
