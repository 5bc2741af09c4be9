"""`loadmaster plugins list`, `describe`, `new` and `bench`."""

import argparse
from collections.abc import Iterator

from scheduler.config.load import load_config
from scheduler.config.types import Config
from scheduler.framework.arguments import did_you_mean
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.registry import PluginRegistry
from scheduler.plugin_tools import bench_command
from scheduler.plugin_tools.describe import described, points_of
from scheduler.plugin_tools.skeleton import write_skeleton
from scheduler.process.results import results


def run(options: argparse.Namespace, registry: PluginRegistry) -> int:
    """Do what was asked for, and print it. Raises ConfigError."""
    if options.action == "bench":
        print(bench_command.report(options, registry), file=results())
        return 0
    if options.action == "new":
        plugin, test = write_skeleton(options.name, options.directory, registry)
        print(f"{plugin}\n{test}", file=results())
        return 0
    registry.want_every_entry_point()
    config = load_config(options.config, registry)
    lines = _listed(registry, config) if options.action == "list" else _described(options.name, registry, config)
    print("\n".join(lines), file=results())
    return 0


def _listed(registry: PluginRegistry, config: Config) -> Iterator[str]:
    rows = [("PLUGIN", "PROFILES", "EXTENSION POINTS", "FROM")]
    for name, plugin in registry.items():
        profiles = [each.scheduler_name for each in config.profiles if name in each.enabled]
        rows.append((name, ",".join(profiles) or "-", ",".join(points_of(plugin)), registry.origins[name]))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]))


def _described(name: str, registry: PluginRegistry, config: Config) -> Iterator[str]:
    if name not in registry:
        raise ConfigError([f"there is no plugin {name!r}{did_you_mean(name, registry)}"])
    profiles = [each for each in config.profiles if name in each.enabled]
    arguments = {each.scheduler_name: each.plugin_config.get(name, {}) for each in profiles}
    return described(registry[name], registry.origins[name], arguments)
