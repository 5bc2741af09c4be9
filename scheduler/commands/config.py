"""`loadmaster config check` and `loadmaster config show`."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from scheduler.commands.options import add_output_argument, add_plugin_arguments, describe, registry
from scheduler.framework.errors import ConfigError
from scheduler.process.results import results

if TYPE_CHECKING:
    from scheduler.config.source import Loaded
    from scheduler.plugin_loading.registry import PluginRegistry

CHECK: Final = """\
Read configurations as `loadmaster run --config` does, without a cluster, and say of each whether it can be used: every
problem on a line with its file, line and field. Exit code 2 if one cannot.
"""

SHOW: Final = """\
Print a configuration as it is in effect, with all defaults written out: a file that means the same. Without FILE: the
configuration of a scheduler that is started without one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="config_command", metavar="COMMAND", required=True)
    check = commands.add_parser("check", help="is it valid?")
    describe(check, CHECK)
    check.add_argument("files", nargs="+", metavar="FILE", help="KubeSchedulerConfiguration; - is standard input")
    add_plugin_arguments(check)
    show = commands.add_parser("show", help="print what is in effect")
    describe(show, SHOW)
    show.add_argument("file", nargs="?", metavar="FILE", help="KubeSchedulerConfiguration; - is standard input")
    add_plugin_arguments(show)
    add_output_argument(show, "yaml")


def run(options: argparse.Namespace) -> int:
    """Check or show. Raises ConfigError."""
    from scheduler.config.effective import as_shown, as_yaml

    plugins = registry(options)
    if options.config_command == "check":
        return _check(options.files, plugins)
    loaded = _checked(options.file, plugins)
    document = as_shown(loaded.config, loaded.registry)
    is_json = options.output == "json"
    text = json.dumps(document, indent=2, ensure_ascii=False) if is_json else as_yaml(document).rstrip()
    print(text, file=results())
    return 0


def _checked(path: str | None, plugins: "PluginRegistry") -> "Loaded":
    """Load a configuration and make its plugins, without a cluster. Raises ConfigError."""
    from scheduler.config.load import load_config
    from scheduler.config.source import Loaded
    from scheduler.runtime import profile

    plugins = plugins.renewed()  # one for each configuration, which may name files and modules with plugins
    config = load_config(path, plugins)
    problems: list[str] = []
    for spec in config.profiles:
        try:
            profile.build(spec, plugins)
        except ConfigError as error:
            problems += (f"{path}: {problem}" if path else problem for problem in error.problems)
    if problems:
        raise ConfigError(problems)
    return Loaded(config, plugins)


def _check(paths: Sequence[str], plugins: "PluginRegistry") -> int:
    from scheduler.config.notes import notes

    problems: list[str] = []
    for path in paths:
        try:
            loaded = _checked(path, plugins)
        except ConfigError as error:
            problems += error.problems
            continue
        for note in notes(loaded.config, loaded.registry):
            print(f"{path}: {note}", file=sys.stderr)
        names = ", ".join(spec.scheduler_name for spec in loaded.config.profiles)
        print(f"{path}: valid; profiles: {names}", file=results())
    if problems:
        raise ConfigError(problems)
    return 0
