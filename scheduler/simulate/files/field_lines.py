"""The line of the field in each problem, for files that are small enough to have been written by hand.

pod.yaml:1: spec.nodeSelektor: unknown field   ─►   pod.yaml:7: spec.nodeSelektor: unknown field
"""

import re
from collections.abc import Iterable
from typing import Final

from scheduler.config.places import line_of, lines_of

MAX_KEPT: Final = 16 << 20
"""Bytes of all texts that are kept until it is known whether there are problems."""

MAX_TEXT: Final = 1 << 20
"""Bytes of one of them: a larger one is a dump, in which the number of the item says more."""

_REST: Final = re.compile(r":(\d+): ((?:items\[\d+\]: )*)(.*)", re.DOTALL)
_KEY: Final = re.compile(r"\[([A-Za-z][^\[\]]*)\]")
"""The key of a mapping, which a problem has in brackets and the file as any other."""


class Texts:
    """The texts of small files, by the names that problems have for them."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}
        self._left = MAX_KEPT
        self._lines: dict[tuple[str, int], dict[str, int]] = {}

    def keep(self, name: str, text: bytes) -> None:
        if len(text) <= min(MAX_TEXT, self._left):
            self._left -= len(text)
            self._texts[name] = text

    def with_lines(self, problems: Iterable[str]) -> list[str]:
        """Put the line of the field where the line of the document was."""
        return [self._with_line(problem) for problem in problems]

    def _with_line(self, problem: str) -> str:
        for name in self._texts:
            match = _REST.fullmatch(problem, len(name)) if problem.startswith(name) else None
            if match is not None:
                path = match[2].replace(": ", ".") + _KEY.sub(r".\1", match[3])
                line = line_of(path, self._lines_of(name, int(match[1])))
                return f"{name}:{max(line, int(match[1]))}: {match[2]}{match[3]}"
        return problem

    def _lines_of(self, name: str, first: int) -> dict[str, int]:
        """Path → line, in the document that begins at a line."""
        found = self._lines.get((name, first))
        if found is None:
            rest = self._texts[name].decode().split("\n")[first - 1 :]
            found = self._lines[name, first] = lines_of("\n" * (first - 1) + "\n".join(rest))
        return found
