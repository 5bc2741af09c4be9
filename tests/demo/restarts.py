"""What happens when the scheduler ends: the demo fails, or with KEEP=1 starts it again, as a kubelet would."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from tests.controlplane import ProcessError

RETRY_SECONDS: Final = 5.0
STAYS: Final = "All yours until Ctrl-C. In another terminal:"


class Process(Protocol):
    """As tests.controlplane.Component."""

    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> bool: ...
    @property
    def exit_code(self) -> int | None: ...
    def start(self) -> None: ...
    def log_tail(self, lines: int = 25) -> str: ...


def must_run(scheduler: Process) -> str:
    """Say nothing. Raises ProcessError if the scheduler has ended."""
    if not scheduler.running:
        raise ProcessError(f"the scheduler ended with code {scheduler.exit_code}:\n{scheduler.log_tail()}")
    return ""


class Restarts:
    """For a scheduler that a user may end, and whose files they may change."""

    def __init__(self, pid_file: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._pid_file = pid_file
        self._now = now
        self._next_try = 0.0

    def check(self, scheduler: Process) -> str:
        """Start the scheduler again if it has ended. Returns what to say about that, or nothing."""
        if scheduler.running:
            self._pid_file.write_text(f"{scheduler.pid}\n")
            return ""
        if self._now() < self._next_try:
            return ""
        code = scheduler.exit_code
        try:
            scheduler.start()
        except ProcessError:  # the configuration may be one that was just edited
            self._next_try = self._now() + RETRY_SECONDS
            return f"The scheduler does not start, and is tried every {RETRY_SECONDS:g} s: {scheduler.log_tail(1)}"
        return f"The scheduler ended with code {code}, and runs again. {STAYS}"
