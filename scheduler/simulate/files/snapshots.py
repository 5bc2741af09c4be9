"""Snapshots among the files: their headers, and the problems in them.

What is in a snapshot was accepted by an API server. An object that cannot be read, or a workload whose pods admission
refuses, is as it is in the cluster: that is noted, and costs itself only.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from scheduler.config.documents import Document
from scheduler.simulate.files.written import as_written
from scheduler.snapshots.header import header_of

MAX_NOTED: Final = 10
"""Problems within snapshots that are noted."""


class Snapshots:
    """Those among the files of a simulation."""

    def __init__(self) -> None:
        self._places: list[str] = []
        self._notes: list[str] = []

    def seen(self, documents: Iterable[Document], problems: list[str]) -> Iterator[Document]:
        """Pass documents on, except snapshots that cannot be read, for which a problem is added to `problems`."""
        for document in as_written(documents):
            header = header_of(document.value)
            if header is not None:
                if header.problem:
                    problems.append(f"{document.place}: {header.problem}")
                    continue
                self._places.append(f"{document.place}: items[")
                self._notes += (f"{document.place}: {note}" for note in header.notes)
            yield document

    def separated(self, problems: list[str]) -> tuple[list[str], list[str]]:
        """Return those problems that are errors, and notes."""
        places = tuple(self._places)
        noted = [problem for problem in problems if places and problem.startswith(places)]
        wrong = [problem for problem in problems if not (places and problem.startswith(places))]
        more = [f"and {len(noted) - MAX_NOTED} more problems within snapshots"] if len(noted) > MAX_NOTED else []
        return wrong, [*self._notes, *noted[:MAX_NOTED], *more]
