"""The options of `loadmaster explain`; separate from the command, so that `--help` need not load it."""

import argparse

from scheduler.commands.cluster_arguments import add_cluster_arguments, add_service_arguments
from scheduler.commands.plugin_directories import add_plugin_arguments

DESCRIPTION = """\
Say why a pod is pending, and what would help: every obstacle on every node, the nearest miss first, and changes that
were tried out. The running scheduler is asked, through the API server; nothing is written.
"""

EPILOG = """\
examples:
  loadmaster explain web-7d4b9
  loadmaster explain shop/web-7d4b9 --watch
  loadmaster explain shop/web-7d4b9 -o json
  loadmaster explain shop/web-7d4b9 --from-cluster --config new.yaml
  loadmaster explain shop/web-7d4b9 --from dump.yaml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument("pod", metavar="[NAMESPACE/]POD", help="the pod")
    parser.add_argument(
        "-n", "--namespace", default="", help="its namespace; default: that of the kubeconfig's context"
    )
    add_cluster_arguments(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--from-cluster",
        action="store_true",
        help="do not ask the running scheduler: read the cluster and decide here, also with another --config",
    )
    source.add_argument(
        "--from",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="read files as `simulate` does, and decide here",
    )
    add_service_arguments(parser)
    parser.add_argument(
        "--config", metavar="FILE", help="KubeSchedulerConfiguration to decide by here; default: all default plugins"
    )
    add_plugin_arguments(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="ask again every 2 s, until the pod has a node")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
