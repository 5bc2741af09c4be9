"""Takes action against plugins that fail or lag often, where the configuration says so.

    ASKED ──`faults` of them `within` a time──► SWITCHED OFF or FAILING ──`pause` is over──► ASKED, with no faults

Faults are counted, and actions taken, for each namespace separately: a user who can make a plugin fail by the content
of pods affects only that namespace. The number of namespaces is bounded: the one without faults for longest is dropped.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Final

from scheduler.api.pods.pod import Pod
from scheduler.framework.errors import PluginError
from scheduler.framework.handle import EventRecorder
from scheduler.framework.status import SKIP, Code, Status
from scheduler.runtime.guards.plugin_limits import Action, Limits

MAX_KNOWN: Final = 1_024
"""Plugins in namespaces whose faults are known, and whose pauses are."""

_NEUTRAL: Final[dict[str, Any]] = {
    "PreFilter": SKIP,
    "PreScore": SKIP,
    "PreBindPreFlight": SKIP,
    "Bind": SKIP,
    "PostFilter": (None, Status(Code.UNSCHEDULABLE)),
}
"""The answers of a plugin that is switched off, by extension point; None elsewhere."""

ALWAYS_ASKED: Final = "Unreserve"
"""Also of a plugin that is out of the way: what it has reserved it must give back."""

_logger = logging.getLogger(__name__)


class Breaker:
    """The breaker of one profile."""

    def __init__(
        self, limits: Limits, profile: str, events: EventRecorder, now: Callable[[], float] = monotonic
    ) -> None:
        self._limits = limits
        self._profile = profile
        self._events = events
        self._now = now
        self._faults: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        """Plugin and namespace → when its last faults were."""
        self.paused: OrderedDict[tuple[str, str], float] = OrderedDict()
        """Plugin and namespace → until when it is out of the way. Empty most of the time."""

    def use(self, limits: Limits) -> None:
        """Use other limits. A plugin whose own have changed starts from zero: it is called, and has no faults."""
        before, self._limits = self._limits, limits
        for plugin, namespace in {*self._faults, *self.paused}:
            if limits.of(plugin) != before.of(plugin):
                self._faults.pop((plugin, namespace), None)
                self.paused.pop((plugin, namespace), None)

    def note(self, plugin: str, point: str, pod: Pod) -> None:
        """Count a fault."""
        limits = self._limits.of(plugin)
        if limits.action is Action.NOTHING:
            return
        key, now = (plugin, pod.namespace), self._now()
        times = self._faults.pop(key, None) or deque(maxlen=limits.faults)
        times.append(now)
        if len(times) < limits.faults or times[0] < now - limits.within:
            self._faults[key] = times
            _bound(self._faults)
            return
        self.paused[key] = now + limits.pause
        self.paused.move_to_end(key)
        _bound(self.paused)
        how = "is switched off for" if limits.action is Action.SWITCH_OFF else "fails all"
        fields = {
            "plugin": plugin,
            "extensionPoint": point,
            "profile": self._profile,
            "namespace": pod.namespace,
            "action": limits.action.value,
            "seconds": float(limits.pause),
        }
        _logger.error("A plugin failed or lagged too often and is out of the way for a while", extra=fields)
        note = f'plugin "{plugin}" {how} pods of this namespace for {limits.pause}: it failed or lagged too often'
        self._events.event(pod, "Warning", "PluginPaused", "Scheduling", note)

    def off(self, namespace: str) -> frozenset[str]:
        """The plugins that are switched off for the pods of a namespace."""
        return frozenset(
            plugin
            for plugin, of in tuple(self.paused)
            if of == namespace and self._is_paused(plugin, of) and self._action(plugin) is Action.SWITCH_OFF
        )

    def in_its_place(self, plugin: str, point: str, pod: Pod) -> tuple[Any] | None:
        """Its answer, if it is switched off; None if it is to be asked. Raises PluginError if it fails its pods."""
        if point == ALWAYS_ASKED or not self._is_paused(plugin, pod.namespace):
            return None
        if self._action(plugin) is Action.SWITCH_OFF:
            return (_NEUTRAL.get(point),)
        left = self.paused[plugin, pod.namespace] - self._now()
        raise PluginError(plugin, point, f"it failed or lagged too often, and is asked again in {left:.0f} s")

    def counts(self) -> Iterator[tuple[tuple[str, str, str], float]]:
        """Plugin, profile, action → in how many namespaces it is out of the way: for a gauge."""
        found: dict[tuple[str, str, str], float] = {}
        for plugin, namespace in tuple(self.paused):
            if self._is_paused(plugin, namespace):
                key = plugin, self._profile, self._action(plugin).value
                found[key] = found.get(key, 0.0) + 1.0
        yield from found.items()

    def _is_paused(self, plugin: str, namespace: str) -> bool:
        until = self.paused.get((plugin, namespace))
        if until is None:
            return False
        if until > self._now():
            return True
        del self.paused[plugin, namespace]
        _logger.info("A plugin is asked again", extra={"plugin": plugin, "namespace": namespace})
        return False

    def _action(self, plugin: str) -> Action:
        return self._limits.of(plugin).action


def _bound(known: OrderedDict[tuple[str, str], Any]) -> None:
    if len(known) > MAX_KNOWN:
        known.popitem(last=False)
