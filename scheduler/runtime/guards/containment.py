"""Contains code of plugins that runs while a configuration is taken over: what hangs there does so for a while only.

    with Contained(4.0): make, ask for problems(), start, take over …
        └─ after 4 s, and every RENEWED_SECONDS from then on: SIGALRM ─► is the code of a plugin at work?
             ├─ yes ─► OutOfTime is raised there ─► TooLong, a ConfigError: what was asked for is refused
             └─ no ──► our own work takes as long as it takes

So a plugin that waits for ever in its `start` costs a running scheduler this reload, and is named with file and line. A
signal gets through to a loop in Python and to what waits for the system; code in C that does neither goes on, and is
for the watchdog (`watchdog.py`). Nothing is awaited within, so whatever would end the program is a plugin's doing, too.
"""

import signal
import sys
import sysconfig
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Final, Self

from scheduler.framework.errors import ConfigError
from scheduler.framework.tracebacks import described_with_place
from scheduler.runtime.guards.plugin_faults import is_ours

AT_WORK_SECONDS: Final = 4.0
"""At a stretch, for the plugins of a scheduler at work: less than what is told as a hang, and than `renewDeadline`."""

AT_START_SECONDS: Final = 30.0
"""Before there is anything to hold up. The kubelet gives 60 s, by the manifest and the chart."""

RENEWED_SECONDS: Final = 0.2
"""Between two signals, once it is late: a plugin may catch the first, and the next one may hang as well."""

_LIBRARY: Final = f"{sysconfig.get_path('stdlib')}/"
_INSTALLED: Final = f"{sysconfig.get_path('purelib')}/"


class OutOfTime(BaseException):
    """Raised within a plugin: no `except Exception` of its own keeps it."""


class TooLong(ConfigError):
    """A plugin did not come back in time: it would not at another try either."""


class Contained:
    """For the body of a `with` statement, on the main thread. Not to be nested."""

    def __init__(self, seconds: float) -> None:
        """`seconds`: after which code of plugins is ended."""
        self._seconds = seconds
        self._outside: FrameType | None = None
        self._is_late = False

    def __enter__(self) -> Self:
        self._outside = sys._getframe(1)
        self._before = signal.signal(signal.SIGALRM, self._on_alarm)
        signal.setitimer(signal.ITIMER_REAL, self._seconds, RENEWED_SECONDS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Raise TooLong if a plugin had to be ended, ConfigError if it would have ended the program."""
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, self._before)
        self._outside = None
        if error is None or (isinstance(error, Exception | KeyboardInterrupt) and not self._is_late):
            return
        problems = error.problems if isinstance(error, ConfigError) else [described_with_place(error)]
        raise (TooLong if self._is_late else ConfigError)(problems) from error

    def _on_alarm(self, _: int, frame: FrameType | None) -> None:
        places = [f"{each.f_code.co_filename}:{each.f_lineno}" for each in self._within(frame) if _is_a_plugins(each)]
        if places:
            self._is_late = True
            raise OutOfTime(f"it has not come back for {self._seconds:g} s, in {places[0]}")

    def _within(self, frame: FrameType | None) -> Iterator[FrameType]:
        """The frames of the body, the innermost first."""
        while frame is not None and frame is not self._outside:
            yield frame
            frame = frame.f_back


def _is_a_plugins(frame: FrameType) -> bool:
    """Return whether code is an author's: neither ours, nor of a library, nor made of a string."""
    name = frame.f_code.co_filename
    is_library = name.startswith((_LIBRARY, "<")) and not name.startswith(_INSTALLED)
    return not (is_library or is_ours(frame.f_code))
