"""The command line: the table `COMMANDS`, each a module of `scheduler.commands`, and how a command ends."""

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

from scheduler.files.memory import memory_of_process
from scheduler.process.ending import run_to_the_end
from scheduler.process.results import only_results_on_stdout

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from scheduler.runtime.registry import Registry

COMMANDS: Final = {
    "run": "schedule the pods of a cluster",
    "explain": "say why a pod is pending, and what would help",
    "quota": "show the shares of the cluster: who is guaranteed, uses and borrows what",
    "page": "show the running scheduler's page in a browser",
    "simulate": "say where pods would run, without a cluster",
    "doctor": "examine an installation: each line says what to do",
    "snapshot": "write what simulate reads of a cluster into a file",
    "record": "record what a running scheduler sees and decides",
    "replay": "decide once more what was recorded, and compare",
    "config": "check a configuration, or show what is in effect",
    "plugins": "look at plugins, or begin one",
}
"""Each is a module of `scheduler.commands` with `add_arguments` and `run`. Only the one that is used is imported."""

WRONG_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""How writing fails that worked until then."""


def main(argv: Sequence[str] | None = None, plugins: "Registry | None" = None) -> int:
    """Run a command and return its exit code. `plugins`: those that the configuration may name in addition to our own.

    A scheduler with plugins of its own is a file of five lines: `sys.exit(main(plugins={"Mine": Mine}))`.
    """
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - as long as the program
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals that show ASCII only, as stderr does
    try:
        return _main(sys.argv[1:] if argv is None else argv, plugins or {})
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough
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


def _main(argv: Sequence[str], plugins: "Registry") -> int:
    try:
        options = _parser(argv).parse_args(argv, argparse.Namespace(plugins=plugins, plugin_directories=()))
        with only_results_on_stdout():
            code = _run(options)
    except SystemExit:  # of the parser, once it has printed help or a problem
        sys.stdout.flush()
        raise
    sys.stdout.flush()  # so that a pipe that broke is noticed here
    return code


def _write_nowhere() -> None:
    """Python flushes once more at its end: let that do no harm."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """A parser that raises OSError if help or version cannot be written, where argparse silently ends with 0."""

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        if file is not None and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


class _Version(argparse.Action):
    """Looks the version up only if it is wanted: that takes as long as the start of Python."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        text = "show program's version number and exit"
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=text)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        parser._print_message(f"loadmaster {version('loadmaster')}\n", sys.stdout)
        parser.exit()


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of this command line: other commands than those that it names have no options."""
    parser = _Parser(prog="loadmaster", description="A Kubernetes scheduler.")
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if name in argv:
            _module(name).add_arguments(command)
    return parser


def _run(options: argparse.Namespace) -> int:
    from scheduler.api.wording.text import printable
    from scheduler.framework.errors import ClusterError, ConfigError

    try:
        code: int = _module(options.command).run(options)
    except (ConfigError, ClusterError) as error:
        for problem in error.problems if isinstance(error, ConfigError) else [str(error)]:
            print(printable(problem), file=sys.stderr)
        return WRONG_INPUT
    return code


def _module(command: str) -> ModuleType:
    return import_module(f"scheduler.commands.{command}")


if __name__ == "__main__":
    run_to_the_end(main)
