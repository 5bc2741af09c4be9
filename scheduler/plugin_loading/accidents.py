"""Accidental changes of a plugin to the whole process, noticed in the process that tries it out.

    Surroundings() ─► the plugin's module is imported ─► changes(): a line each, for its author

A process has one working directory, one log, one garbage collector: what a plugin changes of them is changed for the
scheduler and for all other plugins. What well-known libraries do when they are imported is no accident: they add
environment variables, filters of warnings, handlers of loggers, daemon threads. Nor is a seed for `random`, which no
decision uses. Replaced functions and methods are not looked for.
"""

import gc
import locale
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from scheduler.framework.tracebacks import described
from scheduler.plugin_loading.modules import PREFIX

_OURS: Final = ("scheduler", "plugins")
_SETTLE_SECONDS: Final = 0.2
"""For threads that are about to end."""


def _log() -> object:
    root, loggers = logging.root, logging.root.manager.loggerDict.items()
    ours = [each for name, each in loggers if name.partition(".")[0] in _OURS and isinstance(each, logging.Logger)]
    return root.level, root.disabled, root.manager.disable, any(each.disabled for each in ours)


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _signals() -> object:
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return handlers, signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


_SETTINGS: Final[Mapping[str, Callable[[], object]]] = {
    "the working directory (os.chdir)": os.getcwd,
    "the mask of new files (os.umask)": _mask,
    "os.environ to another object": lambda: id(os.environ),
    "what is logged (logging.disable, a level of the root logger, disable_existing_loggers)": _log,
    "the timeout of all sockets (socket.setdefaulttimeout)": socket.getdefaulttimeout,
    "the garbage collector (gc.disable, gc.set_threshold)": lambda: (gc.isenabled(), gc.get_threshold()),
    "what signals do (signal.signal, signal.alarm, signal.pthread_sigmask)": _signals,
    "the locale (locale.setlocale)": lambda: locale.setlocale(locale.LC_ALL),
    "how calls are traced (sys.settrace, sys.setprofile)": lambda: (sys.gettrace(), sys.getprofile()),
    "what numpy does about faulty numbers (numpy.seterr; numpy.errstate does it for a while)": np.geterr,
    "sys.stdout or sys.stderr, which it closes": lambda: [each and each.closed for each in (sys.stdout, sys.stderr)],
}
"""The state of a process by what a message says of it."""


class Surroundings:
    """The state of the process that plugins must not change, as it is when this is made."""

    def __init__(self) -> None:
        self._settings = {what: _value(of) for what, of in _SETTINGS.items()}
        self._handlers = tuple(logging.root.handlers)
        self._environment = dict(os.environ)
        self._path = list(sys.path)
        self._threads = set(threading.enumerate())

    def changes(self) -> Iterator[str]:
        """Yield what has changed since."""
        yield from (f"it changes {what}" for what, of in _SETTINGS.items() if _value(of) != self._settings[what])
        if not set(self._handlers) <= set(logging.root.handlers):
            yield "it takes away handlers of the root logger (force=True of logging.basicConfig?)"
        yield from (f"it changes the environment variable {name}" for name in self._changed_variables())
        if sys.path[: len(self._path)] != self._path:
            yield (
                "it changes sys.path other than at its end, which may hide libraries: the files of a directory import "
                "each other by `from .name import …`"
            )
        for name in self._threads_left():
            yield f"it leaves the thread {name!r} running: what goes on in the background begins in `start`"

    def _changed_variables(self) -> Iterator[str]:
        yield from (name for name, value in sorted(self._environment.items()) if os.environ.get(name) != value)

    def _threads_left(self) -> Iterator[str]:
        until = time.monotonic() + _SETTLE_SECONDS
        for thread in set(threading.enumerate()) - self._threads:
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive() and (not thread.daemon or _runs_a_plugin(thread)):
                yield thread.name


def _value(of: Callable[[], object]) -> object:
    try:
        return of()
    except Exception as error:  # noqa: BLE001  the plugin may have replaced what is asked, or removed the directory
        return type(error)


def _runs_a_plugin(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(PREFIX):
            return True
        frame = frame.f_back
    return False


class Imports:
    """The imports of plugins one after the other, and their changes of the process."""

    def __init__(self) -> None:
        if not logging.root.handlers:  # a scheduler that runs has one: then logging.basicConfig does nothing
            logging.root.addHandler(logging.NullHandler())
        logging.getLogger(_OURS[0])  # so that there is one that could be disabled
        self.place = ""
        """The imported modules."""
        self._before: Surroundings | None = None
        self.problems: list[str] = []

    def begin(self, place: str) -> None:
        """The next module is imported; the one before is done."""
        self.end()
        self.place, self._before = place, Surroundings()

    def end(self) -> None:
        """The last module was imported."""
        if self._before is not None:
            try:
                for each in self._before.changes():
                    self.problems.append(f"{self.place}: while it is imported, {each}")
            except Exception as error:  # noqa: BLE001  it has replaced what is needed to look further
                self.problems.append(f"{self.place}: after it was imported, nothing works: {described(error)}")
            self._before = None
