"""SIGTERM and SIGINT, for a program that ends whatever plugins do.

SIGTERM ─┬─► `stop` is set ─► the program ends by itself
         └─► GRACE_SECONDS later, in a thread: it has not; where it hangs is logged, and the process ends
"""

import asyncio
import logging
import signal
import sys
import threading
import time
from types import FrameType
from typing import Final

from scheduler.process.ending import end_process

GRACE_SECONDS: Final = 27.0
"""After SIGTERM: bindings get 20 s, the Lease 4 s, and a kubelet kills after 30 s."""

LOG_SECONDS: Final = 1.0
"""For a log line before the end: what hangs may hold up logging, too."""

LOOK_SECONDS: Final = 1.0
"""Between two looks whether the handlers of signals are ours."""

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

_logger = logging.getLogger(__name__)


class StopSignals:
    """Sets an event at the first of them, and ends the process if that has not ended by itself in time."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._stop = stop
        self._deadline: threading.Thread | None = None

    def listen(self) -> None:
        """Install our handlers, replacing any others. On the main thread, in the event loop."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stop.set)  # wakes a loop that waits; replaces what kopf has put there
            signal.signal(number, self._on_signal)  # runs also within a plugin that does not come back

    async def keep(self) -> None:
        """A part: listen again where a plugin has put a handler of its own."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for number in SIGNALS:
                found = signal.getsignal(number)
                if found != self._on_signal:
                    fields = {"signal": signal.Signals(number).name, "handler": str(found)}
                    _logger.warning("A plugin has replaced the handler of a signal; it is put back", extra=fields)
                    self.listen()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._deadline is None:
            self._deadline = threading.Thread(target=self._end_late, name="end after SIGTERM", daemon=True)
            self._deadline.start()

    def _end_late(self) -> None:
        time.sleep(GRACE_SECONDS)
        reporting = threading.Thread(target=self._report, daemon=True)
        reporting.start()
        reporting.join(LOG_SECONDS)
        end_process(1)

    def _report(self) -> None:
        main = threading.main_thread().ident
        frame = sys._current_frames().get(main) if main is not None else None
        at = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "its end"
        names = [each.name for each in threading.enumerate() if not each.daemon and each.ident != main]
        fields = {"seconds": GRACE_SECONDS, "at": at, "threads": ",".join(names)}
        _logger.critical("The program was told to stop and did not end; it is ended", extra=fields)
