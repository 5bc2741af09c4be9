"""What must go on, each thing within its time, or the kubelet is to start the program again: the check behind `/livez`.

    (unknown) ──expect──► IN TIME ──its seconds pass──► OVERDUE
        ▲                  │   ▲                         │   │
        └───────drop───────┘   └──progress, or expect────┘   │
        ▲                                                    │
        └────────────────────────drop────────────────────────┘

Progress is evidence from the API server: a watch that it has accepted, something that came over it, a page of a list.
Trouble of the API server (`outages.py`) counts as much: no restart cures it, and a scheduler that is restarted
all through an outage comes back late, with the pause of CrashLoopBackOff. What does not count is what a restart may
cure, or what somebody has to look at: 401, 403, a certificate that cannot be verified, a part that fails, or hangs and
asks for nothing.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from scheduler.runtime.metrics import Metrics

log = logging.getLogger(__name__)

BEGIN_SECONDS: Final = 60.0
"""A watch begins within this time of when it was told to run, or of the last trouble of the API server. Usual is one
second. Trouble is noticed within 37 s: requests are 7 s apart, unless a 429 asks for more, and given up after 30 s."""

PROGRESS_SECONDS: Final = 180.0
"""Something comes over a watch that has begun, or it is opened again, within this time. The API server sends a bookmark
every minute, and after 70 s of silence the watch is opened again: this is room for that to fail once."""

FIRST_COMPARISON: Final = "first comparison"
"""What `/readyz` waits for, as `resource` of logs and metrics."""

COMPARISON_SECONDS: Final = 180.0
"""Each page of the first comparison comes within this time, however many there are. After a failure the next try is at
most 75 s away, and may take 60 s. Before the first page, permissions are asked for and the watches begin."""


class Deadlines:
    """Names, and how long each may go without progress. Everything is quick: `progress` is called all the time."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._now = now
        self._allowed: dict[str, float] = {}
        self._last: dict[str, float] = {}
        """When there was progress."""
        self._told: set[str] = set()

    def expect(self, name: str, seconds: float) -> None:
        """Expect progress every `seconds` from now on."""
        self._allowed[name] = seconds
        self._last[name] = self._now()

    def progress(self, name: str) -> None:
        """Take in that it goes on. Nothing happens if it is not expected."""
        if name in self._last:
            self._last[name] = self._now()

    def excuse(self, *names: str) -> None:
        """Take in that the API server is in trouble with these, and so with the first comparison, which needs them."""
        for name in (*names, FIRST_COMPARISON):
            self.progress(name)

    def drop(self, name: str) -> None:
        """Expect nothing any more."""
        self._allowed.pop(name, None)
        self._last.pop(name, None)

    def overdue(self) -> dict[str, float]:
        """For how many seconds there was no progress, of each that had less time."""
        now = self._now()
        return {name: now - last for name, last in self._last.items() if now - last > self._allowed[name]}

    def are_met(self) -> bool:
        """Whether nothing is overdue. Logs and counts what has become so since the last call, and what no longer is.

        The kubelet asks every ten seconds, by `/livez`; a task of our own would see it no sooner, and could hang too.
        """
        overdue = self.overdue()
        for name in overdue.keys() - self._told:
            self._metrics.watch_errors.labels(name, "stalled").inc()
            log.error("No progress: /livez fails", extra={"resource": name, "seconds": round(overdue[name])})
        for name in self._told - overdue.keys():
            log.info("Progress again", extra={"resource": name})
        self._told = set(overdue)
        return not overdue
