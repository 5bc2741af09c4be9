"""The options of `loadmaster snapshot`; separate from the command, so that `--help` need not load it."""

import argparse

from scheduler.commands.cluster_arguments import add_cluster_arguments
from scheduler.commands.plugin_directories import add_plugin_arguments

DEFAULT_OUT = "snapshot.json.gz"

DESCRIPTION = """\
Write all of a cluster that decides where pods go into one packed file, which `simulate` and `explain --from` read. No
Secrets, no ConfigMaps, no env, no commands: what is not known to be needed is left out. Nothing in the cluster changes.
"""

EPILOG = """\
examples:
  loadmaster snapshot
  loadmaster simulate snapshot.json.gz deployment.yaml --explain
  loadmaster snapshot --anonymise --out bug-report.json.gz
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "--out", default=DEFAULT_OUT, metavar="FILE", help="the file, - for a pipe; default: %(default)s"
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")
    parser.add_argument(
        "--anonymise",
        "--anonymize",
        action="store_true",
        help="put other names in the place of all that people chose: pods, namespaces, labels, images, …",
    )
    add_cluster_arguments(parser)
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a KubeSchedulerConfiguration: also keep what its plugins look at beyond the usual",
    )
    add_plugin_arguments(parser)
