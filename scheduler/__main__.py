"""The command line."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from scheduler.authoring.arguments import add_arguments as add_authoring_arguments
from scheduler.config.options import RunOptions
from scheduler.loading.arguments import add_plugin_arguments
from scheduler.serve.arguments import add_arguments as add_serving_arguments
from scheduler.serve.arguments import take_options as take_serving_options
from scheduler.simulate.arguments import add_arguments as add_simulate_arguments

if TYPE_CHECKING:  # loads numpy, which `--version` and `--help` do without: see `_execute`
    from scheduler.loading.registry import PluginRegistry
    from scheduler.runtime.registry import Registry

WRONG_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

LEADER_ELECTION = "leader_election."
"""Begins what argparse calls the fields of `leaderElection`."""

DEFAULTS = RunOptions(registry={})

_NOT_OF_RUN = frozenset({"command", "plugin_directories"})


def main(argv: Sequence[str] | None = None, plugins: "Registry | None" = None) -> int:
    """Run a command and return its exit code. `plugins`: those that the configuration may name beside our own.

    A scheduler with plugins of its own is a file of five lines: `sys.exit(main(plugins={"Mine": Mine}))`.
    """
    try:
        code = _execute(_parser().parse_args(argv), plugins or {})
        sys.stdout.flush()  # so that a pipe that broke is noticed here
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has seen enough. Python flushes once more at its end: let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="loadmaster", description="A Kubernetes scheduler.")
    parser.add_argument("--version", action="version", version=f"loadmaster {metadata.version('loadmaster')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run_arguments(commands.add_parser("run", help="schedule the pods of a cluster"))
    add_simulate_arguments(commands.add_parser("simulate", help="say where pods would run, without a cluster"))
    add_authoring_arguments(commands.add_parser("plugins", help="look at plugins, or begin one"))
    return parser


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Schedule pods whose spec.schedulerName is the name of one of the configuration's profiles: 'loadmaster' if "
        "it names none. Options have the names and meanings of kube-scheduler's."
    )
    parser.add_argument("--config", metavar="FILE", help="KubeSchedulerConfiguration, in YAML or JSON")
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the cluster; default: clientConnection.kubeconfig of the configuration, then the service "
        "account of the pod this runs in, then your own kubeconfig",
    )
    parser.add_argument(
        "-v",
        "--v",
        nargs="?",
        type=int,
        const=1,
        default=DEFAULTS.verbosity,
        metavar="LEVEL",
        dest="verbosity",
        help="how much to log; default: %(default)s",
    )
    parser.add_argument(
        "--logging-format",
        choices=("text", "json"),
        default=DEFAULTS.logging_format,
        help="default: %(default)s",
    )
    add_plugin_arguments(parser)
    add_serving_arguments(parser)
    _add_leader_election_arguments(parser)


def _add_leader_election_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "leader election", "which of several replicas works; what is not given here is as the configuration says"
    )

    def add(flag: str, field: str, type_: Callable[[str], object], metavar: str, text: str) -> None:
        kind = {"nargs": "?", "const": True} if type_ is _truth else {}
        dest = f"{LEADER_ELECTION}{field}"
        group.add_argument(flag, type=type_, metavar=metavar, dest=dest, help=text, **kind)  # type: ignore[arg-type]

    add("--leader-elect", "leaderElect", _truth, "BOOL", "whether a replica works only while it holds the Lease")
    for name, field, text in (
        ("lease-duration", "leaseDuration", "how long after its last renewal another replica may take the Lease over"),
        ("renew-deadline", "renewDeadline", "how long the leader tries to renew; less than the lease duration"),
        ("retry-period", "retryPeriod", "how long between two attempts to take or renew the Lease"),
    ):
        add(f"--leader-elect-{name}", field, _duration, "TIME", text)
    for name, field, text in (
        ("lock", "resourceLock", "kind of the lock: leases"),
        ("name", "resourceName", "name of the Lease"),
        ("namespace", "resourceNamespace", "where the Lease is"),
    ):
        add(f"--leader-elect-resource-{name}", field, str, name.upper(), text)


def _truth(text: str) -> bool:
    """What Go's strconv.ParseBool takes."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def _duration(text: str) -> object:
    from scheduler.framework.duration import Duration  # not at the top: as `plugins` below

    try:
        return Duration.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _execute(options: argparse.Namespace, plugins: "Registry") -> int:
    # Not at the top: `--version` and `--help` end before, and take 0.06 s instead of 0.3 s without numpy and plugins.
    from scheduler.framework.errors import ConfigError
    from scheduler.loading.in_tree import in_tree
    from scheduler.loading.registry import PluginRegistry

    try:
        registry = PluginRegistry(in_tree(), plugins, getattr(options, "plugin_directories", ()))
        if options.command == "plugins":
            return _author(options, registry)
        return _simulate(options, registry) if options.command == "simulate" else _run(options, registry)
    except ConfigError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        return WRONG_INPUT


def _simulate(options: argparse.Namespace, registry: "Registry") -> int:
    from scheduler.simulate import command  # as `plugins` above

    return command.run(options, registry)


def _author(options: argparse.Namespace, registry: "PluginRegistry") -> int:
    from scheduler.authoring import command  # as `plugins` above

    return command.run(options, registry)


def _run(options: argparse.Namespace, registry: "Registry") -> int:
    given = {key: value for key, value in vars(options).items() if key not in _NOT_OF_RUN}
    election = [key for key in given if key.startswith(LEADER_ELECTION)]
    flags = {key.removeprefix(LEADER_ELECTION): value for key in election if (value := given.pop(key)) is not None}
    serving = take_serving_options(given)
    # Not at the top: `simulate` needs neither kopf nor a client, and starts in a fraction of the time without.
    from scheduler import app

    return app.run(RunOptions(registry=registry, leader_election=flags, serving=serving, **given))


if __name__ == "__main__":
    sys.exit(main())
