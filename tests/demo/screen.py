"""Where the play is shown: a live display, or plain lines where no terminal can take it."""

import shutil
import sys
import time
from abc import abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console
from rich.live import Live

from tests.demo import report, view
from tests.demo.model import Burst, Model


class Screen(Protocol):
    """A context manager: what was shown is gone or complete after it."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @abstractmethod
    def begin(self, caption: str) -> None:
        """A scene begins."""

    @abstractmethod
    def tick(self, model: Model) -> None:
        """A moment has passed."""

    @abstractmethod
    def end(self, model: Model, before: Burst) -> None:
        """The scene had its effect; `before` was the model's total when it began."""

    @abstractmethod
    def stay(self, lines: list[str]) -> None:
        """The play is over and everything stays: say what to try."""

    @abstractmethod
    def sum_up(self, model: Model) -> None:
        """After the context: what it came to."""


class LiveScreen(Screen):
    """The terminal's second screen, drawn again at each tick."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._caption = ""
        self._footer: tuple[str, ...] = ()
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, screen=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, caption: str) -> None:
        self._caption = caption

    def tick(self, model: Model) -> None:
        size = self._console.size
        moment = view.Moment(time.monotonic(), self._title, self._caption, size.width, size.height, self._footer)
        self._live.update(view.frame(model, moment), refresh=True)

    def end(self, model: Model, before: Burst) -> None:
        self.tick(model)

    def stay(self, lines: list[str]) -> None:
        self._footer = tuple(lines)

    def sum_up(self, model: Model) -> None:
        self._console.print(view.ending(model, self._console.width))


class PlainScreen(Screen):
    """Lines for a pipe, a log or a terminal that can do no more."""

    def __init__(self, out: TextIO, columns: int) -> None:
        self._out = out
        self._columns = columns
        self._said: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self, caption: str) -> None:
        self._print(f"* {caption}", indent="  ")

    def tick(self, model: Model) -> None:
        pass

    def end(self, model: Model, before: Burst) -> None:
        for line in report.outcome(model, before):
            if line not in self._said:  # why a pod waits is told again only when it is another reason
                self._said.add(line)
                self._print(f"  {line}", indent="    ")

    def stay(self, lines: list[str]) -> None:
        for line in lines:  # to be copied: not wrapped
            print(f"  {line}", file=self._out, flush=True)

    def sum_up(self, model: Model) -> None:
        lines = report.summary(model, self._columns)
        for line in ("", *report.placement_table(model), "", *lines, "", "Next:", *report.next_commands()):
            print(line, file=self._out, flush=True)

    def _print(self, line: str, indent: str) -> None:
        for part in report.wrap(line, self._columns, indent):
            print(part, file=self._out, flush=True)


def live_fits(environment: Mapping[str, str], out: TextIO, size: tuple[int, int]) -> bool:
    """Whether `out` is a terminal of enough columns and rows that takes colours, and nobody objects."""
    if not out.isatty() or environment.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    if environment.get("NO_COLOR") or environment.get("CI"):
        return False
    if "utf" not in (out.encoding or "").lower():
        return False
    columns, rows = size
    return columns >= view.MIN_COLUMNS and rows >= view.MIN_ROWS


def choose(environment: Mapping[str, str], title: str) -> Screen:
    """The best that the terminal can do."""
    size = shutil.get_terminal_size()
    return LiveScreen(title) if live_fits(environment, sys.stdout, size) else PlainScreen(sys.stdout, size.columns)
