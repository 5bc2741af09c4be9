"""Events that are worth another attempt for a pod, by the hints of the plugins that refused it.

Rule: isPodWorthRequeuing in pkg/scheduler/backend/queue/scheduling_queue.go at v1.36.3. kube-scheduler runs the hint
functions for each pod. Loadmaster runs them once for all pods that they cannot distinguish: pods that were refused by
the same plugins share a `Rejection`, and those of them with the same key get the same answer.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from scheduler.api.pods.pod import Pod
from scheduler.framework.events import (
    ANY,
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    HintFunction,
    KeyFunction,
    QueueingHint,
)
from scheduler.framework.queued import QueuedEntity
from scheduler.process.metrics import PLUGIN_METRICS_SAMPLE_PERCENT, Metrics
from scheduler.queue.in_flight import ObservedEvent
from scheduler.runtime.guards.plugin_faults import PluginFaults, as_plugin_error
from scheduler.runtime.guards.return_values import wrong_answer

_log = logging.getLogger(__name__)

HINT: Final = "QueueingHint"
SAMPLE_EVERY: Final = 100 // PLUGIN_METRICS_SAMPLE_PERCENT

Registrations: TypeAlias = Mapping[str, Sequence[ClusterEventWithHint]]
"""Plugin → events that may help the pods that it refused."""


class Requeue(Enum):
    """The effect of an event on a refused pod."""

    SKIP = auto()
    """It stays: the event does not help it."""
    AFTER_BACKOFF = auto()
    IMMEDIATELY = auto()
    """A plugin kept the pod pending until this event: its attempt was not wasted, so it need not back off."""


class PluginHint(NamedTuple):
    """One plugin's hint whether an event helps the pods that it refused."""

    plugin: str
    hint: HintFunction | None
    """None means yes for every pod."""
    answer: Requeue
    """The meaning of a yes."""


_RejectionKey: TypeAlias = tuple[str, str, frozenset[str], frozenset[str]]
"""Profile, gate, rejectors, pending plugins."""

ALWAYS_HELPS: Final = (PluginHint("", None, Requeue.AFTER_BACKOFF),)


class Rejection:
    """The plugins that refused a pod, and the events they registered for. Shared by all pods with the same ones."""

    __slots__ = ("_gate", "_hints", "_key_functions", "_plugins")

    def __init__(
        self,
        plugins: Sequence[tuple[Requeue, str]],
        registered: Registrations,
        gate: Sequence[ClusterEvent] | None = None,
    ) -> None:
        """`plugins` in the order of their hints. `gate`: events that may open the pods' gate, if there is one."""
        self._plugins = [(answer, plugin, registered.get(plugin, ())) for answer, plugin in plugins]
        self._gate = gate
        self._hints: dict[tuple[str, Action], tuple[PluginHint, ...]] = {}
        self._key_functions = _key_functions(
            [hinted for _, _, registrations in self._plugins for hinted in registrations]
        )

    def hints(self, event: ClusterEvent) -> tuple[PluginHint, ...]:
        """Return the hints for an event, those whose yes means most first; empty if no plugin registered for it."""
        key = (event.resource, event.action)
        hints = self._hints.get(key)
        if hints is None:
            is_heard = self._gate is None or _concerns(self._gate, event)
            hints = self._hints[key] = self.hints_past_gate(event) if is_heard else ()
        return hints

    def key_of(self, pod: Pod) -> Hashable:
        """Return all that the hints read of a pod; its UID if a hint does not declare what it reads."""
        if self._key_functions is None:
            return pod.uid
        try:
            key = tuple([key_function(pod) for key_function in self._key_functions])
            hash(key)
        except BaseException:  # noqa: BLE001 - the plugin boundary
            _log.exception(
                "Key for queueing hints failed; the hints are asked for this pod alone", extra={"pod": str(pod)}
            )
            return pod.uid
        return key

    def hints_past_gate(self, event: ClusterEvent) -> tuple[PluginHint, ...]:
        """Return the hints for an event of the pod itself: the gate need not have registered for it."""
        if event.resource == ANY:
            return ALWAYS_HELPS
        return tuple(
            PluginHint(plugin, hinted.hint, answer)
            for answer, plugin, registrations in self._plugins
            for hinted in registrations
            if hinted.event.matches(event)
        )


class _Everything(Rejection):
    """No plugin refused the pod, or its profile is unknown: any event may help."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__((), {})

    def hints(self, event: ClusterEvent) -> tuple[PluginHint, ...]:
        return ALWAYS_HELPS


class RequeueRules:
    """The events that plugins registered for, and what an event means for a pod."""

    def __init__(self, events: Mapping[str, Registrations], metrics: Metrics) -> None:
        """`events`: profile → plugin → events that may help the pods that it refused."""
        self._faults = PluginFaults(metrics)
        self._duration = metrics.queueing_hint_execution_duration
        self._of_interest: dict[tuple[str, Action], bool] = {}
        self._rejections: dict[_RejectionKey, Rejection] = {}
        self._everything = _Everything()
        self._events_asked = 0
        self._events: Mapping[str, Registrations] = {}
        self._gate_events: dict[str, list[ClusterEvent]] = {}
        """Plugin → all that it registered for, in any profile."""
        self.use(events, events.keys())

    def use(self, events: Mapping[str, Registrations], changed: Collection[str]) -> None:
        """Use these events from now on; they differ for the `changed` profiles only."""
        self._events = events
        self._of_interest.clear()
        self._rejections = {key: known for key, known in self._rejections.items() if key[0] not in changed}
        self._gate_events = defaultdict(list)
        for plugins in events.values():
            for plugin, registrations in plugins.items():
                self._gate_events[plugin] += [hinted.event for hinted in registrations]

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Return whether any plugin registered for the event. A wildcard concerns all plugins."""
        key = (event.resource, event.action)
        is_of_interest = self._of_interest.get(key)
        if is_of_interest is None:
            is_of_interest = self._of_interest[key] = event.resource == ANY or any(
                hinted.event.matches(event)
                for plugins in self._events.values()
                for registrations in plugins.values()
                for hinted in registrations
            )
        return is_of_interest

    def rejection_of(self, queued: QueuedEntity) -> Rejection:
        """Return which plugins refused a pod."""
        profile = queued.pod.spec.scheduler_name
        key = (
            profile,
            _gate_of(queued),
            frozenset(queued.unschedulable_plugins),
            frozenset(queued.pending_plugins),
        )
        rejection = self._rejections.get(key)
        if rejection is None:
            rejection = self._rejections[key] = self._new_rejection(queued)
        return rejection

    def kind_of(self, queued: QueuedEntity) -> Hashable:
        """Return a key that is the same for all entries that no hint distinguishes."""
        rejection = self.rejection_of(queued)
        return rejection, rejection.key_of(queued.pod)

    def start(self) -> bool:
        """Begin with one event; return whether to time its hints: a sample of events is timed."""
        self._events_asked += 1
        return self._events_asked % SAMPLE_EVERY == 0

    def decide_own(self, queued: QueuedEntity, observed: ObservedEvent) -> Requeue:
        """Return what a change of the pod itself means for it."""
        return self._decide(self.rejection_of(queued).hints_past_gate(observed.event), queued, observed)

    def _decide(self, hints: tuple[PluginHint, ...], queued: QueuedEntity, observed: ObservedEvent) -> Requeue:
        return self.answer(hints, queued.pod, observed, is_timed=self.start()) if hints else Requeue.SKIP

    def decide_all(self, queued: QueuedEntity, observed_events: Sequence[ObservedEvent]) -> Requeue:
        """Return what several events together mean for a pod."""
        if not (queued.unschedulable_plugins or queued.pending_plugins):
            return Requeue.AFTER_BACKOFF
        best = Requeue.SKIP
        rejection = self.rejection_of(queued)
        for observed in observed_events:
            decision = self._decide(rejection.hints(observed.event), queued, observed)
            if decision is Requeue.IMMEDIATELY:
                return decision
            if decision is Requeue.AFTER_BACKOFF:
                best = decision
                if not queued.pending_plugins:
                    break
        return best

    def answer(self, hints: tuple[PluginHint, ...], pod: Pod, observed: ObservedEvent, *, is_timed: bool) -> Requeue:
        """Run hints until one says yes. Hot: called for every group of pods at every event."""
        if is_timed:
            return self._answer_timed(hints, pod, observed)
        _, old, new = observed
        for plugin_hint in hints:
            _, hint, answer = plugin_hint
            if hint is None:
                return answer
            try:
                found = hint(pod, old, new)
            except BaseException as problem:  # noqa: BLE001 - the plugin boundary
                self._report(plugin_hint, pod, problem)
                return answer
            if found is not QueueingHint.SKIP:
                self._check(plugin_hint, pod, found)
                return answer
        return Requeue.SKIP

    def _answer_timed(self, hints: tuple[PluginHint, ...], pod: Pod, observed: ObservedEvent) -> Requeue:
        for plugin_hint in hints:
            if plugin_hint.hint is None:
                return plugin_hint.answer
            started = time.perf_counter()
            try:
                found = plugin_hint.hint(pod, observed.old, observed.new)
                result = found.value if self._check(plugin_hint, pod, found) else "Error"
            except BaseException as problem:  # noqa: BLE001 - the plugin boundary
                self._report(plugin_hint, pod, problem)
                result = "Error"
            seconds = time.perf_counter() - started
            self._duration.labels(plugin_hint.plugin, observed.event.label, result).observe(seconds)
            if result != QueueingHint.SKIP.value:
                return plugin_hint.answer
        return Requeue.SKIP

    def _check(self, plugin_hint: PluginHint, pod: Pod, found: object) -> bool:
        if isinstance(found, QueueingHint):
            return True
        assert plugin_hint.hint is not None, "it has answered"
        self._faults.report(wrong_answer(plugin_hint.plugin, HINT, plugin_hint.hint, found, "a QueueingHint"), pod)
        return False

    def _report(self, plugin_hint: PluginHint, pod: Pod, problem: BaseException) -> None:
        """An error counts as a yes: a needless attempt costs little, but a pod that is never tried again is lost."""
        self._faults.report(as_plugin_error(HINT, plugin_hint.plugin, problem), pod)

    def _new_rejection(self, queued: QueuedEntity) -> Rejection:
        registered = self._events.get(queued.pod.spec.scheduler_name)
        pending, rejectors = sorted(queued.pending_plugins), sorted(queued.unschedulable_plugins)
        if registered is None or not (pending or rejectors):
            return self._everything
        asked = [
            *((Requeue.IMMEDIATELY, plugin) for plugin in pending),
            *((Requeue.AFTER_BACKOFF, plugin) for plugin in rejectors),
        ]
        gate = _gate_of(queued)
        return Rejection(asked, registered, self._gate_events[gate] if gate else None)


def _key_functions(registrations: Sequence[ClusterEventWithHint]) -> tuple[KeyFunction, ...] | None:
    """Return the distinct key functions, or None if a hint function has none."""
    functions: dict[KeyFunction, None] = {}
    for hinted in registrations:
        if hinted.hint is None:
            continue
        if hinted.key is None:
            return None
        functions[hinted.key] = None
    return tuple(functions)


def _gate_of(queued: QueuedEntity) -> str:
    """Return the plugin that keeps an entry out of activeQ: of a member of a group, the one that keeps that out."""
    return queued.gating_plugin if queued.group is None else queued.group.gating_plugin


def _concerns(patterns: Sequence[ClusterEvent], event: ClusterEvent) -> bool:
    """Return whether one of the patterns matches an event; a wildcard event matches wildcard patterns only."""
    return any(pattern.matches(event) for pattern in patterns if event.resource != ANY or pattern.resource == ANY)
