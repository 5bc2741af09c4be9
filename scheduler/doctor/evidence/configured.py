"""The permissions, resources and Lease that a configuration needs, apart from plugins that are not installed here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.config.load import config_from_dict, values_of
from scheduler.config.profiles import API_VERSION, KIND
from scheduler.config.types import LeaderElection
from scheduler.framework.nodes.resources import ApiResource
from scheduler.kube.permissions import Permission, permissions_for
from scheduler.runtime.registry import Registry
from scheduler.simulate.cluster import SimulatedCluster
from scheduler.simulate.engine import engine_of

CONFIG_KEY = "config.yaml"
"""Of the chart's ConfigMap."""


@dataclass(frozen=True, slots=True)
class Configured:
    profiles: Mapping[str, tuple[str, ...]]
    """Scheduler name → the enabled plugins."""
    unknown_plugins: tuple[str, ...]
    """Plugins of the profiles that are not installed here: what they need is not known."""
    permissions: tuple[Permission, ...]
    resources: tuple[ApiResource, ...]
    election: LeaderElection


def configured(values: object, plugins: Registry) -> Configured:
    """Raises ConfigError."""
    document = values if isinstance(values, Mapping) else {}
    # Extenders and plugins' files are where the scheduler runs.
    kept = {"apiVersion": API_VERSION, "kind": KIND, **_only(document, "apiVersion", "kind", "leaderElection")}
    profiles = [each for each in _list(document.get("profiles")) if isinstance(each, Mapping)]
    unknown = sorted({name for each in profiles for name in _names(each) if name != "*" and name not in plugins})
    if profiles:
        kept["profiles"] = [_without(each, unknown) for each in profiles]
    config = config_from_dict(kept, plugins)
    with engine_of(SimulatedCluster((), ()), config, plugins) as engine:
        resources = engine.profiles.resources
    return Configured(
        {profile.scheduler_name: tuple(profile.enabled) for profile in config.profiles},
        tuple(unknown),
        permissions_for(resources.watched.values(), resources.written),
        tuple(resources.watched.values()),
        config.leader_election,
    )


def of_file(text: str, source: str, plugins: Registry) -> Configured:
    """The same for the text of a file. Raises ConfigError."""
    return configured(values_of(text, source), plugins)


def _names(profile: Mapping[str, Any]) -> set[str]:
    sets = profile.get("plugins")
    chosen = [each for each in sets.values() if isinstance(each, Mapping)] if isinstance(sets, Mapping) else []
    refs = [ref for each in chosen for key in ("enabled", "disabled") for ref in _list(each.get(key))]
    refs += _list(profile.get("pluginConfig"))
    return {ref["name"] for ref in refs if isinstance(ref, Mapping) and isinstance(ref.get("name"), str)}


def _without(profile: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """A profile without these plugins."""

    def rest(refs: object) -> list[Any]:
        return [each for each in _list(refs) if not (isinstance(each, Mapping) and each.get("name") in names)]

    kept = {**profile, "pluginConfig": rest(profile.get("pluginConfig"))}
    if isinstance(sets := profile.get("plugins"), Mapping):
        kept["plugins"] = {
            point: {key: rest(refs) for key, refs in chosen.items()} if isinstance(chosen, Mapping) else chosen
            for point, chosen in sets.items()
        }
    return kept


def _only(document: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: document[key] for key in keys if key in document}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
