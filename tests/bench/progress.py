"""How far a series of measurements is: one line that is rewritten on a terminal, one line a phase elsewhere."""

import shutil
import sys
import time
from typing import Final, TextIO

EVERY: Final = 0.25
"""Seconds between two looks of the live line."""


class Progress:
    """Shows one run: its phases with counts and rates. Each phase that took a while stays as a line."""

    def __init__(self, subject: str, stream: TextIO | None = None) -> None:
        self._subject = subject
        self._stream = stream or sys.stdout
        self._live = self._stream.isatty()
        self._started = time.monotonic()
        self._since = self._started
        self._shown = 0.0
        self._what = ""
        self._total = self._count = 0
        self._measuring = False

    def doing(self, what: str, total: int) -> None:
        self._end_phase()
        self._what, self._total, self._count = what, total, 0
        self._since = time.monotonic()

    def done(self, count: int) -> None:
        self._count = count
        if self._live and time.monotonic() > self._shown + EVERY:
            self._shown = time.monotonic()
            self._show(self._phase(), passing=True)

    def collecting(self, on: bool) -> None:
        self._end_phase()
        self._measuring = on

    def finish(self, text: str) -> None:
        """The last line of the run."""
        self._end_phase()
        self._show(text)

    def _end_phase(self) -> None:
        if self._what and self._total:
            self._show(self._phase())
        self._what = ""

    def _phase(self) -> str:
        seconds = time.monotonic() - self._since
        rate = f"{self._count / seconds:,.0f}/s" if seconds > 0.05 else ""
        mark = "* " if self._measuring else ""
        return f"{mark}{self._what} {self._count:,}/{self._total:,} {rate}"

    def _show(self, text: str, *, passing: bool = False) -> None:
        """Write a line; one that is `passing` is cut to the terminal and overwritten by the next."""
        line = f"{time.monotonic() - self._started:6.1f} s  {self._subject}: {text}"
        if self._live:
            columns = shutil.get_terminal_size().columns - 1
            line = "\r" + (line[:columns] if passing else line).ljust(columns)
        print(line, end="" if passing else "\n", file=self._stream, flush=True)
