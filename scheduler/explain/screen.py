"""Formats a report for a terminal of any width, without control characters."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

from scheduler.api.wording.spelling import shortage
from scheduler.api.wording.text import counted, printable
from scheduler.explain.documents import Explanation, GroupReport, PodReport, ReportedObstacle, ShareWait, Suggestion
from scheduler.process.results import results

MAX_GROUPS: Final = 8
MAX_NAMES: Final = 5
MAX_HISTORY: Final = 5

_BOLD, _DIM, _GREEN, _RED = "1", "2", "32", "31"


@dataclass(frozen=True, slots=True)
class Screen:
    width: int = 100
    """Characters; at least 40 are used."""

    colour: bool = False

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and text else text


PLAIN: Final = Screen()
"""A file, or an unknown terminal."""


def screen_of_output() -> Screen:
    """The abilities of standard output. No colours if it is not a terminal or NO_COLOR is set (no-color.org)."""
    if not results().isatty():
        return PLAIN
    width = shutil.get_terminal_size((PLAIN.width, 24)).columns
    return Screen(width, colour=os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR"))


def lines_of(report: PodReport, screen: Screen) -> Iterator[str]:
    pod = f"{report.namespace}/{report.name}"
    yield f"{screen.styled(printable(pod), _BOLD)}  {printable(report.state)}"
    for line in report.about or ():
        yield from _wrapped(line, "  ", screen)
    if report.group:
        yield from _section(f"ITS GROUP, {report.group.namespace}/{report.group.name}: {report.group.state}", screen)
        yield from _of_group(report.group, screen)
        yield ""
    if report.share:
        yield from _of_share(report.share, screen)
    if report.explanation:
        yield from explained(report.explanation, screen)
    if report.history:
        yield from _section("HISTORY", screen)
        for each in report.history[-MAX_HISTORY:]:
            yield from _wrapped(f"{each.at}  {each.text}", "  ", screen)


def lines_of_group(report: GroupReport, screen: Screen) -> Iterator[str]:
    group = f"{report.namespace}/{report.name}"
    yield f"{screen.styled(printable(group), _BOLD)}  {printable(report.state)}"
    yield from _of_group(report, screen)
    if report.share:
        yield from _of_share(report.share, screen)
    if report.waiting:
        yield from _section("PODS WITHOUT A NODE", screen)
        by_state: dict[str, list[str]] = {}
        for each in report.waiting:
            by_state.setdefault(each.state, []).append(each.name)
        for state, names in by_state.items():
            yield from _wrapped(f"{state}: {len(names):,}{_names(names, len(names))}", "  ", screen)


def _of_group(report: GroupReport, screen: Screen) -> Iterator[str]:
    for line in filter(None, (report.text, *report.about)):
        yield from _wrapped(line, "  ", screen)


def _of_share(report: ShareWait, screen: Screen) -> Iterator[str]:
    yield from _section(f"NO SPACE IN ITS SHARE, {report.name}", screen)
    for line in report.lacks or (report.text,):
        yield from _wrapped(line, "  ", screen)
    if report.ahead:
        yield from _wrapped(report.ahead, "  ", screen)
    if report.estimate:
        yield from _wrapped(f"wait: {report.estimate.text}", "  ", screen)
    if report.suggestions:
        tried = "" if any("not tried" in each.obstacle for each in report.suggestions) else ", each tried out"
        yield from _section(f"WHAT WOULD MAKE SPACE IN ITS SHARE{tried}", screen)
        for each in report.suggestions:
            yield from _suggestion(each, screen)
    yield ""


def short_reason(explanation: Explanation) -> str:
    """Summarize in one line why a pod is pending."""
    nodes = explanation.nodes
    if explanation.failures:
        return f"cannot be decided: {explanation.failures[0]}"
    if not nodes or not nodes.count:
        return "there are no nodes"
    if explanation.gates:
        return "; ".join(_by_fact(explanation.gates))
    if explanation.obstacles:
        return "; ".join(_by_fact(explanation.obstacles))
    if nodes.fitting:
        return f"fits {counted(nodes.fitting, 'node')} of {nodes.count} now"
    if not explanation.groups:  # they were deleted meanwhile
        return "there are no nodes"
    nearest = explanation.groups[0]
    facts = "; and ".join(map(_at_the_nearest, nearest.obstacles))
    if nodes.count == 1:
        return f"the only node, {nearest.names[0]}, does not take it: {facts}"
    return f"none of {nodes.count} nodes takes it; nearest is {nearest.names[0]}: {facts}"


def _by_fact(obstacles: Sequence[ReportedObstacle]) -> dict[str, list[str]]:
    """Return fact → the plugins that report it."""
    found: dict[str, list[str]] = {}
    for each in obstacles:
        plugins = found.setdefault(each.fact, [])
        if each.plugin not in plugins:
            plugins.append(each.plugin)
    return found


def _at_the_nearest(obstacle: ReportedObstacle) -> str:
    missing = obstacle.shortage
    if missing is None:
        return obstacle.fact
    return shortage(missing.resource, missing.nearest, missing.nearest, missing.wanted)


def explained(explanation: Explanation, screen: Screen) -> Iterator[str]:
    nodes = explanation.nodes
    for failure in explanation.failures:
        yield from _wrapped(f"error: {failure}", "  ", screen, _RED)
    if not nodes:
        return
    yield from _wrapped(short_reason(explanation), "  ", screen)
    everywhere = [*explanation.gates, *explanation.obstacles]
    if everywhere:
        yield from _section("BLOCKED ON EVERY NODE", screen)
        for fact, plugins in _by_fact(everywhere).items():
            yield from _wrapped(f"{fact} ({', '.join(plugins)})", "  ", screen)
    if explanation.gates and not explanation.obstacles:
        without = f"it would fit {counted(nodes.fitting, 'node')}" if nodes.fitting else "it would fit no node"
        yield from _wrapped(f"without that, {without}{_names(nodes.names, nodes.fitting)}", "  ", screen)
    if explanation.groups:
        yield from _section("WHY NODES DON'T FIT, the nearest miss first", screen)
        yield from _groups(explanation, screen)
    if explanation.suggestions:
        yield from _section("WHAT WOULD HELP, each tried out", screen)
        for each in explanation.suggestions:
            yield from _suggestion(each, screen)


def _groups(explanation: Explanation, screen: Screen) -> Iterator[str]:
    groups = explanation.groups
    for group in groups[:MAX_GROUPS]:
        head = counted(group.count, "node")
        facts = "; and ".join(each.fact for each in group.obstacles)
        text = f"{head + ':':<10} {facts}{_names(group.names, group.count)}"
        yield from _wrapped(text, "  ", screen, hanging=11)
    more = len(groups) - MAX_GROUPS + explanation.more_groups
    if more > 0:
        yield from _wrapped(f"... and {counted(more, 'more group')} (all of them with -o json)", "  ", screen)


def _suggestion(each: Suggestion, screen: Screen) -> Iterator[str]:
    but = f", but {each.obstacle}" if each.obstacle else ""
    fits = "" if each.command or not each.patch else f": fits {counted(each.count, 'node')}"
    where = _names(each.names, each.count) if fits else ""
    yield from _wrapped(f"{each.text}{fits}{where}{but}", "  ", screen, _GREEN)
    if each.command:
        # Not wrapped, so that it can be copied.
        yield screen.styled(f"      {printable(each.command)}", _DIM)


def _section(title: str, screen: Screen) -> Iterator[str]:
    yield ""
    yield from _wrapped(title, "", screen, _DIM)


def _names(names: Sequence[str], count: int) -> str:
    more = f", … {count - MAX_NAMES} more" if count > MAX_NAMES else ""
    return f" ({', '.join(names[:MAX_NAMES])}{more})" if names else ""


def _wrapped(text: str, indent: str, screen: Screen, style: str = "", hanging: int = 2) -> Iterator[str]:
    lines = wrap(
        printable(text),
        max(40, screen.width),
        initial_indent=indent,
        subsequent_indent=indent + " " * hanging,
        break_on_hyphens=False,
    )
    return (screen.styled(line, style) if style else line for line in lines)
