"""The settings that may change while the scheduler runs, and those that take effect at the next start only."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from scheduler.config.types import Config, LoadmasterSettings
from scheduler.framework.arguments import arguments_of, camel_case

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
    settings = replace(old.loadmaster, **dict(_reloadable(new.loadmaster, "loadmaster.")))
    return replace(old, **{**dict(_reloadable(new, "")), "loadmaster": settings})


def _reloadable(section: Config | LoadmasterSettings, path: str) -> Iterator[tuple[str, Any]]:
    for each in fields(section):
        if f"{path}{camel_case(each.name)}" in RELOADABLE:
            yield each.name, getattr(section, each.name)


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
