"""Deadlines for watches and comparisons, past which the kubelet restarts the program: the check behind `/livez`.

    (unknown) ──expect──► IN TIME ──its seconds pass──► OVERDUE
        ▲                  │   ▲                         │   │
        └───────drop───────┘   └──progress, or expect────┘   │
        ▲                                                    │
        └────────────────────────drop────────────────────────┘

Progress is evidence from the API server: an accepted watch, data from it, a page of a list. Trouble of the API server
(`retries.py`) excuses a lack of it: no restart cures that, and a scheduler that is restarted throughout an outage comes
back late, delayed by CrashLoopBackOff. Nothing excuses what a restart may cure, or an operator has to look at: 401,
403, a certificate that cannot be verified, a part that fails, or hangs without making requests.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from scheduler.process.metrics import Metrics

log = logging.getLogger(__name__)

BEGIN_SECONDS: Final = 60.0
"""A watch begins within this time of its start, or of the API server's last trouble; usually within a second. Trouble
is noticed within 37 s: requests are 7 s apart, unless a 429 asks for more, and abandoned after 30 s."""

PROGRESS_SECONDS: Final = 180.0
"""A watch that has begun receives something, or is opened again, within this time. The API server sends a bookmark
every minute, and after 70 s without an event the watch is opened again: this allows for one failure of that."""

FIRST_COMPARISON: Final = "first comparison"
"""The `resource` in logs and metrics for what `/readyz` waits for."""

COMPARISON_SECONDS: Final = 180.0
"""Each page of the first comparison arrives within this time. After a failure the next try is at most 75 s away, and
may take 60 s. Before the first page, permissions are checked and the watches begin."""


class Deadlines:
    """The time that each name may go without progress. All methods are quick: `progress` is called all the time."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._now = now
        self._allowed: dict[str, float] = {}
        self._last: dict[str, float] = {}
        """Time of the last progress."""
        self._reported: set[str] = set()

    def expect(self, name: str, seconds: float) -> None:
        """Expect progress every `seconds` from now on."""
        self._allowed[name] = seconds
        self._last[name] = self._now()

    def progress(self, name: str) -> None:
        """Note progress. Does nothing if none is expected."""
        if name in self._last:
            self._last[name] = self._now()

    def excuse(self, *names: str) -> None:
        """Note trouble of the API server with these, and so with the first comparison, which needs them."""
        for name in (*names, FIRST_COMPARISON):
            self.progress(name)

    def drop(self, name: str) -> None:
        """No longer expect progress."""
        self._allowed.pop(name, None)
        self._last.pop(name, None)

    def overdue(self) -> dict[str, float]:
        """Name → seconds without progress, for each that had less time."""
        now = self._now()
        return {name: now - last for name, last in self._last.items() if now - last > self._allowed[name]}

    def are_met(self) -> bool:
        """Return whether nothing is overdue. Logs and counts what became overdue since the last call.

        The kubelet asks every ten seconds; a task of our own would see it no sooner, and could hang too.
        """
        overdue = self.overdue()
        for name in overdue.keys() - self._reported:
            self._metrics.watch_errors.labels(name, "stalled").inc()
            log.error("No progress: /livez fails", extra={"resource": name, "seconds": round(overdue[name])})
        for name in self._reported - overdue.keys():
            log.info("Progress again", extra={"resource": name})
        self._reported = set(overdue)
        return not overdue
