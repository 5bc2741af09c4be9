"""Whether an event is worth another attempt for a pod, as the plugins that refused it say.

Rule: isPodWorthRequeuing in pkg/scheduler/backend/queue/scheduling_queue.go at v1.36.3. kube-scheduler asks for each
pod again. Here pods that were refused by the same plugins share a `Rejection`, and those of them that no hint function
can tell apart have the same key: one of them is asked for all.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from scheduler.api.pod import Pod
from scheduler.framework.events import (
    ANY,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    KeyFunction,
    QueueingHint,
)
from scheduler.framework.queued import QueuedPod
from scheduler.queue.in_flight import Happening
from scheduler.runtime.metrics import PLUGIN_METRICS_SAMPLE_PERCENT, Metrics

_log = logging.getLogger(__name__)

SAMPLE_EVERY: Final = 100 // PLUGIN_METRICS_SAMPLE_PERCENT

Registrations: TypeAlias = Mapping[str, Sequence[ClusterEventWithHint]]
"""Plugin → what may help the pods that it refused."""


class Requeue(Enum):
    """Where a refused pod goes after an event."""

    SKIP = auto()
    """It stays: the event changes nothing for it."""
    AFTER_BACKOFF = auto()
    IMMEDIATELY = auto()
    """A plugin that had the pod wait for something has got it: the pod did not waste its attempt."""


class Ask(NamedTuple):
    """One question that an event raises for refused pods."""

    plugin: str
    hint: HintFunction | None
    """None is a plain yes."""
    answer: Requeue
    """What follows from a yes."""


PLAIN_YES: Final = (Ask("", None, Requeue.AFTER_BACKOFF),)


class Rejection:
    """The plugins that refused a pod, and what they want to hear of. Shared by all pods of which they are the same."""

    __slots__ = ("_asks", "_gate", "_key_functions", "_plugins")

    def __init__(
        self,
        plugins: Sequence[tuple[Requeue, str]],
        registered: Registrations,
        gate: Sequence[ClusterEvent] | None = None,
    ) -> None:
        """`plugins` in the order in which to ask. `gate`: what may open the gate of these pods; None if none."""
        self._plugins = [(answer, plugin, registered.get(plugin, ())) for answer, plugin in plugins]
        self._gate = gate
        self._asks: dict[tuple[str, Action], tuple[Ask, ...]] = {}
        self._key_functions = _key_functions([each for _, _, registrations in self._plugins for each in registrations])

    def asks(self, event: ClusterEvent) -> tuple[Ask, ...]:
        """Return the questions that an event raises, those of the greatest consequence first; none if it is no news."""
        key = (event.resource, event.action)
        found = self._asks.get(key)
        if found is None:
            found = self._asks[key] = self._look_up(event)
        return found

    def key_of(self, pod: Pod) -> Hashable:
        """Return all that the plugins look at in a pod; its UID where they do not say what that is."""
        if self._key_functions is None:
            return pod.uid
        try:
            key = tuple([key_function(pod) for key_function in self._key_functions])
            hash(key)
        except Exception:  # noqa: BLE001 - the plugin boundary
            _log.exception("Key for queueing hints failed; the pod is asked by itself", extra={"pod": str(pod)})
            return pod.uid
        return key

    def _look_up(self, event: ClusterEvent) -> tuple[Ask, ...]:
        return self.asks_past_gate(event) if self._gate is None or _concerns(self._gate, event) else ()

    def asks_past_gate(self, event: ClusterEvent) -> tuple[Ask, ...]:
        """Return the questions that an event of the pod itself raises: it need not be of interest to the gate."""
        if event.resource == ANY:
            return PLAIN_YES
        return tuple(
            Ask(plugin, each.hint, answer)
            for answer, plugin, registrations in self._plugins
            for each in registrations
            if each.event.matches(event)
        )


class _Everything(Rejection):
    """Nobody refused the pod, or its profile is unknown: whatever happens may help."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__((), {})

    def asks(self, event: ClusterEvent) -> tuple[Ask, ...]:
        return PLAIN_YES


class RequeueRules:
    """The events that plugins registered for, and what follows from one for a pod."""

    def __init__(self, events: Mapping[str, Registrations], metrics: Metrics) -> None:
        """`events`: profile → plugin → what may help the pods that it refused."""
        self._events = events
        self._duration = metrics.queueing_hint_execution_duration
        self._of_interest: dict[tuple[str, Action], bool] = {}
        self._rejections: dict[Hashable, Rejection] = {}
        self._everything = _Everything()
        self._events_asked = 0
        self._gate_events: dict[str, list[ClusterEvent]] = defaultdict(list)
        """Plugin → all that it registered for, in whatever profile."""
        for plugins in events.values():
            for plugin, registrations in plugins.items():
                self._gate_events[plugin] += [each.event for each in registrations]

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin registered for the event. A wildcard concerns everybody."""
        key = (event.resource, event.action)
        found = self._of_interest.get(key)
        if found is None:
            found = self._of_interest[key] = event.resource == ANY or any(
                each.event.matches(event)
                for plugins in self._events.values()
                for registrations in plugins.values()
                for each in registrations
            )
        return found

    def rejection_of(self, queued: QueuedPod) -> Rejection:
        """Return by whom a pod was refused."""
        profile = queued.pod.spec.scheduler_name
        key = (
            profile,
            queued.gating_plugin,
            frozenset(queued.unschedulable_plugins),
            frozenset(queued.pending_plugins),
        )
        found = self._rejections.get(key)
        if found is None:
            found = self._rejections[key] = self._new_rejection(queued)
        return found

    def start(self) -> bool:
        """Begin to ask about one event; return whether its answers are to be timed: a sample is."""
        self._events_asked += 1
        return self._events_asked % SAMPLE_EVERY == 0

    def decide(self, queued: QueuedPod, happening: Happening) -> Requeue:
        """Say what an event means for a pod."""
        return self._decide(self.rejection_of(queued).asks(happening.event), queued, happening)

    def decide_own(self, queued: QueuedPod, happening: Happening) -> Requeue:
        """Say what a change of the pod itself means for it."""
        return self._decide(self.rejection_of(queued).asks_past_gate(happening.event), queued, happening)

    def _decide(self, asks: tuple[Ask, ...], queued: QueuedPod, happening: Happening) -> Requeue:
        return self.answer(asks, queued.pod, happening, is_timed=self.start()) if asks else Requeue.SKIP

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

    def answer(self, asks: tuple[Ask, ...], pod: Pod, happening: Happening, *, is_timed: bool) -> Requeue:
        """Ask until somebody says yes. Hot: called for every group of pods at every event."""
        if is_timed:
            return self._answer_timed(asks, pod, happening)
        _, old, new = happening
        for ask in asks:
            _, hint, answer = ask
            if hint is None:
                return answer
            try:
                if hint(pod, old, new) is not QueueingHint.SKIP:
                    return answer
            except Exception:  # noqa: BLE001 - the plugin boundary
                _tell_failure(ask, pod, happening)
                return answer
        return Requeue.SKIP

    def _answer_timed(self, asks: tuple[Ask, ...], pod: Pod, happening: Happening) -> Requeue:
        for ask in asks:
            if ask.hint is None:
                return ask.answer
            started = time.perf_counter()
            try:
                result = ask.hint(pod, happening.old, happening.new).value
            except Exception:  # noqa: BLE001 - the plugin boundary
                _tell_failure(ask, pod, happening)
                result = "Error"
            seconds = time.perf_counter() - started
            self._duration.labels(ask.plugin, happening.event.label, result).observe(seconds)
            if result != QueueingHint.SKIP.value:
                return ask.answer
        return Requeue.SKIP

    def _new_rejection(self, queued: QueuedPod) -> Rejection:
        registered = self._events.get(queued.pod.spec.scheduler_name)
        pending, rejectors = sorted(queued.pending_plugins), sorted(queued.unschedulable_plugins)
        if registered is None or not (pending or rejectors):
            return self._everything
        asked = [
            *((Requeue.IMMEDIATELY, plugin) for plugin in pending),
            *((Requeue.AFTER_BACKOFF, plugin) for plugin in rejectors),
        ]
        return Rejection(asked, registered, self._gate_events[queued.gating_plugin] if queued.gated else None)


def _key_functions(registrations: Sequence[ClusterEventWithHint]) -> tuple[KeyFunction, ...] | None:
    """Return the distinct key functions, or None if a hint function has none."""
    functions: dict[KeyFunction, None] = {}
    for each in registrations:
        if each.hint is None:
            continue
        if each.key is None:
            return None
        functions[each.key] = None
    return tuple(functions)


def _concerns(patterns: Sequence[ClusterEvent], event: ClusterEvent) -> bool:
    """Whether one of the patterns names an event; of a wildcard hear only those that registered for everything."""
    return any(each.matches(event) for each in patterns if event.resource != ANY or each.resource == ANY)


def _tell_failure(ask: Ask, pod: Pod, happening: Happening) -> None:
    """A needless attempt costs little, a pod that nobody tries again is lost: an error counts as a yes."""
    _log.exception(
        "Queueing hint failed", extra={"pod": str(pod), "plugin": ask.plugin, "event": happening.event.label}
    )
