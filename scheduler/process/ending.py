"""How a process ends that has run plugins: at once, with whatever they have left behind."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
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
        with suppress(AttributeError, OSError, ValueError):  # there is none, or nobody reads it any more
            stream.flush()
    os._exit(code)
