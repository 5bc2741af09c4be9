"""The options of `loadmaster simulate`; separate from the command, so that `--help` need not load it."""

import argparse

from scheduler.loading.arguments import add_plugin_arguments

DESCRIPTION = """\
Decide where pods would run, without a cluster: the same engine as `loadmaster run`, over files.

Pods that have a node count as running there; the others are scheduled in queue order, each seeing the earlier ones
placed. Pods that name no scheduler, or default-scheduler, take the first profile. Deployments and other workloads
become the pods that they lack, and new pods get what the API server adds.
"""

EPILOG = """\
examples:
  loadmaster simulate cluster.yaml
  loadmaster simulate cluster.json.gz deployment.yaml --explain
  loadmaster simulate dump/ new-pods.yaml --config config.yaml -o json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="YAML or JSON with pods, nodes and what plugins look up, one by one or in lists; a directory means all "
        "files below it, - standard input",
    )
    parser.add_argument("--config", metavar="FILE", help="KubeSchedulerConfiguration; default: all default plugins")
    add_plugin_arguments(parser)
    parser.add_argument(
        "--each-alone", action="store_true", help="judge each pod on the cluster as given, as if no other was waiting"
    )
    parser.add_argument("--explain", action="store_true", help="say of every node why not, or how it scored")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.add_argument(
        "--allow-unknown-fields",
        action="store_true",
        help="only note fields that objects do not have in Kubernetes 1.36; without it they are errors",
    )
    parser.add_argument(
        "--fail-if-pending",
        action="store_true",
        help="exit code 3 if a pod finds no node, gated ones included; without it that is a result as any other",
    )
