"""The command line's options of the port; separate from the server, so that `--help` need not load it."""

import argparse
import ipaddress
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final

from scheduler.config.serving import ServingOptions

DEFAULTS: Final = ServingOptions()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options. `take_options` makes them one object."""
    serving = parser.add_argument_group("serving")
    serving.add_argument("--secure-port", type=_port, metavar="PORT", help=_text("HTTPS port; 0 opens none"))
    serving.add_argument("--bind-address", type=_address, metavar="IP", help=_text("where it listens"))
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
        type=_duration,
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
            type=_duration,
            metavar="DURATION",
            help=f"how long {text} is kept; default: 10s",
        )
    parser.set_defaults(**{field.name: getattr(DEFAULTS, field.name) for field in fields(DEFAULTS)})


def take_options(given: dict[str, Any]) -> ServingOptions:
    """Take what belongs to the port out of the parsed options."""
    return ServingOptions(**{field.name: given.pop(field.name) for field in fields(DEFAULTS)})


def _add_flag(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    group.add_argument(name, type=_bool, nargs="?", const=True, metavar="BOOL", help=text)


def _text(text: str) -> str:
    return f"{text}; default: %(default)s"


def _checked(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Have argparse show what a ValueError says."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


@_checked
def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError(f"{port} is not between 0 and 65535")
    return port


@_checked
def _address(text: str) -> str:
    return str(ipaddress.ip_address(text or DEFAULTS.bind_address))


@_checked
def _duration(text: str) -> float:
    from scheduler.framework.duration import Duration  # not at the top: `--help` needs nothing of the framework

    return max(0.0, Duration.parse(text))


@_checked
def _bool(text: str) -> bool:
    known = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
    try:
        return known[text.lower()]
    except KeyError:
        raise ValueError(f"not a boolean: {text!r}") from None


def _list(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
