"""Configurations as files have them, and read."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from scheduler.config.feature_gates import FeatureGates
from scheduler.config.load import config_from_dict
from scheduler.config.profiles import KnownPlugins
from scheduler.config.types import DEFAULT_GATES, Config


def a_config(**fields: Any) -> dict[str, Any]:
    """A configuration with these fields."""
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **fields}


def a_profile(*plugins: str, name: str = "", args: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """A profile with these plugins besides the default ones; `args`: plugin → its arguments."""
    return {
        **({"schedulerName": name} if name else {}),
        "plugins": {"multiPoint": {"enabled": [{"name": plugin} for plugin in plugins]}},
        "pluginConfig": [{"name": plugin, "args": given} for plugin, given in args.items()],
    }


def config_with(
    known: KnownPlugins,
    *plugins: str,
    name: str = "",
    args: Mapping[str, Any] = MappingProxyType({}),
    gates: FeatureGates = DEFAULT_GATES,
    **fields: Any,
) -> Config:
    """Read a configuration with one such profile, and with these fields."""
    return config_from_dict(
        a_config(profiles=[a_profile(*plugins, name=name, args=args)], **fields), known, gates=gates
    )
