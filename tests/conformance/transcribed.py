"""kube-scheduler's own test tables as data: what goes in and what comes out, to be played against our engine.

A file in `tables/` is one test function of kube-scheduler, in its order: `source` (below pkg/scheduler; or a path after
`scheduler-plugins:`), `function`, how many cases that has (`count`), the `cases` themselves, and those that are
`left_out`, with the reason. Names of cases are those of the source, so that they can be found there.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

FOLDER: Final = Path(__file__).parent / "tables"

Case = dict[str, Any]


class LeftOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A case that cannot be played here."""

    name: str
    reason: str


class TestTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test function of kube-scheduler."""

    __test__ = False

    source: str
    function: str
    count: int
    cases: tuple[Case, ...] = ()
    """Each has at least a `name`."""

    left_out: tuple[LeftOut, ...] = ()
    about: str = ""
    """What all cases have in common."""


@cache
def table(name: str) -> TestTable:
    """Read a file of the folder, by its name without the ending."""
    return msgspec.convert(yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")), TestTable)


def names() -> list[str]:
    """Return the names of all tables."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def cases(name: str) -> list[Any]:
    """Return the cases of a table as parameters of a test."""
    return [pytest.param(case, id=case["name"]) for case in table(name).cases]
