"""The progress of a long run: one line on a terminal, drawn over and over, and gone at the end. Elsewhere nothing.

    reading cluster.json: 12,000
    placing waiting pods: 120 of 400 (30 %), 40/s, 7 s left

A thread draws it a few times a second, so the worker only counts: `progress.done += 1`.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO, TypeVar

from scheduler.api.wording.text import printable

T = TypeVar("T")

QUIET_SECONDS: Final = 1.0
"""A run that is over by then shows nothing."""

_EVERY: Final = 0.25
"""Seconds between two drawings."""

_RATED_SECONDS: Final = 0.5
"""After so long there is a rate to speak of."""

_MINUTES: Final = 100.0
"""From so many seconds on the time left is in minutes."""

_CLEAR: Final = "\r\x1b[K"


class Progress:
    """The current step, and how much of it is done."""

    def __init__(self, stream: TextIO | None = None, now: Callable[[], float] = time.monotonic) -> None:
        """Draw on `stream`, if that is a terminal; `now` in seconds."""
        self.done = 0
        """The finished part of the current step; to be counted up."""

        is_live = stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
        self._stream = stream if is_live else None
        self._said = stream
        self._now = now
        self._what, self._total = "", 0
        self._started = self._since = now()
        self._is_drawn = False
        self._drawing = threading.Lock()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw it within a `with` block."""
        if self._stream is None:
            yield
            return
        ended = threading.Event()

        def draw() -> None:
            while not ended.wait(_EVERY):
                self.draw()

        thread = threading.Thread(target=draw, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.clear()

    def doing(self, what: str, total: int = 0) -> None:
        """Begin something else, of which there is so much; 0 if unknown."""
        self._what, self._total, self.done, self._since = what, total, 0, self._now()

    def count(self, done: int) -> None:
        """So much of it is done."""
        self.done = done

    def counted(self, things: Iterable[T], what: str, total: int = 0) -> Iterator[T]:
        """Yield them, and count those that are done."""
        self.doing(what, total)
        for thing in things:
            yield thing
            self.done += 1

    def draw(self) -> None:
        """Draw the line, unless the run is still short."""
        stream, now = self._stream, self._now()
        if stream is None or not self._what or now - self._started < QUIET_SECONDS:
            return
        with self._drawing:
            columns = shutil.get_terminal_size().columns - 1
            stream.write(_CLEAR + self._line(now - self._since)[:columns])
            stream.flush()
            self._is_drawn = True

    def clear(self) -> None:
        """Take the line away, so that something else can be written; it is drawn again after that."""
        if self._stream is None:
            return
        with self._drawing:
            if self._is_drawn:
                self._stream.write(_CLEAR)
                self._stream.flush()
                self._is_drawn = False

    def say(self, line: str) -> None:
        """Write a line that stays, terminal or not."""
        if self._said is not None:
            self.clear()
            print(printable(line), file=self._said)

    def _line(self, seconds: float) -> str:
        done, total, line = self.done, self._total, printable(self._what)
        if done or total:
            line += f": {done:,}" + (f" of {total:,}" if total else "")
        if done and total:
            line += f" ({100 * done // total} %)"
        if done and seconds > _RATED_SECONDS:
            left = (total - done) * seconds / done
            line += f", {done / seconds:,.0f}/s" + (f", {_duration(left)} left" if total else "")
        elif not done:
            line += f", {seconds:.0f} s"
        return line


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _MINUTES else f"{seconds / 60:.0f} min"


SILENT: Final = Progress()
"""For runs without a watcher."""


def on_stderr() -> Progress:
    """The progress that a command shows."""
    return Progress(sys.stderr)
