"""Options that several commands have, and how flags are read and written.

Like the first lines of every command's module, nothing at the top loads numpy, an HTTP client or plugins: `--help`
does without.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from scheduler.framework.duration import Duration

if TYPE_CHECKING:
    from scheduler.config.feature_gates import FeatureGates
    from scheduler.plugin_loading.registry import PluginRegistry

T = TypeVar("T")

_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")


def describe(parser: argparse.ArgumentParser, description: str, epilog: str | None = None) -> None:
    """Show these texts with their line breaks."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = description, epilog


def add_cluster_arguments(parser: argparse.ArgumentParser, kubeconfig: str = "how to reach the cluster") -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help=f"{kubeconfig}; default: your own kubeconfig")
    parser.add_argument("--context", help="a context of the kubeconfig; default: the current one")


def add_service_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--service", default="loadmaster", help="the scheduler's Service; default: %(default)s")
    parser.add_argument(
        "--service-namespace",
        default="kube-system",
        metavar="NAMESPACE",
        help="and its namespace; default: %(default)s",
    )


def add_plugin_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `--plugin-dir`; `registry` loads what it names."""
    parser.add_argument(
        "--plugin-dir",
        action="append",
        default=[],
        metavar="DIR",
        dest="plugin_directories",
        help="a directory with plugins of your own, a Python file each; can be given several times",
    )


def add_gates_argument(parser: argparse.ArgumentParser) -> None:
    """Describe `--feature-gates`; `feature_gates` reads it."""
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="NAME=BOOL,…",
        help="kube-scheduler's switches: those that change what we do are obeyed, those that would have to are refused",
    )


def add_source_arguments(parser: argparse.ArgumentParser, here: str = "") -> None:
    """Describe who answers: the running scheduler, or this command. `here`: what else it does then, ` and decide`."""
    add_cluster_arguments(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--from-cluster",
        action="store_true",
        help=f"do not ask the running scheduler: read the cluster{here} here, also with another --config",
    )
    source.add_argument(
        "--from",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help=f"read files as `simulate` does{f',{here} here' if here else ''}",
    )
    add_service_arguments(parser)
    parser.add_argument(
        "--config", metavar="FILE", help="KubeSchedulerConfiguration to read here; default: all default plugins"
    )
    add_plugin_arguments(parser)
    add_gates_argument(parser)


def add_output_argument(parser: argparse.ArgumentParser, text: str = "text") -> None:
    parser.add_argument("-o", "--output", choices=(text, "json"), default=text, help="default: %(default)s")


def registry(options: argparse.Namespace) -> "PluginRegistry":
    """Load all plugins that a configuration may name."""
    from scheduler.plugin_loading.in_tree import in_tree
    from scheduler.plugin_loading.registry import PluginRegistry

    return PluginRegistry(in_tree(), options.plugins, options.plugin_directories)


def feature_gates(options: argparse.Namespace) -> "FeatureGates":
    """Return the feature gates. Raises ConfigError."""
    from scheduler.config.feature_gates import read_gates

    return read_gates(options.feature_gates)[0]


def checked(read: Callable[[str], T]) -> Callable[[str], T]:
    """Have argparse print the message of a ValueError."""

    def convert(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


@checked
def truth(text: str) -> bool:
    """Read what Go's strconv.ParseBool takes."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


duration = checked(Duration.parse)


def go_value(value: object) -> str:
    """Return a flag's value as Go's pflag writes it."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case Mapping():
            return ",".join(f"{key}={go_value(each)}" for key, each in value.items())
        case str():
            return value
        case Sequence() if value and isinstance(value[0], tuple):
            return ",".join(f"{pattern}={level}" for pattern, level in value)
        case Sequence():
            return f"[{','.join(map(go_value, value))}]"
        case _:
            return str(value)
