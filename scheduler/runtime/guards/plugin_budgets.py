"""The time that plugins may take, and the reports when they take longer.

    a call that nothing awaits ──returned after more than `callBudget`──► named
    a call that is awaited ─────still under way after `waitBudget`─────► named, once; it goes on

Named means: a line in the log, a count in `loadmaster_plugin_faults_total{kind="late"}`, and an Event for the pod.
While a call runs that never returns, nothing else does: the watchdog reports it (`watchdog.py`).
"""

import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

import msgspec

from scheduler.api.pods.pod import Pod
from scheduler.framework.duration import Duration
from scheduler.framework.handle import EventRecorder
from scheduler.framework.plugin import WAIT_SECONDS
from scheduler.process.metrics import Metrics
from scheduler.runtime.guards.plugin_limits import Limits

LATE: Final = "late"
"""The kind of fault in metrics."""

_logger = logging.getLogger(__name__)


class Waiting(msgspec.Struct, eq=False):
    """A call that is awaited."""

    point: str
    plugin: str
    pod: Pod
    since: float
    is_reported: bool = False


class Budgets:
    """The budgets of one profile's plugins."""

    def __init__(
        self,
        metrics: Metrics,
        events: EventRecorder,
        limits: Limits,
        waits: Mapping[str, float],
        on_late: Callable[[str, str, Pod], None],
        now: Callable[[], float] = monotonic,
    ) -> None:
        """`waits`: plugin → seconds for which it may be awaited, as it says itself; 60 for those that do not.

        `on_late` is called for each late plugin, with the extension point and the pod.
        """
        self._metrics = metrics
        self._events = events
        self._limits = limits
        self._waits = waits
        self._on_late = on_late
        self._now = now
        self._waiting: set[Waiting] = set()

    def use(self, limits: Limits) -> None:
        """Use other limits, also for calls that are being awaited."""
        self._limits = limits

    @property
    def shortest(self) -> float:
        """Seconds; a call that took less needs no look."""
        return self._limits.shortest_call

    def took(self, point: str, plugin: str, seconds: float, pod: Pod) -> None:
        """A call has returned."""
        budget = self._limits.of(plugin).call_budget
        if seconds >= budget:
            self._report(point, plugin, pod, f"took {seconds:.2g} s, more than its {budget:g} s", seconds)

    def begin(self, point: str, plugin: str, pod: Pod) -> Waiting:
        """A call is awaited from now on, until `end`."""
        waiting = Waiting(point, plugin, pod, self._now())
        self._waiting.add(waiting)
        return waiting

    def end(self, waiting: Waiting) -> None:
        self._waiting.remove(waiting)

    def look_for_late(self) -> None:
        """Name the plugins whose calls have been awaited for too long, once for each call."""
        now = self._now()
        for waiting in tuple(self._waiting):
            budget = self._limits.of(waiting.plugin).wait_budget
            if budget is None:
                budget = Duration(self._waits.get(waiting.plugin, WAIT_SECONDS))
            seconds = now - waiting.since
            if not waiting.is_reported and seconds >= budget:
                waiting.is_reported = True
                problem = f"has not come back for {budget:g} s"
                self._report(waiting.point, waiting.plugin, waiting.pod, problem, seconds)

    def _report(self, point: str, plugin: str, pod: Pod, problem: str, seconds: float) -> None:
        self._metrics.plugin_faults.labels(plugin, point, LATE).inc()
        fields = {"plugin": plugin, "extensionPoint": point, "pod": str(pod), "seconds": round(seconds, 3)}
        _logger.warning("A plugin takes longer than its budget", extra=fields)
        self._events.event(pod, "Warning", "SlowPlugin", "Scheduling", f'plugin "{plugin}" {problem} at {point}')
        self._on_late(plugin, point, pod)
