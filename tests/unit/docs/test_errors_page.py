"""docs/operations has what an operator may see: each reason of an Event, and each warning and error in the log."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "operations" / "errors.md").read_text(encoding="utf-8")
LEVELS: Final = ("warning", "error", "exception", "critical")


@pytest.fixture(scope="module")
def calls() -> list[ast.Call]:
    """Every call of a method in the scheduler and its plugins."""
    files = [path for folder in ("scheduler", "plugins") for path in sorted((ROOT / folder).rglob("*.py"))]
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]


def reasons(call: ast.Call) -> Iterator[str]:
    """Yield what follows `Normal` or `Warning` in a call that reports an Event."""
    words = [each.value if isinstance(each, ast.Constant) else None for each in call.args]
    for kind, reason in pairwise(words):
        if kind in ("Normal", "Warning") and isinstance(reason, str):
            yield reason


def message(call: ast.Call) -> Iterator[str]:
    """Yield the text of a log line that says that something is wrong, up to where it has values of its own."""
    is_log = isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS
    if is_log and "log" in ast.unparse(call.func).partition(".")[0].lower():
        texts = [each.value for each in call.args if isinstance(each, ast.Constant)]
        yield from [text.partition(":")[0] for text in texts if isinstance(text, str)][:1]


def test_each_reason_of_an_event_has_its_row(calls: list[ast.Call]) -> None:
    found = {reason for call in calls for reason in reasons(call)}

    assert len(found) >= 11, "the code reports Events in another way: this test no longer sees them"
    assert [each for each in sorted(found) if f"\n| `{each}` | " not in PAGE] == []


def test_each_warning_in_the_log_has_its_row(calls: list[ast.Call]) -> None:
    found = {text for call in calls for text in message(call)}

    assert len(found) >= 70, "the code logs in another way: this test no longer sees them"
    assert [each for each in sorted(found) if f"`{each}" not in PAGE] == []
