"""The entry point of the command `loadmaster`: its packages are found where it is, before anything else on Python's
path.

They are called `scheduler` and `plugins`, as folders of users are, too. A folder of that name in PYTHONPATH would be
imported in the place of ours. So this file is also installed next to the packages, as a module of its own, and imports
nothing of them before `keep_our_names`. What users have under these names cannot be imported, then; all else can.
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
