"""The options of `loadmaster run` and `loadmaster config`; apart from the commands, so that `--help` loads neither."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final

from scheduler.commands.flag_types import duration, go_value, list_of_modules, truth
from scheduler.commands.plugin_directories import add_plugin_arguments
from scheduler.commands.serving_arguments import add_arguments as add_serving_arguments
from scheduler.config.options import RunOptions

LEADER_ELECTION: Final = "leader_election."
"""Begins what argparse calls the fields of `leaderElection`."""

IN_CONFIG: Final = "config."
"""Begins what argparse calls a flag that is a field of the configuration: the rest is its path."""

DEFAULTS: Final = RunOptions(registry={})

_CHECK: Final = """\
Read configurations as `loadmaster run --config` does, without a cluster, and say of each whether it can be used: every
problem on a line with its file, line and field. Exit code 2 if one cannot.
"""

_SHOW: Final = """\
Print a configuration as it is in effect, with all defaults written out: a file that means the same. Without FILE: the
configuration of a scheduler that is started without one.
"""


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options of `run`."""
    parser.description = (
        "Schedule pods whose spec.schedulerName is the name of one of the configuration's profiles: 'loadmaster' if "
        "it names none. Options have the names and meanings of kube-scheduler's."
    )
    parser.add_argument(
        "--config", metavar="FILE", help="KubeSchedulerConfiguration, in YAML or JSON; read again when it changes"
    )
    parser.add_argument(
        "--write-config-to", metavar="FILE", help="write the configuration as it would be in effect to FILE, and exit"
    )
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the cluster; default: clientConnection.kubeconfig of the configuration, then the service "
        "account of the pod this runs in, then your own kubeconfig",
    )
    parser.add_argument(
        "--shadow-of",
        metavar="NAME",
        help="schedule nothing: decide about the pods of the scheduler of that name, as soon as it has, and report "
        "where and why that would differ; writes nothing, and needs rights to read only",
    )
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="NAME=BOOL,…",
        help="kube-scheduler's switches: those that change what we do are obeyed, those that would have to are refused",
    )
    _add_logging_arguments(parser)
    add_plugin_arguments(parser)
    add_serving_arguments(parser)
    _add_leader_election_arguments(parser)
    _add_deprecated_arguments(parser)


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the commands of `config`."""
    commands = parser.add_subparsers(dest="config_command", metavar="COMMAND", required=True)
    raw = argparse.RawDescriptionHelpFormatter
    check = commands.add_parser("check", help="is it valid?", description=_CHECK, formatter_class=raw)
    check.add_argument("files", nargs="+", metavar="FILE", help="KubeSchedulerConfiguration; - is standard input")
    add_plugin_arguments(check)
    show = commands.add_parser("show", help="print what is in effect", description=_SHOW, formatter_class=raw)
    show.add_argument("file", nargs="?", metavar="FILE", help="KubeSchedulerConfiguration; - is standard input")
    add_plugin_arguments(show)
    show.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="default: %(default)s")


def shown_flags(parser: argparse.ArgumentParser, given: Mapping[str, Any]) -> dict[str, str]:
    """Name → value of every option of `run` as Go writes values, for `/flagz`."""
    flags: dict[str, str] = {}
    for action in parser._actions:
        names = [name.removeprefix("--") for name in action.option_strings if name.startswith("--")]
        if action.dest in given:
            flags |= {name: go_value(given[action.dest]) for name in names}
    return dict(sorted(flags.items()))


def _add_logging_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v",
        "--v",
        nargs="?",
        type=int,
        const=1,
        default=DEFAULTS.verbosity,
        metavar="LEVEL",
        dest="verbosity",
        help="how much to log; default: %(default)s. PUT /debug/flags/v changes it",
    )
    parser.add_argument(
        "--vmodule",
        type=list_of_modules,
        default=DEFAULTS.modules,
        metavar="PATTERN=LEVEL,…",
        dest="modules",
        help="how much these modules log: scheduling_queue=4, or scheduler.kube.*=4",
    )
    parser.add_argument(
        "--logging-format",
        choices=("text", "json"),
        default=DEFAULTS.logging_format,
        help="default: %(default)s",
    )


def _add_leader_election_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "leader election", "which of several replicas works; what is not given here is as the configuration says"
    )

    def add(flag: str, field: str, type_: Callable[[str], object], metavar: str, text: str) -> None:
        kind: dict[str, Any] = {"nargs": "?", "const": True} if type_ is truth else {}
        dest = f"{LEADER_ELECTION}{field}"
        group.add_argument(flag, type=type_, metavar=metavar, dest=dest, help=text, **kind)

    add("--leader-elect", "leaderElect", truth, "BOOL", "whether a replica works only while it holds the Lease")
    for name, field, text in (
        ("lease-duration", "leaseDuration", "how long after its last renewal another replica may take the Lease over"),
        ("renew-deadline", "renewDeadline", "how long the leader tries to renew; less than the lease duration"),
        ("retry-period", "retryPeriod", "how long between two attempts to take or renew the Lease"),
    ):
        add(f"--leader-elect-{name}", field, duration, "TIME", text)
    for name, field, text in (
        ("lock", "resourceLock", "kind of the lock: leases"),
        ("name", "resourceName", "name of the Lease"),
        ("namespace", "resourceNamespace", "where the Lease is"),
    ):
        add(f"--leader-elect-resource-{name}", field, str, name.upper(), text)


def _add_deprecated_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "deprecated", "as kube-scheduler's: with --config, all but the last are ignored; the file has fields for them"
    )

    def add(flag: str, path: str, type_: Callable[[str], object], metavar: str, text: str) -> None:
        kind: dict[str, Any] = {"nargs": "?", "const": True} if type_ is truth else {}
        group.add_argument(flag, type=type_, metavar=metavar, dest=f"{IN_CONFIG}{path}", help=text, **kind)

    add("--profiling", "enableProfiling", truth, "BOOL", "serve /debug/pprof/profile")
    add("--contention-profiling", "enableContentionProfiling", truth, "BOOL", "no effect")
    add("--kube-api-content-type", "clientConnection.contentType", str, "TYPE", "no effect: requests are JSON")
    add("--kube-api-qps", "clientConnection.qps", float, "NUMBER", "no effect: requests are not limited here")
    add("--kube-api-burst", "clientConnection.burst", int, "NUMBER", "no effect, likewise")
    add(
        "--pod-max-in-unschedulable-pods-duration",
        "loadmaster.podMaxInUnschedulablePodsSeconds",
        duration,
        "TIME",
        "after which a pod that found no node is tried again although nothing happened; default: 5m",
    )
