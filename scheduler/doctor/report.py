"""Findings for a terminal, or as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any, Final

from scheduler.api.wording.text import counted, printable
from scheduler.doctor.findings import Finding, Level
from scheduler.explain.screen import Screen

MARKS: Final = {Level.OK: "OK", Level.WARNING: "WARNING", Level.PROBLEM: "PROBLEM", Level.UNKNOWN: "?"}
STYLES: Final = {Level.OK: "32", Level.WARNING: "33", Level.PROBLEM: "31", Level.UNKNOWN: "2"}

INDENT: Final = 23
"""Of messages: after the mark and the topic."""


def lines_of(findings: Sequence[Finding], screen: Screen) -> Iterator[str]:
    """Yield a line for each, longer ones wrapped, and what to do below."""
    width, advised = max(60, screen.width), set[str]()
    for each in findings:
        head = f"{MARKS[each.level]:<8} {each.topic:<13} "
        if len(head) > INDENT:
            yield screen.styled(printable(head.rstrip()), STYLES[each.level])
            head = " " * INDENT
        first, *rest = wrap(printable(each.message), width - INDENT, break_on_hyphens=False) or [""]
        yield screen.styled(head[:8], STYLES[each.level]) + head[8:] + first
        yield from (" " * INDENT + line for line in rest)
        if each.advice in advised:
            continue
        advised.add(each.advice)
        advice, *copied = each.advice.split("\n")
        for line in wrap(printable(advice), width - INDENT - 2, break_on_hyphens=False):
            yield " " * INDENT + ("→ " if advice.startswith(line) else "  ") + line
        yield from (" " * INDENT + "  " + printable(line) for line in copied)
    yield ""
    yield summary(findings)


def summary(findings: Sequence[Finding]) -> str:
    counts = Counter(each.level for each in findings)
    parts = [counted(counts[Level.PROBLEM], "problem"), counted(counts[Level.WARNING], "warning")]
    if counts[Level.UNKNOWN]:
        parts.append(f"{counts[Level.UNKNOWN]} not checked")
    return ", ".join(parts)


def document_of(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """As JSON has them."""
    return [
        {"level": each.level.value, "topic": each.topic, "message": each.message, "advice": each.advice}
        for each in findings
    ]
