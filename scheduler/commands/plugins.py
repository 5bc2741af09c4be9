"""`loadmaster plugins list`, `describe`, `new` and `bench`."""

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from scheduler.commands.options import add_output_argument, add_plugin_arguments, describe, registry
from scheduler.framework.errors import ConfigError
from scheduler.process.results import results

if TYPE_CHECKING:
    from scheduler.config.types import Config
    from scheduler.plugin_loading.registry import PluginRegistry

EPILOG: Final = """\
examples:
  loadmaster plugins list --plugin-dir .
  loadmaster plugins describe GpuGuard --plugin-dir . --config config.yaml
  loadmaster plugins new GpuGuard
  loadmaster plugins bench gpu_guard.py --nodes 5000
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, "Look at plugins, or begin one.", EPILOG)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="all plugins that a configuration may name, and where they are from")
    describing = actions.add_parser("describe", help="what a plugin is: its arguments, its events, what it reads")
    describing.add_argument("name", metavar="NAME", help="the plugin's name")
    for each in (listing, describing):
        each.add_argument("--config", metavar="FILE", help="KubeSchedulerConfiguration; default: all default plugins")
        add_plugin_arguments(each)
    beginning = actions.add_parser("new", help="write a plugin that works, and its test, to begin with")
    beginning.add_argument("name", metavar="NAME", help="the plugin's name, such as GpuGuard")
    beginning.add_argument("--directory", metavar="DIR", default=".", help="where to; default: here")
    measuring = actions.add_parser("bench", help="measure what the plugins of a file add to a decision")
    measuring.add_argument("file", metavar="FILE", help="a Python file with plugins")
    measuring.add_argument("--nodes", type=int, metavar="N", default=5000, help="default: %(default)s")
    measuring.add_argument("--node", metavar="FILE", help="a manifest of a node, such as its labels: all are like it")
    measuring.add_argument("--pod", metavar="FILE", help="a manifest of a pod: all are like it")
    measuring.add_argument(
        "--config",
        metavar="FILE",
        help="KubeSchedulerConfiguration with a profile that enables the plugin; default: the default one and it",
    )
    measuring.add_argument(
        "--seconds", type=float, metavar="S", default=20.0, help="stop measuring after so long; default: %(default)g"
    )
    add_output_argument(measuring)


def run(options: argparse.Namespace) -> int:
    """Do what was asked for, and print it. Raises ConfigError."""
    print("\n".join(_lines(options, registry(options))), file=results())
    return 0


def _lines(options: argparse.Namespace, plugins: "PluginRegistry") -> Iterable[str]:
    from scheduler.config.load import load_config
    from scheduler.plugin_tools import bench_command
    from scheduler.plugin_tools.skeleton import write_skeleton

    if options.action == "bench":
        return [bench_command.report(options, plugins)]
    if options.action == "new":
        return map(str, write_skeleton(options.name, options.directory, plugins))
    plugins.want_every_entry_point()
    config = load_config(options.config, plugins)
    return _listed(plugins, config) if options.action == "list" else _described(options.name, plugins, config)


def _listed(plugins: "PluginRegistry", config: "Config") -> Iterator[str]:
    from scheduler.plugin_tools.describe import points_of

    rows = [("PLUGIN", "PROFILES", "EXTENSION POINTS", "FROM")]
    for name, plugin in plugins.items():
        profiles = [each.scheduler_name for each in config.profiles if name in each.enabled]
        rows.append((name, ",".join(profiles) or "-", ",".join(points_of(plugin)), plugins.loaded.origins[name]))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]))


def _described(name: str, plugins: "PluginRegistry", config: "Config") -> Iterator[str]:
    from scheduler.framework.arguments import did_you_mean
    from scheduler.plugin_tools.describe import described

    if name not in plugins:
        raise ConfigError([f"there is no plugin {name!r}{did_you_mean(name, plugins)}"])
    profiles = [each for each in config.profiles if name in each.enabled]
    arguments = {each.scheduler_name: each.plugin_config.get(name, {}) for each in profiles}
    return described(plugins[name], plugins.loaded.origins[name], arguments)
