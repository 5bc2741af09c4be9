"""Our own plugins, even if something else is called `plugins` where the program runs.

A folder of that name may be next to a user's program, or in PYTHONPATH, and Python would look there first.
"""

import importlib
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Final

from scheduler.framework.errors import ConfigError
from scheduler.runtime.registry import Registry

PACKAGE: Final = "plugins"
_ROOT: Final = Path(__file__).parents[2]


def in_tree() -> Registry:
    """Return the plugins that are shipped, by name. Raises ConfigError if another package has their place already."""
    spec = PathFinder.find_spec(PACKAGE, [str(_ROOT)])
    if spec is None or spec.loader is None:
        raise ConfigError([f"{_ROOT / PACKAGE}: Loadmaster's own plugins are not there"])
    known = sys.modules.get(PACKAGE)
    if known is None:
        known = sys.modules[PACKAGE] = module_from_spec(spec)
        spec.loader.exec_module(known)
    elif known.__spec__ is None or known.__spec__.origin != spec.origin:
        where = getattr(known, "__file__", None) or ", ".join(getattr(known, "__path__", ()))
        raise ConfigError([f"{where}: this package is called {PACKAGE!r}, as Loadmaster's own: rename it"])
    registry: Registry = importlib.import_module(PACKAGE).SHIPPED
    return registry
