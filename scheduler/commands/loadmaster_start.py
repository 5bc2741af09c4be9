"""The entry point of the command `loadmaster`: has Python find our packages before any others of their names.

They are called `scheduler` and `plugins`, and so are folders of some users. Such a folder in PYTHONPATH would be
imported instead of ours. So this file is also installed next to the packages, as a module of its own, and imports
nothing of them before `keep_our_names`. Users' own modules of these two names cannot be imported then; all others can.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import NoReturn

NAMES = ("scheduler", "plugins")
_HERE = Path(__file__).parent
HOME = str(_HERE if (_HERE / NAMES[0]).is_dir() else _HERE.parents[1])  # next to the packages, or within one


class _Ours(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(fullname, [HOME]) if fullname in NAMES else None


def keep_our_names() -> None:
    """From now on these packages are ours, in this process."""
    sys.meta_path.insert(0, _Ours())


def main() -> NoReturn:
    """Run the command, and end the process. Raises SystemExit for `--help`, and for what cannot be understood."""
    keep_our_names()
    from scheduler.__main__ import main as run
    from scheduler.process.ending import run_to_the_end

    run_to_the_end(run)
