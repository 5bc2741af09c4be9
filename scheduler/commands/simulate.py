"""`loadmaster simulate`: where would these pods go?"""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scheduler.api.wording.text import printable
from scheduler.commands.options import (
    add_cluster_arguments,
    add_gates_argument,
    add_output_argument,
    add_plugin_arguments,
    describe,
    feature_gates,
    registry,
)
from scheduler.framework.errors import ConfigError
from scheduler.process.ending import ended_by_interrupt
from scheduler.process.logs import TextFormatter
from scheduler.process.progress import Progress, on_stderr
from scheduler.process.results import results

if TYPE_CHECKING:
    from scheduler.runtime.registry import Registry
    from scheduler.simulate.cluster import SimulatedCluster

PENDING: Final = 3
"""The exit code that says that not all pods found a node."""

DESCRIPTION: Final = """\
Decide where pods would run, without a cluster: the same engine as `loadmaster run`, over files.

Pods that have a node count as running there; the others are scheduled in queue order, each seeing the earlier ones
placed. Pods that name no scheduler, or default-scheduler, take the first profile. Deployments and other workloads
become the pods that they lack, and new pods get what the API server adds.
"""

WHAT_IF: Final = """\
Nothing of it is written anywhere. Nodes are added and removed first; then the waiting pods are placed, the nodes are
drained, and copies are made.
"""

EPILOG: Final = """\
examples:
  loadmaster simulate cluster.yaml
  loadmaster simulate cluster.json.gz deployment.yaml --explain
  loadmaster simulate dump/ new-pods.yaml --config config.yaml -o json
  loadmaster simulate cluster.json deployment.yaml --fill
  loadmaster simulate cluster.json --of deployment/shop/web --count 50 --add-nodes 5 --like node-7
  loadmaster simulate --from-cluster --config config.yaml --quota team-a/quota minimum nvidia.com/gpu=64
  loadmaster simulate --from-cluster --drain node-1 --drain node-2 --fail-if-pending
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(parser, DESCRIPTION, EPILOG)
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
    add_cluster_arguments(parser, "how to reach it")
    parser.add_argument("--config", metavar="FILE", help="KubeSchedulerConfiguration; default: all default plugins")
    add_plugin_arguments(parser)
    add_gates_argument(parser)
    parser.add_argument(
        "--each-alone", action="store_true", help="judge each pod on the cluster as given, as if no other was waiting"
    )
    parser.add_argument("--explain", action="store_true", help="say of every node why not, or how it scored")
    add_output_argument(parser)
    _add_questions(parser.add_argument_group("what if", WHAT_IF))
    parser.add_argument(
        "--allow-unknown-fields",
        action="store_true",
        help="only note fields that objects do not have in Kubernetes 1.37; without it they are errors",
    )
    parser.add_argument(
        "--fail-if-pending",
        action="store_true",
        help="exit code 3 if a pod finds no node, gated ones included, fewer than --count fit, a pod of a drained node "
        "cannot be evicted, or there is nothing to place; without it that is a result as any other",
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
        "--quota",
        nargs=3,
        action="append",
        default=[],
        metavar=("SHARE", "minimum|maximum|…", "RESOURCE=AMOUNT"),
        help="give a share of the cluster other amounts, and say which pods would start or wait for it; several times "
        "for several; fields: minimum, maximum, borrowingLimit, lendingLimit",
    )
    group.add_argument(
        "--utilisation", action="store_true", help="say how much is requested, before and after; the others say it too"
    )


def run(options: argparse.Namespace) -> int:
    """Simulate, and print the result. Raises ConfigError, ClusterError."""
    progress = on_stderr()
    _log_as_run_does(progress)
    with ended_by_interrupt():
        with progress.shown():
            outcome = _document(options, registry(options), progress)
        is_short = _show(options, outcome.document, outcome.workloads)
        return PENDING if options.fail_if_pending and (is_short or outcome.lacks_pods) else 0


def _log_as_run_does(progress: Progress) -> None:
    """Show warnings in full on standard error, unless logging was set up already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter())
    handler.addFilter(_concerns_users)
    handler.addFilter(_clearing(progress))
    logging.basicConfig(handlers=[handler])


def _concerns_users(record: logging.LogRecord) -> bool:
    """Whether it is about something else than how plugins of Loadmaster did: the result says that."""
    from plugins import IN_TREE

    return getattr(record, "plugin", None) not in IN_TREE


def _clearing(progress: Progress) -> Callable[[logging.LogRecord], bool]:
    def is_shown(_: logging.LogRecord) -> bool:
        progress.clear()
        return True

    return is_shown


class _Outcome(NamedTuple):
    document: dict[str, Any]
    workloads: Mapping[tuple[str, str], str]
    """Namespace and name of a pod → the workload that it belongs to."""
    lacks_pods: bool
    """Whether pods that were given are not in it, or there are none."""


def _document(options: argparse.Namespace, plugins: "Registry", progress: Progress) -> "_Outcome":
    from scheduler.config.documents import Document
    from scheduler.config.load import load_config
    from scheduler.framework.nodes.resources import read_raw_pods
    from scheduler.simulate.cluster import read_cluster
    from scheduler.simulate.engine import adopted, simulate
    from scheduler.simulate.left_out import LeftOut
    from scheduler.simulate.output import workloads_of
    from scheduler.simulate.what_if.answers import answered
    from scheduler.simulate.what_if.questions import questions_of

    _check_sources(options)
    config = load_config(options.config, plugins, gates=feature_gates(options))
    questions = questions_of(options)
    enabled = {name for profile in config.profiles for name in profile.enabled}
    raw_pods = read_raw_pods(plugins[name] for name in enabled)
    stored, notes = list[Document](), list[str]()
    if options.from_cluster:
        import asyncio  # and a client: files do without

        from scheduler.assembly.cluster_objects import read_for_simulation

        stored, notes = asyncio.run(read_for_simulation(options, config, plugins, progress))
    strict = not options.allow_unknown_fields
    cluster = read_cluster(options.files, raw_pods=raw_pods, strict=strict, stored=stored, progress=progress)
    cluster = replace(cluster, pods=tuple(adopted(cluster.pods, config)))
    explain, each_alone = options.explain, options.each_alone
    document: dict[str, Any]
    if questions:
        document = answered(
            cluster, questions, config, plugins, each_alone=each_alone, explain=explain, progress=progress
        )
    else:
        document = simulate(
            cluster.nodes,
            cluster.pods,
            config,
            plugins,
            cluster.others,
            each_alone=each_alone,
            explain=explain,
            progress=progress,
        )
        document = {"notes": _quota_notes(cluster), **document}
    left_out = LeftOut(cluster, config)
    notes = [*notes, *left_out.notes(), *cluster.notes, *document["notes"]]
    lacks_pods = left_out.has_new_pods or not (document["pods"] or questions)
    return _Outcome(
        {**document, "notes": notes}, workloads_of(pod for pod in cluster.pods if not pod.node_name), lacks_pods
    )


def _quota_notes(cluster: "SimulatedCluster") -> list[str]:
    creation = cluster.creation
    return [] if creation is None else creation.quota_notes((pod.namespace, 1) for _, pod in creation.pods)


def _check_sources(options: argparse.Namespace) -> None:
    if options.from_cluster:
        return
    problems = [] if options.files else ["there is nothing to simulate: give files, or --from-cluster"]
    problems += (
        f"--{option}: says how to reach a cluster, and --from-cluster is missing"
        for option in ("kubeconfig", "context")
        if getattr(options, option) is not None
    )
    if problems:
        raise ConfigError(problems)


def _show(options: argparse.Namespace, document: dict[str, Any], workloads: Mapping[tuple[str, str], str]) -> bool:
    """Print the result; return whether pods are pending."""
    from scheduler.simulate.output import as_json, as_text
    from scheduler.simulate.what_if.answers import is_short

    for note in document["notes"]:
        print(printable(note), file=sys.stderr)
    if options.output == "json":
        results().flush()
        results().buffer.writelines(text.encode() for text in as_json(document))
    else:
        print(as_text(document, workloads, explain=options.explain), file=results())
    return any(pod["node"] is None for pod in document["pods"]) or is_short(document)
