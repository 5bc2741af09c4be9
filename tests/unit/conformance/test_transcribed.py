"""kube-scheduler's tables as data: each is complete, and played."""

import re
from pathlib import Path

import pytest

from tests.conformance.transcribed import names, table
from tests.conformance.upstream_tables import find_sources, tables

UNIT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", names())
def test_every_case_is_there_or_says_why_it_is_not(name: str) -> None:
    data = table(name)

    every = [case["name"] for case in data.cases] + [each.name for each in data.left_out]

    assert len(set(every)) == len(every) == data.count
    assert all(each.reason for each in data.left_out)


@pytest.mark.parametrize("name", [name for name in names() if not table(name).source.startswith("scheduler-plugins:")])
def test_there_are_as_many_cases_as_in_kube_schedulers_source(name: str) -> None:
    sources, data = find_sources(), table(name)
    if sources is None:
        pytest.skip("kube-scheduler's sources are not in Go's module cache")
    path = sources / data.source

    counts = {(each.file, each.function): each.cases for each in tables(sources)}

    assert counts[f"{path.parent.name}/{path.name}", data.function] == data.count
    text = path.read_text(encoding="utf-8")
    assert [case["name"] for case in data.cases if not is_in(text, case["name"])] == []


def is_in(text: str, name: str) -> bool:
    """Whether a case is in a Go file: by its name, of which Go numbers the second, or as a whole function."""
    return f'"{re.sub(r"#[0-9][0-9]$", "", name)}"' in text or f"func {name}(" in text


def test_every_table_is_played_by_a_test() -> None:
    texts = [path.read_text(encoding="utf-8") for path in UNIT.rglob("test_*.py")]

    unplayed = [name for name in names() if not any(f'cases("{name}")' in text for text in texts)]
    assert [name for name in unplayed if table(name).cases] == []
