"""The way of a warm decision is the one that the page shows, and no longer than it was."""

import re
from pathlib import Path

from tests.bench.warm_decision import length, page, traced

PAGE = Path(__file__).parents[3] / "docs" / "design" / "columns.md"


def test_a_warm_decision_goes_the_way_that_the_page_shows() -> None:
    found = re.search(r"^## A warm decision$.*?^```text$\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None

    assert found.group(1).splitlines() == page(traced()).splitlines()


def test_a_warm_decision_is_no_longer_than_it_was() -> None:
    way = length(traced())

    assert way.functions <= 71
    assert way.files <= 22
    assert way.calls <= 143
    assert way.between_files <= 100


def test_nothing_that_was_called_for_a_plugin_calls_the_engine_back() -> None:
    calls = list(traced().all())

    back = [
        f"{caller} calls {called}" for caller, called in calls if is_plugins(caller.file) and is_engines(called.file)
    ]
    assert back == []


def is_plugins(file: str) -> bool:
    return file.startswith("plugins/")


def is_engines(file: str) -> bool:
    return file.startswith(("scheduler/cycle/", "scheduler/runtime/"))
