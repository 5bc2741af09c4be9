"""The abilities of standard output."""

import os
import shutil

from scheduler.explain.screen import PLAIN, Screen
from scheduler.process.results import results


def screen() -> Screen:
    """Colours, unless it is not a terminal or NO_COLOR is set (no-color.org)."""
    if not results().isatty():
        return PLAIN
    width = shutil.get_terminal_size((PLAIN.width, 24)).columns
    return Screen(width, colour=os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR"))
