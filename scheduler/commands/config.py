"""`loadmaster config check` and `loadmaster config show`."""

import argparse
import json
import sys
from collections.abc import Sequence

from scheduler.config.effective import as_shown, as_yaml
from scheduler.config.load import load_config
from scheduler.config.notes import notes
from scheduler.config.source import Loaded
from scheduler.framework.errors import ConfigError
from scheduler.plugin_loading.registry import PluginRegistry
from scheduler.process.results import results
from scheduler.runtime import profile
from scheduler.runtime.registry import Registry


def run(options: argparse.Namespace, registry: Registry) -> int:
    """Check or show, and return the exit code. Raises ConfigError."""
    if options.config_command == "check":
        return _check(options.files, registry)
    loaded = _checked(options.file, registry)
    document = as_shown(loaded.config, loaded.registry)
    is_json = options.output == "json"
    text = json.dumps(document, indent=2, ensure_ascii=False) if is_json else as_yaml(document).rstrip()
    print(text, file=results())
    return 0


def _checked(path: str | None, registry: Registry) -> Loaded:
    """Load a configuration and make its plugins: as far as one can go without a cluster. Raises ConfigError."""
    if isinstance(registry, PluginRegistry):
        registry = registry.renewed()  # one for each configuration, which may name files and modules with plugins
    config = load_config(path, registry)
    problems: list[str] = []
    for spec in config.profiles:
        try:
            profile.build(spec, registry)
        except ConfigError as error:
            problems += (f"{path}: {problem}" if path else problem for problem in error.problems)
    if problems:
        raise ConfigError(problems)
    return Loaded(config, registry)


def _check(paths: Sequence[str], registry: Registry) -> int:
    problems: list[str] = []
    for path in paths:
        try:
            loaded = _checked(path, registry)
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
