"""The command line."""

import argparse
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any

from scheduler.commands.explain_arguments import add_arguments as add_explain_arguments
from scheduler.commands.page_arguments import add_arguments as add_page_arguments
from scheduler.commands.plugins_arguments import add_arguments as add_authoring_arguments
from scheduler.commands.replay_arguments import add_record_arguments, add_replay_arguments
from scheduler.commands.run_arguments import (
    IN_CONFIG,
    LEADER_ELECTION,
    add_config_arguments,
    add_run_arguments,
    shown_flags,
)
from scheduler.commands.serving_arguments import take_options as take_serving_options
from scheduler.commands.simulate_arguments import add_arguments as add_simulate_arguments
from scheduler.commands.snapshot_arguments import add_arguments as add_snapshot_arguments
from scheduler.config.options import RunOptions
from scheduler.files.memory import memory_of_process
from scheduler.process.ending import run_to_the_end
from scheduler.process.results import only_results_on_stdout

if TYPE_CHECKING:  # loads numpy, which `--version` and `--help` do without: see `_execute`
    from _typeshed import SupportsWrite

    from scheduler.plugin_loading.registry import PluginRegistry
    from scheduler.runtime.registry import Registry

WRONG_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""How writing fails that worked until then."""

_NOT_OF_RUN = frozenset({"command", "plugin_directories"})


def main(argv: Sequence[str] | None = None, plugins: "Registry | None" = None) -> int:
    """Run a command and return its exit code. `plugins`: those that the configuration may name beside our own.

    A scheduler with plugins of its own is a file of five lines: `sys.exit(main(plugins={"Mine": Mine}))`.
    """
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - as long as the program
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals that show ASCII only, as stderr does
    try:
        return _main(argv, plugins or {})
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read us has seen enough
        _write_nowhere()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        print(f"standard output: cannot be written: {error.strerror}", file=sys.stderr)
        _write_nowhere()
        return WRONG_INPUT
    except MemoryError:
        # Not in the handler: until it is left, the traceback keeps what took the memory.
        pass
    print(f"out of memory: this process may have {memory_of_process() >> 20} MiB, and needs more", file=sys.stderr)
    return WRONG_INPUT


def _main(argv: Sequence[str] | None, plugins: "Registry") -> int:
    parser, of_run = _parser()
    try:
        options = parser.parse_args(argv)
        with only_results_on_stdout():
            code = _execute(options, of_run, plugins)
    except SystemExit:  # of the parser, once it has printed what it was asked for, or what is wrong
        sys.stdout.flush()
        raise
    sys.stdout.flush()  # so that a pipe that broke is noticed here
    return code


def _write_nowhere() -> None:
    """Python flushes once more at its end: let that do no harm."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """One that raises OSError if help or version cannot be written; argparse says nothing of that, and ends with 0."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        if file is not None and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


def _parser() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """The parser of the command line, and that of `run` within it."""
    parser = _Parser(prog="loadmaster", description="A Kubernetes scheduler.")
    parser.add_argument("--version", action="version", version=f"loadmaster {metadata.version('loadmaster')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    of_run = commands.add_parser("run", help="schedule the pods of a cluster")
    add_run_arguments(of_run)
    add_explain_arguments(commands.add_parser("explain", help="say why a pod is pending, and what would help"))
    add_page_arguments(commands.add_parser("page", help="show the running scheduler's page in a browser"))
    add_simulate_arguments(commands.add_parser("simulate", help="say where pods would run, without a cluster"))
    add_snapshot_arguments(commands.add_parser("snapshot", help="write what simulate reads of a cluster into a file"))
    add_record_arguments(commands.add_parser("record", help="record what a running scheduler sees and decides"))
    add_replay_arguments(commands.add_parser("replay", help="decide once more what was recorded, and compare"))
    add_config_arguments(commands.add_parser("config", help="check a configuration, or show what is in effect"))
    add_authoring_arguments(commands.add_parser("plugins", help="look at plugins, or begin one"))
    return parser, of_run


def _execute(options: argparse.Namespace, of_run: argparse.ArgumentParser, plugins: "Registry") -> int:
    # Not at the top: `--version` and `--help` end before, and take 0.06 s instead of 0.3 s without numpy and plugins.
    from scheduler.api.text import printable
    from scheduler.framework.errors import ConfigError

    try:
        return _command(options, of_run, partial(_registry, options, plugins))
    except ConfigError as error:
        for problem in error.problems:
            print(printable(problem), file=sys.stderr)
        return WRONG_INPUT


def _registry(options: argparse.Namespace, plugins: "Registry") -> "PluginRegistry":
    from scheduler.plugin_loading.in_tree import in_tree  # as above
    from scheduler.plugin_loading.registry import PluginRegistry

    return PluginRegistry(in_tree(), plugins, getattr(options, "plugin_directories", ()))


def _command(
    options: argparse.Namespace, of_run: argparse.ArgumentParser, registry: "Callable[[], PluginRegistry]"
) -> int:
    """Run it. Those that ask a running scheduler load no plugins and no numpy, which takes longer than the answer."""
    match options.command:
        case "explain":
            return _explain(options, registry)
        case "page":
            return _page(options)
        case "record":
            return _record(options)
        case "replay":
            return _replay(options, registry())
        case "simulate":
            return _simulate(options, registry())
        case "snapshot":
            return _snapshot(options, registry())
        case "config":
            return _config(options, registry())
        case "plugins":
            return _author(options, registry())
        case _:
            return _run(options, of_run, registry())


def _explain(options: argparse.Namespace, registry: "Callable[[], Registry]") -> int:
    from scheduler.commands import explain as command  # as `plugins` above

    return command.run(options, registry)


def _record(options: argparse.Namespace) -> int:
    from scheduler.commands import record  # as `plugins` above

    return record.run(options)


def _replay(options: argparse.Namespace, registry: "Registry") -> int:
    from scheduler.commands import replay as command  # as `plugins` above

    return command.run(options, registry)


def _page(options: argparse.Namespace) -> int:
    from scheduler.commands import page  # as `plugins` above

    return page.run(options)


def _simulate(options: argparse.Namespace, registry: "Registry") -> int:
    if options.from_cluster:
        from scheduler.commands import simulate_cluster as simulation  # with a client, which files do without

        return simulation.run(options, registry)
    from scheduler.commands import simulate as command  # as `plugins` above

    return command.run(options, registry)


def _snapshot(options: argparse.Namespace, registry: "Registry") -> int:
    from scheduler.commands import snapshot  # as `plugins` above

    return snapshot.run(options, registry)


def _author(options: argparse.Namespace, registry: "PluginRegistry") -> int:
    from scheduler.commands import plugins as command  # as `plugins` above

    return command.run(options, registry)


def _config(options: argparse.Namespace, registry: "PluginRegistry") -> int:
    from scheduler.commands import config as command  # likewise

    return command.run(options, registry)


def _run(options: argparse.Namespace, of_run: argparse.ArgumentParser, registry: "PluginRegistry") -> int:
    flags = shown_flags(of_run, vars(options))
    given = {key: value for key, value in vars(options).items() if key not in _NOT_OF_RUN}
    election = _take(given, LEADER_ELECTION)
    deprecated = _take(given, IN_CONFIG)
    serving = take_serving_options(given)
    # Not at the top: `simulate` needs neither kopf nor a client, and starts in a fraction of the time without.
    from scheduler.commands import run as app

    return app.run(
        RunOptions(
            registry=registry, leader_election=election, deprecated=deprecated, serving=serving, flags=flags, **given
        )
    )


def _take(given: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Take the options out whose names begin so, and return those that were given, by the rest of their names."""
    taken = {key.removeprefix(prefix): given.pop(key) for key in list(given) if key.startswith(prefix)}
    return {key: value for key, value in taken.items() if value is not None}


if __name__ == "__main__":
    run_to_the_end(main)
