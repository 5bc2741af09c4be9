"""Reports where the event loop hangs: usually in a plugin that never returns.

    event loop: a beat each second ──► thread: no beat in HANG_LOOKS looks ──► the log has the event loop's stack
         └────rearms a timer in C──► no beat for GIL_SECONDS ──► faulthandler writes all stacks to standard error

Nothing can be done about it from within: whatever would answer runs on the event loop, too. So `/livez` gets no answer,
the kubelet's probes run into their time limit, and it starts the container again. Another replica takes the Lease once
it is not renewed any more; in the meantime nothing is written. The thread needs Python's lock, which code in C may
hold: a regular expression does. The timer does not. The thread counts its own looks, as a process that was halted as a
whole does not hang.
"""

import asyncio
import faulthandler
import logging
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Final

from scheduler.framework.tracebacks import is_engine
from scheduler.runtime.plugin_calls import PluginCalls

BEAT_SECONDS: Final = 1.0

HANG_LOOKS: Final = 5
"""Looks of the thread without a beat, one a second. Nothing that we do at a stretch takes a tenth of it."""

GIL_SECONDS: Final = 20.0
"""Seconds without a beat until faulthandler reports. The kubelet gives 60 s, by the manifest and the chart."""

_logger = logging.getLogger(__name__)


class Hang(Exception):
    """Never raised: it carries the stack of the event loop into the log."""


class Watchdog:
    """`run` is a part of the program."""

    def __init__(self, look: Callable[[], None], beat_seconds: float = BEAT_SECONDS) -> None:
        """`look` is called with each beat, on the event loop."""
        self._look = look
        self._beat_seconds = beat_seconds
        self._beats = 0
        self._ended = threading.Event()

    async def run(self) -> None:
        """Beat, until cancelled."""
        watched = threading.get_ident()
        thread = threading.Thread(target=self._watch, args=(watched,), name="watchdog", daemon=True)
        thread.start()
        try:
            while True:
                self._beats += 1
                _rearm()
                self._look()
                await asyncio.sleep(self._beat_seconds)
        finally:
            self._ended.set()
            faulthandler.cancel_dump_traceback_later()

    def _watch(self, watched: int) -> None:
        """The thread: report each hang once, and its end."""
        seen = looks = 0
        while not self._ended.wait(self._beat_seconds):
            if self._beats == seen:
                looks += 1
                if looks == HANG_LOOKS:
                    report_hang(sys._current_frames().get(watched), HANG_LOOKS * self._beat_seconds)
                continue
            if looks >= HANG_LOOKS:
                _logger.warning("The event loop goes on")
            seen, looks = self._beats, 0


def report_hang(frame: FrameType | None, seconds: float) -> None:
    """Log where the event loop is, and in which plugin."""
    fields: dict[str, Any] = {"seconds": round(seconds, 1), **_plugin_call(frame)}
    stack = _stack(frame, without_engine="plugin" in fields)
    _logger.critical(
        "The event loop hangs: nothing is scheduled, and /livez gets no answer until it goes on",
        extra=fields,
        exc_info=(Hang, Hang("the event loop is here"), stack),
    )


def _plugin_call(frame: FrameType | None) -> dict[str, str]:
    """Which plugin is being called for which pod, if one is."""
    while frame is not None:
        if frame.f_code is PluginCalls.run.__code__:
            values = frame.f_locals
            return {"plugin": values["plugin"], "extensionPoint": values["point"], "pod": str(values["pod"])}
        frame = frame.f_back
    return {}


def _stack(frame: FrameType | None, *, without_engine: bool) -> TracebackType | None:
    """A traceback that ends in a frame; `without_engine`: without the scheduler's frames."""
    stack: TracebackType | None = None
    while frame is not None:
        if not (without_engine and is_engine(frame.f_code)):
            stack = TracebackType(stack, frame, frame.f_lasti, frame.f_lineno)
        elif stack is not None:
            break
        frame = frame.f_back
    return stack


def _rearm() -> None:
    with suppress(OSError, ValueError, AttributeError, RuntimeError):  # standard error may be closed, or no file
        faulthandler.dump_traceback_later(GIL_SECONDS)
