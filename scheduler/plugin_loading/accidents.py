"""Accidental changes of a plugin to the whole process, noticed in the process that tries it out.

    Surroundings() ─► the plugin's module is imported ─► changes(): a line each, for its author

A process has one working directory, one `json.dumps`, one garbage collector: what a plugin changes of them is changed
for the scheduler and for all other plugins. What well-known libraries do when they are imported is no accident: they
add environment variables, filters of warnings, handlers of loggers, daemon threads, higher limits of recursion. A seed
for `random` is none either, as nothing here decides by it.
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
from types import ModuleType
from typing import Any, Final

import numpy as np

from scheduler.framework.tracebacks import described
from scheduler.plugin_loading.modules import PREFIX

_OURS: Final = ("scheduler", "plugins")
_WATCHED: Final = sys.stdlib_module_names | {*_OURS, "msgspec", "numpy"}
"""Packages whose functions and classes must not change."""

_READ: Final = frozenset(
    (
        *("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "all_proxy", "https_proxy", "http_proxy", "no_proxy"),
        *("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "POD_NAME", "POD_NAMESPACE"),
        *("SSLKEYLOGFILE", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ"),
    )
)
"""Environment variables that change what the scheduler does also where they were not set before."""

_SETTLE_SECONDS: Final = 0.2
"""For threads that are about to end."""

_Member = tuple[str, str]
"""A module, or a module and a class of it; a name in that."""


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
        self._recursion = sys.getrecursionlimit()
        self._environment = dict(os.environ)
        self._path = list(sys.path)
        self._modules = {name: each for name, each in sys.modules.items() if name.partition(".")[0] in _WATCHED}
        self._members = dict(_members(self._modules))
        self._threads = set(threading.enumerate())

    def changes(self) -> Iterator[str]:
        """Yield what has changed since: what was replaced first, as the rest may fail by that."""
        yield from (f"it replaces {name}, which the whole program uses" for name in self._replaced())
        yield from (f"it changes {what}" for what, of in _SETTINGS.items() if _value(of) != self._settings[what])
        if not set(self._handlers) <= set(logging.root.handlers):
            yield "it takes away handlers of the root logger (force=True of logging.basicConfig?)"
        if sys.getrecursionlimit() < self._recursion:
            yield "it lowers the limit of recursion (sys.setrecursionlimit)"
        yield from (f"it changes the environment variable {name}" for name in self._changed_variables())
        if sys.path[: len(self._path)] != self._path:
            yield (
                "it changes sys.path other than at its end, which may hide libraries: the files of a directory import "
                "each other by `from .name import …`"
            )
        for name in self._threads_left():
            yield f"it leaves the thread {name!r} running: what goes on in the background begins in `start`"

    def _changed_variables(self) -> Iterator[str]:
        before, after = self._environment, dict(os.environ)
        for name in sorted(before.keys() | (after.keys() & _READ)):
            if before.get(name) != after.get(name):
                yield name

    def _replaced(self) -> Iterator[str]:
        gone = {name for name, module in self._modules.items() if sys.modules.get(name) is not module}
        yield from (f"the module {name}" for name in sorted(gone))
        after = dict(_members(self._modules))
        for (owner, name), value in self._members.items():
            if after.get((owner, name)) is not value:
                yield f"{owner}.{name}"

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


def _members(modules: Mapping[str, ModuleType]) -> Iterator[tuple[_Member, object]]:
    """Yield the functions and classes of modules, and the methods of these classes."""
    for name, module in modules.items():
        for key, value in tuple(vars(module).items()):
            if not callable(value) or (name == "sys" and key.endswith("hook")):
                continue  # replaced on purpose
            yield (name, key), value
            if isinstance(value, type) and (value.__module__, value.__name__) == (name, key):
                yield from (((f"{name}.{key}", *each[:1]), each[1]) for each in _methods(value))


def _methods(cls: type[Any]) -> Iterator[tuple[str, object]]:
    for key, value in tuple(vars(cls).items()):
        if callable(value) or isinstance(value, classmethod | staticmethod | property):
            yield key, value


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
