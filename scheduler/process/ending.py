"""Ends a process that runs plugins, or has run them: at once, whatever they have left behind."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn


def run_to_the_end(command: Callable[[], int]) -> NoReturn:
    """Run a command, and end the process with its exit code. Raises SystemExit if it does, as for `--help`."""
    try:
        code = command()
    except Exception as error:  # noqa: BLE001  Python would say the same, and then wait for threads of plugins
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    end_process(code)


def end_process(code: int) -> NoReturn:
    """End the process now. Threads that go on, and functions registered to run at exit, are left alone."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # there is none, or it is not read any more
            stream.flush()
    os._exit(code)


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the program at once: an exception, which is what Python makes of it, is a plugin's in its call."""
    former = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
