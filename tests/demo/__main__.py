"""`python -m tests.demo`: see `make demo`."""

import signal
import sys
from types import FrameType


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """The first Ctrl-C ends the demo, another one would only disturb its clean-up, which takes a second."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def run() -> int:
    """Import and run the demo; the import is a moment for Ctrl-C, too."""
    try:
        from tests.demo.command import main

        return main()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    sys.exit(run())
