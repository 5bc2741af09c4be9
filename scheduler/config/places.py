"""Places of problems in files: from the path of a field to its line.

Files are read without line numbers; only a file with a problem is read once more, to find them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import yaml

from scheduler.config.yaml_reader import events_of
from scheduler.framework.arguments import join

MAX_PLACES: Final = 200_000
"""Fields of a file whose lines are looked up; a problem further on is reported with the line of its parent."""

MAX_LENGTH: Final = 500
"""Characters of a problem: a file may have a megabyte for a key."""

_END: Final = re.compile(r"(?:\.[^.\[\]]*|\[[^\[\]]*\])$")


def with_lines(problems: Sequence[str], text: str, source: str) -> list[str]:
    """Put file and line before problems that begin with the path of a field: `config.yaml:7: profiles[0].x: …`.

    A field that is not there has the line of what it is missing in.
    """
    lines = lines_of(text)
    return [f"{source}:{line_of(problem, lines)}: {_cut(problem)}" for problem in problems]


def lines_of(text: str) -> dict[str, int]:
    """Path → line of each value of the first document, the key's line for one in a mapping; `""` is the document."""
    places: dict[str, int] = {}
    with suppress(yaml.YAMLError):  # what was found until then has to do
        _collect(events_of(text.replace("\t", " ")), places)  # JSON may have tabs where YAML may not
    return places


def _cut(problem: str) -> str:
    return problem if len(problem) <= MAX_LENGTH else f"{problem[:MAX_LENGTH]} ..."


def line_of(problem: str, lines: Mapping[str, int]) -> int:
    """Return the line of the field that a problem begins with, or of the object that lacks it."""
    path = _path_of(problem, lines)
    while path not in lines and path:
        shorter = _END.sub("", path)
        path = shorter if shorter != path else path.rpartition(".")[0]
    return lines.get(path, 1)


def _path_of(problem: str, lines: Mapping[str, int]) -> str:
    """The path before the first colon at which one that is known ends, or simply before the first one."""
    at = problem.find(": ")
    first = problem[: max(at, 0)]
    while at >= 0:
        if problem[:at] in lines:
            return problem[:at]
        at = problem.find(": ", at + 1)
    return first


@dataclass(slots=True)
class _Open:
    path: str
    is_list: bool
    index: int = 0
    key: str | None = None
    line: int = 0


def _collect(events: Iterable[yaml.Event], places: dict[str, int]) -> None:
    open_: list[_Open] = []
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
            if not open_:
                return
        elif isinstance(event, yaml.NodeEvent):
            path = _enter(open_, event, places)
            if isinstance(event, yaml.CollectionStartEvent):
                open_.append(_Open(path, isinstance(event, yaml.SequenceStartEvent)))
            if len(places) > MAX_PLACES or not open_:
                return


def _enter(open_: list[_Open], event: yaml.NodeEvent, places: dict[str, int]) -> str:
    """Note the line of a value and return its path; a key is only remembered."""
    line = event.start_mark.line + 1  # type: ignore[union-attr]  # there always is a mark
    if not open_:
        places[""] = line
        return ""
    inside = open_[-1]
    if inside.is_list:
        path = f"{inside.path}[{inside.index}]"
        inside.index += 1
    elif inside.key is None:
        inside.key, inside.line = getattr(event, "value", ""), line
        return inside.path
    else:
        path, line = join(inside.path, inside.key), inside.line
        inside.key = None
    places.setdefault(path, line)
    return path
