"""The settings that may change while the scheduler runs, and those that take effect at the next start only."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from scheduler.config.types import Config
from scheduler.framework.arguments import arguments_of

RELOADABLE: Final = frozenset(
    {
        "profiles",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "extenders",
        "loadmaster.seed",
        "loadmaster.podsAtExtenders",
        "loadmaster.podMaxInUnschedulablePodsSeconds",
        "loadmaster.pluginDirectories",
        "loadmaster.pluginModules",
        "loadmaster.pluginLimits",
        "loadmaster.topologyLevels",
        "loadmaster.groupReservationSeconds",
        "loadmaster.groupBackfill",
        "loadmaster.damagedGroupSeconds",
    }
)
"""Paths. All other fields concern parts that are made at the start: connections, the Lease, the tables."""


def reloaded(old: Config, new: Config) -> Config:
    """The configuration in effect once `new` has taken the place of `old`."""
    settings = replace(
        old.loadmaster,
        seed=new.loadmaster.seed,
        pods_at_extenders=new.loadmaster.pods_at_extenders,
        pod_max_in_unschedulable_pods_seconds=new.loadmaster.pod_max_in_unschedulable_pods_seconds,
        plugin_directories=new.loadmaster.plugin_directories,
        plugin_modules=new.loadmaster.plugin_modules,
        plugin_limits=new.loadmaster.plugin_limits,
        topology_levels=new.loadmaster.topology_levels,
        group_reservation_seconds=new.loadmaster.group_reservation_seconds,
        group_backfill=new.loadmaster.group_backfill,
        damaged_group_seconds=new.loadmaster.damaged_group_seconds,
    )
    return replace(
        old,
        profiles=new.profiles,
        extenders=new.extenders,
        percentage_of_nodes_to_score=new.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=new.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=new.pod_max_backoff_seconds,
        loadmaster=settings,
    )


def needs_a_restart(old: Config, new: Config) -> list[str]:
    """Paths of changed settings that are not taken over."""
    before, after = dict(_flat(arguments_of(old))), dict(_flat(arguments_of(new)))
    return sorted(path for path in before | after if before.get(path) != after.get(path) and path not in RELOADABLE)


def _flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        elif path or key != "profiles":
            yield path + key, value
