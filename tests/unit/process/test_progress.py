"""How far a long run is, on a terminal and elsewhere."""

import io
import os
import threading

import pytest

from scheduler.process.progress import Progress

CLEAR = "\r\x1b[K"


class Terminal(io.StringIO):
    """A stream that says that it is one."""

    def isatty(self) -> bool:
        return True


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture(autouse=True)
def a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")


def drawn(what: str, total: int = 0, done: int = 0, seconds: float = 4.0) -> str:
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, clock)
    progress.doing(what, total)
    progress.done = done
    clock.time = seconds
    progress.draw()
    return stream.getvalue()


@pytest.mark.parametrize(
    ("total", "done", "seconds", "line"),
    [
        (0, 0, 4.0, "reading f, 4 s"),
        (0, 12_000, 4.0, "reading f: 12,000, 3,000/s"),
        (400, 100, 4.0, "reading f: 100 of 400 (25 %), 25/s, 12 s left"),
        (40_000, 100, 4.0, "reading f: 100 of 40,000 (0 %), 25/s, 27 min left"),
        (400, 0, 4.0, "reading f: 0 of 400, 4 s"),
    ],
)
def test_a_line_says_what_is_done_how_much_of_it_and_how_fast(total: int, done: int, seconds: float, line: str) -> None:
    assert drawn("reading f", total, done, seconds) == CLEAR + line


def test_a_line_is_no_longer_than_the_terminal_is_wide_and_obeys_no_file_name() -> None:
    assert drawn("reading \x1b[2J" + "x" * 100) == CLEAR + ("reading \\x1b[2J" + "x" * 100)[:59]


def test_things_are_counted_when_they_are_done() -> None:
    progress = Progress()

    seen = [(thing, progress.done) for thing in progress.counted("abc", "letters")]

    assert seen == [("a", 0), ("b", 1), ("c", 2)]
    assert progress.done == 3


def test_at_the_end_the_line_is_gone_and_so_is_the_thread() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, clock)

    with progress.shown():
        progress.doing("reading f")
        clock.time = 4.0
        progress.draw()

    assert stream.getvalue().startswith(CLEAR + "reading f")
    assert stream.getvalue().endswith(CLEAR)
    assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_whoever_writes_in_between_takes_the_line_away_once() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(stream, clock)
    progress.doing("reading f")
    clock.time = 4.0
    progress.draw()

    progress.clear()
    progress.clear()

    assert stream.getvalue() == f"{CLEAR}reading f, 4 s{CLEAR}"


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_nothing_is_shown_where_there_is_no_terminal(stream: io.StringIO | None) -> None:
    progress = Progress(stream, lambda: 1e9)

    with progress.shown():
        progress.doing("reading f")
        progress.draw()

    assert stream is None or stream.getvalue() == ""


def test_a_run_that_is_short_and_a_terminal_that_cannot_clear_a_line_show_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert drawn("reading f", done=5, seconds=0.9) == ""
    monkeypatch.setitem(os.environ, "TERM", "dumb")
    assert drawn("reading f") == ""


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_what_is_said_stays_and_obeys_no_name(kind: type[io.StringIO]) -> None:
    stream = kind()

    Progress(stream).say("left out: \x1b[2J")

    assert stream.getvalue() == "left out: \\x1b[2J\n"
