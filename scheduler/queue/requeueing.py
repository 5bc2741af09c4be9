"""Whether an event is worth another attempt for a pod, as the plugins that refused it say.

Rule: isPodWorthRequeuing in pkg/scheduler/backend/queue/scheduling_queue.go at v1.36.3.
"""

import logging
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import TypeAlias

from scheduler.framework.events import ANY, Action, ClusterEvent, ClusterEventWithHint, HintFunction, QueueingHint
from scheduler.framework.queued import QueuedPod
from scheduler.queue.in_flight import Happening

_log = logging.getLogger(__name__)

Hints: TypeAlias = tuple[HintFunction | None, ...]
"""One for each matching registration of a plugin; None is a plain yes."""

Interest: TypeAlias = Mapping[str, Mapping[str, Hints]]
"""Who wants to know of an event: profile → plugin → its hints."""


class Requeue(Enum):
    """Where a refused pod goes after an event."""

    SKIP = auto()
    """It stays: the event changes nothing for it."""
    AFTER_BACKOFF = auto()
    IMMEDIATELY = auto()
    """A plugin that had the pod wait for something has got it: the pod did not waste its attempt."""


class RequeueRules:
    """The events that plugins registered for, and what follows from one for a pod."""

    def __init__(self, events: Mapping[str, Mapping[str, Sequence[ClusterEventWithHint]]]) -> None:
        """`events`: profile → plugin → what may help the pods that it refused."""
        self._events = events
        self._interests: dict[tuple[str, Action], Interest] = {}

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin registered for the event. A wildcard concerns everybody."""
        return event.resource == ANY or bool(self._interest(event))

    def decide(self, queued: QueuedPod, happening: Happening) -> Requeue:
        """Say what an event means for a pod."""
        event = happening.event
        pending, rejecters = queued.pending_plugins, queued.unschedulable_plugins
        if queued.gated:
            # The others have not seen the pod yet, and no wildcard opens a gate.
            if event.resource == ANY:
                return Requeue.SKIP
            pending, rejecters = set(), {queued.gating_plugin}
        profile = queued.pod.spec.scheduler_name
        if event.resource == ANY or not (pending or rejecters) or profile not in self._events:
            return Requeue.AFTER_BACKOFF
        interest = self._interest(event).get(profile)
        if not interest:
            return Requeue.SKIP
        if any(_helps(queued, happening, plugin, interest.get(plugin, ())) for plugin in pending):
            return Requeue.IMMEDIATELY
        if any(_helps(queued, happening, plugin, interest.get(plugin, ())) for plugin in rejecters):
            return Requeue.AFTER_BACKOFF
        return Requeue.SKIP

    def decide_all(self, queued: QueuedPod, happenings: Sequence[Happening]) -> Requeue:
        """Say what a number of events mean for a pod together."""
        if not (queued.unschedulable_plugins or queued.pending_plugins):
            return Requeue.AFTER_BACKOFF
        found = Requeue.SKIP
        for happening in happenings:
            decision = self.decide(queued, happening)
            if decision is Requeue.IMMEDIATELY:
                return decision
            if decision is Requeue.AFTER_BACKOFF:
                found = decision
                if not queued.pending_plugins:
                    break
        return found

    def _interest(self, event: ClusterEvent) -> Interest:
        key = (event.resource, event.action)
        found = self._interests.get(key)
        if found is None:
            found = self._interests[key] = self._look_up(event)
        return found

    def _look_up(self, event: ClusterEvent) -> Interest:
        interest: dict[str, dict[str, Hints]] = {}
        for profile, plugins in self._events.items():
            for plugin, registered in plugins.items():
                hints = tuple(each.hint for each in registered if each.event.matches(event))
                if hints:
                    interest.setdefault(profile, {})[plugin] = hints
        return interest


def _helps(queued: QueuedPod, happening: Happening, plugin: str, hints: Hints) -> bool:
    return any(hint is None or _ask(hint, queued, happening, plugin) for hint in hints)


def _ask(hint: HintFunction, queued: QueuedPod, happening: Happening, plugin: str) -> bool:
    try:
        return hint(queued.pod, happening.old, happening.new) is QueueingHint.QUEUE
    except Exception:  # noqa: BLE001 - the plugin boundary
        # A needless attempt costs little; a pod that nobody tries again is lost.
        _log.exception(
            "Queueing hint failed",
            extra={"pod": str(queued.pod), "plugin": plugin, "event": happening.event.label},
        )
        return True
