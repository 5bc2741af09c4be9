"""`loadmaster run`: its flags, which are kube-scheduler's; `scheduling.py` and `shadow.py` do the work."""

import argparse
import ipaddress
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from scheduler.commands.options import (
    add_gates_argument,
    add_plugin_arguments,
    checked,
    duration,
    go_value,
    registry,
    truth,
)
from scheduler.config.options import RunOptions, ServingOptions

LEADER_ELECTION: Final = "leader_election."
"""Begins what argparse calls the fields of `leaderElection`."""

IN_CONFIG: Final = "config."
"""Begins what argparse calls a flag that is a field of the configuration: the rest is its path."""

DEFAULTS: Final = RunOptions(registry={})
SERVING: Final = DEFAULTS.serving


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    add_gates_argument(parser)
    _add_logging_arguments(parser)
    add_plugin_arguments(parser)
    _add_serving_arguments(parser)
    _add_access_arguments(parser)
    _add_leader_election_arguments(parser)
    _add_deprecated_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Schedule until stopped. Raises ConfigError."""
    from scheduler.assembly import scheduling

    return scheduling.run(run_options(options))


def run_options(options: argparse.Namespace) -> RunOptions:
    """Return what was given, as the scheduler takes it. Raises ConfigError for plugins that cannot be loaded."""
    given = vars(options)
    return RunOptions(
        registry=registry(options),
        leader_election=_given(given, LEADER_ELECTION),
        deprecated=_given(given, IN_CONFIG),
        serving=ServingOptions(**{field.name: given[field.name] for field in fields(SERVING)}),
        flags=_shown_flags(given),
        **{field.name: given[field.name] for field in fields(DEFAULTS) if field.name in given},
    )


def _given(options: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the options that were given of those whose names begin with the prefix, without it."""
    return {
        key.removeprefix(prefix): value
        for key, value in options.items()
        if key.startswith(prefix) and value is not None
    }


def _shown_flags(given: dict[str, Any]) -> dict[str, str]:
    """Name → value of every flag as Go writes values, for `/flagz`."""
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser)
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
        type=_modules,
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


def _add_serving_arguments(parser: argparse.ArgumentParser) -> None:
    serving = parser.add_argument_group("serving")
    serving.add_argument(
        "--secure-port", type=_port, metavar="PORT", help="HTTPS port; 0 opens none; default: %(default)s"
    )
    serving.add_argument("--bind-address", type=_address, metavar="IP", help="where it listens; default: %(default)s")
    serving.add_argument(
        "--cert-dir",
        metavar="DIRECTORY",
        help="where the certificate is kept that is made if none is given; default: in memory",
    )
    serving.add_argument(
        "--tls-cert-file",
        metavar="FILE",
        help="certificate in PEM, followed by those of its authorities; read again when it changes",
    )
    serving.add_argument("--tls-private-key-file", metavar="FILE", help="its key")
    serving.add_argument("--tls-min-version", metavar="VERSION", help="VersionTLS12 (default) or VersionTLS13")
    serving.add_argument(
        "--tls-cipher-suites", type=_list, metavar="NAMES", help="comma-separated, for TLS 1.2; default: Python's"
    )
    _add_flag(serving, "--page", "serve the page about the cluster, at /debug/page/; `loadmaster page` shows it")
    parser.set_defaults(**{field.name: getattr(SERVING, field.name) for field in fields(SERVING)})


def _add_access_arguments(parser: argparse.ArgumentParser) -> None:
    authentication = parser.add_argument_group("who asks for metrics")
    authentication.add_argument(
        "--authentication-kubeconfig",
        metavar="FILE",
        help="cluster that is asked about tokens; default: that of the pod this runs in",
    )
    _add_flag(authentication, "--authentication-skip-lookup", "do not ask that cluster for its client CA")
    _add_flag(
        authentication, "--authentication-tolerate-lookup-failure", "start even if it does not give it; default: true"
    )
    authentication.add_argument(
        "--authentication-token-webhook-cache-ttl",
        type=_not_negative,
        metavar="DURATION",
        help="how long an answer about a token is kept; default: 10s",
    )
    authentication.add_argument(
        "--client-ca-file",
        metavar="FILE",
        help="authorities whose client certificates are accepted; default: the cluster's",
    )

    authorization = parser.add_argument_group("who may see metrics")
    authorization.add_argument(
        "--authorization-kubeconfig",
        metavar="FILE",
        help="cluster that is asked about rights; default: that of the pod this runs in",
    )
    authorization.add_argument(
        "--authorization-always-allow-paths",
        type=_list,
        metavar="PATHS",
        help="comma-separated, for everyone; default: /healthz,/readyz,/livez",
    )
    for kind, text in (("authorized", "a permission"), ("unauthorized", "a refusal")):
        authorization.add_argument(
            f"--authorization-webhook-cache-{kind}-ttl",
            type=_not_negative,
            metavar="DURATION",
            help=f"how long {text} is kept; default: 10s",
        )


def _add_leader_election_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "leader election", "which of several replicas works; what is not given here is as the configuration says"
    )
    add = _adding_fields(group, LEADER_ELECTION)
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
    add = _adding_fields(group, IN_CONFIG)
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


def _adding_fields(group: argparse._ArgumentGroup, prefix: str) -> Callable[..., None]:
    """Return what describes a flag for a field of the configuration."""

    def add(flag: str, path: str, type_: Callable[[str], object], metavar: str, text: str) -> None:
        kind: dict[str, Any] = {"nargs": "?", "const": True} if type_ is truth else {}
        group.add_argument(flag, type=type_, metavar=metavar, dest=f"{prefix}{path}", help=text, **kind)

    return add


def _add_flag(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    group.add_argument(name, type=_bool, nargs="?", const=True, metavar="BOOL", help=text)


@checked
def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError(f"{port} is not between 0 and 65535")
    return port


@checked
def _address(text: str) -> str:
    return str(ipaddress.ip_address(text or SERVING.bind_address))


@checked
def _bool(text: str) -> bool:
    known = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
    try:
        return known[text.lower()]
    except KeyError:
        raise ValueError(f"not a boolean: {text!r}") from None


def _list(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _not_negative(text: str) -> float:
    return max(0.0, duration(text))


@checked
def _modules(text: str) -> tuple[tuple[str, int], ...]:
    from scheduler.process.logs import parse_modules

    return parse_modules(text)
