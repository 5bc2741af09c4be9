"""upstream_tables.md lists every test file of kube-scheduler's plugins, and what it points to exists."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conformance.upstream_tables import find_sources, tables

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "tests" / "unit"
GENERATORS = ROOT / "tests" / "conformance" / "generators"

ROW = re.compile(r"^\| `(\w+/\w+_test\.go)` \| (\d+) \| (\d+) \| (.+) \|$", re.MULTILINE)
REFERENCE = re.compile(r"`((?:\w+/)*test_\w+\.py)(?:::(test_\w+))?`")
TOPICS = re.compile(r"topics? (`\w+`(?:(?:, | and )`\w+`)*)")


class Row(NamedTuple):
    """What the list says of a test file of kube-scheduler."""

    file: str
    functions: int
    cases: int
    where: str


@cache
def listed() -> list[Row]:
    text = (ROOT / "tests" / "conformance" / "upstream_tables.md").read_text(encoding="utf-8")
    return [Row(row[1], int(row[2]), int(row[3]), row[4]) for row in ROW.finditer(text)]


def test_every_file_of_kube_scheduler_is_listed_with_the_number_of_its_cases() -> None:
    sources = find_sources()
    if sources is None:
        pytest.skip("kube-scheduler's sources are not in Go's module cache")
    functions: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for table in tables(sources):
        functions[table.file] += 1
        cases[table.file] += table.cases

    assert [(row.file, row.functions, row.cases) for row in listed()] == [
        (file, count, cases[file]) for file, count in functions.items()
    ]


def test_every_row_says_where_the_intent_is_covered_or_why_it_is_not() -> None:
    silent = [
        row.file
        for row in listed()
        if not (row.where.startswith("not applicable: ") or REFERENCE.search(row.where) or TOPICS.search(row.where))
    ]

    assert silent == []
    assert len(listed()) > 50


def test_what_the_list_points_to_exists() -> None:
    assert [gone for row in listed() for gone in _gone(row.where)] == []


def _gone(where: str) -> Iterator[str]:
    for file, test in REFERENCE.findall(where):
        path = _unit_test(file)
        if path is None or (test and f"def {test}(" not in _text(path)):
            yield f"{file}::{test}"
    for names in TOPICS.findall(where):
        for topic in re.findall(r"`(\w+)`", names):
            if not (GENERATORS / f"{topic}.py").exists():
                yield f"topic {topic}"


def _unit_test(file: str) -> Path | None:
    """Files are named below tests/unit/plugins, or with their folder below tests/unit."""
    return next((path for path in (UNIT / "plugins" / file, UNIT / file) if path.exists()), None)


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
