"""The options of `loadmaster simulate`; separate from the command, so that `--help` need not load it."""

import argparse

from scheduler.commands.plugin_directories import add_plugin_arguments

DESCRIPTION = """\
Decide where pods would run, without a cluster: the same engine as `loadmaster run`, over files.

Pods that have a node count as running there; the others are scheduled in queue order, each seeing the earlier ones
placed. Pods that name no scheduler, or default-scheduler, take the first profile. Deployments and other workloads
become the pods that they lack, and new pods get what the API server adds.
"""

WHAT_IF = """\
Nothing of it is written anywhere. Nodes are added and removed first; then the waiting pods are placed, the nodes are
drained, and copies are made.
"""

EPILOG = """\
examples:
  loadmaster simulate cluster.yaml
  loadmaster simulate cluster.json.gz deployment.yaml --explain
  loadmaster simulate dump/ new-pods.yaml --config config.yaml -o json
  loadmaster simulate cluster.json deployment.yaml --fill
  loadmaster simulate cluster.json --of deployment/shop/web --count 50 --add-nodes 5 --like node-7
  loadmaster simulate --from-cluster --drain node-1 --drain node-2 --fail-if-pending
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="YAML or JSON with pods, nodes and what plugins look up, one by one or in lists; a directory means all "
        "files below it, - standard input",
    )
    parser.add_argument(
        "--from-cluster", action="store_true", help="begin with what a cluster has now; it is read, and nothing written"
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="how to reach it; default: your own kubeconfig")
    parser.add_argument("--context", help="a context of the kubeconfig; default: the current one")
    parser.add_argument("--config", metavar="FILE", help="KubeSchedulerConfiguration; default: all default plugins")
    add_plugin_arguments(parser)
    parser.add_argument(
        "--each-alone", action="store_true", help="judge each pod on the cluster as given, as if no other was waiting"
    )
    parser.add_argument("--explain", action="store_true", help="say of every node why not, or how it scored")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    _add_questions(parser.add_argument_group("what if", WHAT_IF))
    parser.add_argument(
        "--allow-unknown-fields",
        action="store_true",
        help="only note fields that objects do not have in Kubernetes 1.36; without it they are errors",
    )
    parser.add_argument(
        "--fail-if-pending",
        action="store_true",
        help="exit code 3 if a pod finds no node, gated ones included, fewer than --count fit, or a pod of a drained "
        "node cannot be evicted; without it that is a result as any other",
    )


def _add_questions(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--count", metavar="N", help="say where N copies of a pod or workload would go")
    group.add_argument("--fill", action="store_true", help="say how many copies fit, where, and why no more do")
    group.add_argument(
        "--of",
        metavar="[KIND/][NAMESPACE/]NAME",
        help="the pod or workload that is copied, such as deployment/shop/web; default: the only one that is new",
    )
    group.add_argument(
        "--drain",
        action="append",
        default=[],
        metavar="NODE",
        help="evict the pods of a node as `kubectl drain` does, and say where those go that come in their place; "
        "several times for several nodes",
    )
    group.add_argument(
        "--remove", action="append", default=[], metavar="NODE", help="take a node away, with all its pods; likewise"
    )
    group.add_argument("--add-nodes", metavar="N", help="add N nodes")
    group.add_argument("--like", metavar="NODE", help="what the added nodes are like")
    group.add_argument(
        "--utilisation", action="store_true", help="say how much is requested, before and after; the others say it too"
    )
