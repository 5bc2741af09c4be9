"""The options of `loadmaster plugins`; separate from the command, so that `--help` need not load it."""

import argparse

from scheduler.commands.plugin_directories import add_plugin_arguments

EPILOG = """\
examples:
  loadmaster plugins list --plugin-dir .
  loadmaster plugins describe GpuGuard --plugin-dir . --config config.yaml
  loadmaster plugins new GpuGuard
  loadmaster plugins bench gpu_guard.py --nodes 5000
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = "Look at plugins, or begin one.", EPILOG
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
    measuring.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
