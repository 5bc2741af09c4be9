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


def calls() -> Iterator[ast.Call]:
    """Yield every call of a method in the scheduler and its plugins."""
    for folder in ("scheduler", "plugins"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield node


def texts(node: ast.Call) -> list[str]:
    return [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def reasons() -> set[str]:
    """What follows `Normal` or `Warning` in a call that reports an Event."""
    found: set[str] = set()
    for node in calls():
        words = [each.value if isinstance(each, ast.Constant) else None for each in node.args]
        for kind, reason in pairwise(words):
            if kind in ("Normal", "Warning") and isinstance(reason, str):
                found.add(reason)
    return found


def messages() -> set[str]:
    """The texts of log lines that say that something is wrong, up to where they have values of their own."""
    found: set[str] = set()
    for node in calls():
        is_log = isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS
        if is_log and "log" in ast.unparse(node.func).partition(".")[0].lower():
            found.update(text.partition(":")[0] for text in texts(node)[:1])
    return found


@pytest.mark.parametrize("reason", sorted(reasons()))
def test_each_reason_of_an_event_has_its_row(reason: str) -> None:
    assert f"\n| `{reason}` | " in PAGE


@pytest.mark.parametrize("message", sorted(messages()))
def test_each_warning_in_the_log_has_its_row(message: str) -> None:
    assert f"`{message}" in PAGE


def test_there_are_as_many_as_there_were_when_this_was_written() -> None:
    assert len(reasons()) >= 11, "the code reports Events in another way: this test no longer sees them"
    assert len(messages()) >= 70, "the code logs in another way: this test no longer sees them"
