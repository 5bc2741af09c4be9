"""`loadmaster snapshot`: everything in a cluster that affects scheduling, in one packed file; see `snapshotting.py`."""

import argparse
from typing import Final

from scheduler.commands.options import add_cluster_arguments, add_plugin_arguments, describe, registry

DEFAULT_OUT: Final = "snapshot.json.gz"

DESCRIPTION: Final = """\
Write all of a cluster that decides where pods go into one packed file, which `simulate` and `explain --from` read. No
Secrets, no ConfigMaps, no env, no commands: what is not known to be needed is left out. Nothing in the cluster changes.
"""

EPILOG: Final = """\
examples:
  loadmaster snapshot
  loadmaster simulate snapshot.json.gz deployment.yaml --explain
  loadmaster snapshot --anonymise --out bug-report.json.gz
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, DESCRIPTION, EPILOG)
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


def run(options: argparse.Namespace) -> int:
    """Take a snapshot. Raises ConfigError for what cannot be read or written, OSError for a pipe."""
    from scheduler.commands import snapshotting

    return snapshotting.run(options, registry(options))
