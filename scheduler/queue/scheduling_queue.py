"""The scheduling queue: where a pod waits between its attempts.

    new pod ──────────► PreEnqueue ─┬─ lets it in ─────────────► ACTIVE
                                    └─ refuses ────────────────► UNSCHEDULABLE (gated)
    UNSCHEDULABLE ─┬─ event ──────────► PreEnqueue ────────────► ACTIVE, or BACKOFF if it has not waited enough
                   └─ 5 min, activate ► PreEnqueue ────────────► ACTIVE
    BACKOFF ───────┬─ waited enough, activate ─────────────────► ACTIVE
                   └─ pop, while activeQ is empty ─────────────► IN FLIGHT
    ACTIVE ────────── pop ─────────────────────────────────────► IN FLIGHT
    IN FLIGHT ─────┬─ its lane is full ────────────────────────► HELD
                   ├─ refused ─────────────────────────────────► UNSCHEDULABLE
                   ├─ refused, but an event came ► PreEnqueue ─► BACKOFF, or ACTIVE if it need not wait
                   ├─ error ─────────────────────► PreEnqueue ─► BACKOFF
                   └─ done, or deleted meanwhile ──────────────► gone
    HELD ──────────── its turn in the lane ────────────────────► IN FLIGHT
    anywhere ──────── delete ──────────────────────────────────► gone

A pod is in one place at a time. After `pop` it must be handed back (`add_unschedulable_if_not_present`) or be `done`.

Rule: pkg/scheduler/backend/queue/scheduling_queue.go at v1.36.3 with its feature gates at the defaults.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse
from operator import attrgetter
from typing import Final

from prometheus_client import Counter

from scheduler.api.pod import Pod
from scheduler.framework.arguments import arguments_of
from scheduler.framework.events import (
    ANY,
    POD_GROUP,
    UNSCHEDULED_POD_ADD,
    Action,
    ClusterEvent,
)
from scheduler.framework.handle import PodNominator
from scheduler.framework.plugin import QueueSortPlugin
from scheduler.framework.pod_groups import NO_POD_GROUPS, PodGroups
from scheduler.framework.queued import QueuedPod
from scheduler.process.metrics import Metrics
from scheduler.queue.backoff_queue import BackoffQueue, seconds_to_next_window
from scheduler.queue.fairness import Fairness
from scheduler.queue.gates import Gates
from scheduler.queue.held_pods import HeldPods
from scheduler.queue.in_flight import InFlightPods, ObservedEvent
from scheduler.queue.pod_heap import PodHeap
from scheduler.queue.rejectors import RejectorCounts
from scheduler.queue.requeueing import Requeue, RequeueRules
from scheduler.queue.settings import QueueSettings
from scheduler.queue.sorting import SortKey, sort_key_of
from scheduler.queue.unschedulable_pods import UnschedulablePods
from scheduler.runtime.changes import pod_changes
from scheduler.runtime.guards.plugin_faults import PluginFaults, is_of_tree

_log = logging.getLogger(__name__)

LEFTOVER_INTERVAL: Final = 30.0
"""Seconds between two searches for such pods."""

UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(ANY, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE: Final = ClusterEvent(ANY, Action.ALL, "ForceActivate")
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF_Q: Final = "PopFromBackoffQ"
CHANGE_REPAIRED: Final = "ChangeRepaired"
CONFIGURATION_CHANGED: Final = "ConfigurationChanged"

_gate = attrgetter("gating_plugin")


class SchedulingQueue:
    """kube-scheduler's PriorityQueue. The caller keeps pods away that are bound, assumed or not ours."""

    def __init__(
        self,
        settings: QueueSettings,
        metrics: Metrics,
        nominator: PodNominator,
        now: Callable[[], float] = time.monotonic,
        groups: PodGroups = NO_POD_GROUPS,
    ) -> None:
        self._now = now
        self._groups = groups
        self._metrics = metrics
        self._nominator = nominator
        self._settings = settings
        self._faults = PluginFaults(metrics)
        self.sort_key: SortKey = self._sort_key(settings)
        """Orders its pods."""
        self._active = PodHeap(self.sort_key)
        self._backoff = BackoffQueue(settings.backoff, self.sort_key, now)
        self._fairness = Fairness(self._active, now, settings.starvation_seconds)
        self._in_flight = InFlightPods()
        self._held = HeldPods(self.sort_key)
        self._gates = Gates(settings.pre_enqueue, metrics, now)
        self._rules = RequeueRules(settings.rejector_events, metrics)
        self._unschedulable = UnschedulablePods(self._rules)
        self._rejectors = RejectorCounts()
        self._incoming = metrics.queue_incoming_pods
        self._incoming_by_label: dict[tuple[str, str], Counter] = {}
        self._arrived = asyncio.Event()
        self._closed = False

    def __contains__(self, uid: str) -> bool:
        """Return whether a pod waits or is in flight, and was not deleted."""
        flight = self._in_flight.get(uid)
        return self._waits(uid) if flight is None else not flight.deleted

    # Called by the watch.

    def add(self, pod: Pod) -> None:
        """Add a pod, or update it if it is known already."""
        if not self._refresh(None, pod):
            self._take_in(pod, UNSCHEDULED_POD_ADD)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Store a new version; a refused pod moves if a plugin that refused it finds that the change may help.

        Without `old` the change is measured from the version that the queue has. An unknown pod is added.
        """
        if not self._refresh(old, new):
            self._take_in(new, UNSCHEDULED_POD_ADD)

    def delete(self, pod: Pod | str) -> None:
        """Forget a pod, given itself or its UID. One in flight will not come back."""
        uid = pod if isinstance(pod, str) else pod.uid
        self._nominator.delete(uid)
        flight = self._in_flight.get(uid)
        if flight is not None:
            flight.deleted = True
            if flight.on_delete is not None:
                flight.on_delete()
            return
        queued = self._active.remove(uid) or self._backoff.remove(uid) or self._unschedulable.remove(uid)
        queued = queued or self._held.remove(uid)
        if queued is not None:
            self._rejectors.remove(queued)

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Move the refused pods that an event may help, and record it for those in flight.

        `pre_check` leaves out refused pods that are known not to benefit.
        """
        if not self._rules.is_of_interest(event):
            return
        observed = ObservedEvent(event, old, new)
        for group, decision in self._unschedulable.helped_by(observed):
            for queued in tuple(group.values()):
                if pre_check is None or pre_check(queued.pod):
                    self._requeue(queued, decision, event.label)
        self._in_flight.record(observed)

    # Called by the scheduling loop.

    async def pop(self) -> QueuedPod | None:
        """Take the next pod to try, waiting for one if need be; None once the queue is closed.

        Does not give the event loop back while there are pods.
        """
        while not self._closed:
            if (queued := self.pop_nowait()) is not None:
                return queued
            self._arrived.clear()
            await self._arrived.wait()
        return None

    def pop_nowait(self) -> QueuedPod | None:
        """Take the next pod to try; None if there is none. When activeQ is empty, a refused pod need not wait."""
        if self._closed:
            return None
        queued = self._fairness.pop()
        if queued is None:
            queued = self._backoff.pop_early()
            if queued is None:
                return None
            self._count_incoming("active", POP_FROM_BACKOFF_Q)
        queued.attempts += 1
        self._rejectors.remove(queued)
        self._in_flight.start(queued)
        return queued

    def pop_specific(self, uid: str) -> QueuedPod | None:
        """Take this pod as if an event had brought it to activeQ; None if it is not here, or is kept out.

        Rule: PopSpecificPod.
        """
        if (refused := self._unschedulable.get(uid)) is not None:
            self._requeue(refused, Requeue.IMMEDIATELY, FORCE_ACTIVATE.label)
        elif (waiting := self._backoff.remove(uid)) is not None:
            self._activate(waiting, FORCE_ACTIVATE.label)
        queued = self._fairness.take(uid)
        if queued is not None:
            queued.attempts += 1
            self._rejectors.remove(queued)
            self._in_flight.start(queued)
        return queued

    def add_unschedulable_if_not_present(self, queued: QueuedPod) -> None:
        """Take a popped pod back, in its newest version. The caller has recorded which plugins refused it, if any.

        If none did, the attempt ended in an error. A pod that was deleted meanwhile is dropped: check `uid in queue`.
        """
        uid = queued.pod.uid
        flight = self._in_flight.get(uid)
        if self._waits(uid) or (flight is not None and flight.queued is not queued):
            _log.warning("Pod came back although it is in the queue already", extra={"pod": str(queued.pod)})
            return
        decision = Requeue.AFTER_BACKOFF
        if flight is not None:
            observed_events = self._in_flight.since(flight)
            self.done(uid)
            if flight.deleted:
                return
            queued.pod = flight.newest
            if queued.pod.spec.scheduling_group is None or not self._ignores_events(queued.pod):
                decision = self._rules.decide_all(queued, observed_events)
        self._count_failure(queued)
        if decision is Requeue.SKIP:
            self._park(queued, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._requeue(queued, decision, SCHEDULE_ATTEMPT_FAILURE)

    def done(self, uid: str) -> None:
        """Forget a popped pod that will not come back: it is bound, or not to be scheduled. Repeating it is harmless.

        A failed binding brings the pod back too. Until its outcome is known, the pod is best left in flight: here its
        updates and its deletion are remembered.
        """
        flight = self._in_flight.finish(uid)
        if flight is not None and flight.deleted:
            # It may have been nominated after it was deleted.
            self._nominator.delete(uid)

    def hold(self, queued: QueuedPod, lane: Hashable) -> None:
        """Hold a popped pod that was not tried, as too many attempts of its lane are under way.

        Until `pop_held` it counts as one of activeQ.
        """
        uid = queued.pod.uid
        flight = self._in_flight.get(uid)
        if flight is None or flight.queued is not queued:
            return  # another attempt, or the queue is closed
        self.done(uid)
        if flight.deleted:
            return
        queued.attempts -= 1
        queued.pod = flight.newest
        self._rejectors.add(queued)
        self._held.add(queued, lane)

    def pop_held(self, lane: Hashable) -> QueuedPod | None:
        """Pop the next pod that is held in a lane, whose attempt can begin now; None if there is none."""
        queued = None if self._closed else self._held.pop(lane)
        if queued is not None:
            queued.attempts += 1
            self._rejectors.remove(queued)
            self._in_flight.start(queued)
        return queued

    def when_deleted(self, uid: str, end: Callable[[], None]) -> None:
        """Call `end` if a pod in flight is deleted, or bound by others, so that its attempt has become pointless."""
        flight = self._in_flight.get(uid)
        if flight is not None:
            flight.on_delete = end

    def in_flight_version(self, uid: str) -> Pod | None:
        """Return the newest version of a pod in flight; None if it is not in flight, or was deleted."""
        flight = self._in_flight.get(uid)
        return None if flight is None or flight.deleted else flight.newest

    def activate(self, uids: Iterable[str]) -> None:
        """Bring pods to activeQ without regard to their backoff; for one in flight it counts as an event."""
        for uid in uids:
            if (refused := self._unschedulable.get(uid)) is not None:
                self._requeue(refused, Requeue.IMMEDIATELY, FORCE_ACTIVATE.label)
            elif (waiting := self._backoff.remove(uid)) is not None:
                self._activate(waiting, FORCE_ACTIVATE.label)
            elif (flight := self._in_flight.get(uid)) is not None:
                flight.own_events.append(ObservedEvent(FORCE_ACTIVATE, None, None))

    def wake(self, uid: str, label: str) -> bool:
        """Bring a refused pod back as an event does that helps it, called `label`; return whether it has moved."""
        refused = self._unschedulable.get(uid)
        if refused is not None:
            self._requeue(refused, Requeue.AFTER_BACKOFF, label)
            return uid not in self._unschedulable
        if (flight := self._in_flight.get(uid)) is not None:
            flight.own_events.append(ObservedEvent(ClusterEvent(ANY, Action.ALL, label), None, None))
        return flight is not None

    def is_refused(self, uid: str) -> bool:
        """Return whether a pod waits for an event, or for its gate to open."""
        return uid in self._unschedulable

    def is_nominated(self, uid: str) -> bool:
        return bool(self._nominator.node_of(uid))

    def alike(self, pod: Pod, plugins: Collection[str]) -> Hashable:
        """Return a key that is the same for all pods that no hint distinguishes, once these plugins refused them."""
        refused = QueuedPod(pod, self._now())
        refused.unschedulable_plugins = set(plugins)
        rejection = self._rules.rejection_of(refused)
        return rejection, rejection.key_of(pod)

    # Timers.

    async def run_flushers(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Flush at the start of every ordering window, and every LEFTOVER_INTERVAL, until the queue is closed."""
        leftovers_due = self._now() + LEFTOVER_INTERVAL
        while not self._closed:
            await sleep(seconds_to_next_window(self._now()))
            self.flush_backoff_completed()
            if self._now() >= leftovers_due:
                self.flush_unschedulable_leftover()
                leftovers_due = self._now() + LEFTOVER_INTERVAL

    def flush_backoff_completed(self) -> None:
        """Move the pods to activeQ that have waited long enough."""
        for queued in self._backoff.pop_completed():
            self._activate(queued, BACKOFF_COMPLETE)

    def flush_unschedulable_leftover(self) -> None:
        """Try pods again that have been refused for too long; gates stay closed."""
        observed = ObservedEvent(UNSCHEDULABLE_TIMEOUT, None, None)
        refused_before = self._now() - self._settings.leftover_seconds
        leftovers = [queued for queued in self._unschedulable if queued.timestamp < refused_before]
        for queued in leftovers:
            queued.was_flushed = True
            self._requeue(queued, self._rules.decide(queued, observed), UNSCHEDULABLE_TIMEOUT.label)
        if leftovers:
            self._in_flight.record(observed)

    def rebuild(self) -> None:
        """Move every waiting pod to its place again, and retry the refused ones: a change has failed half way.

        It may have lost an event that would have helped some. Costs as much as taking them all in.
        """
        places = (self._active, self._backoff, self._unschedulable)
        waiting = {queued.pod.uid: queued for pods in (*places, self._held) for queued in pods}
        for pods in (*places, self._held):
            pods.clear()
        self._fairness.clear()
        self._rejectors.clear()
        for uid, queued in waiting.items():
            if uid not in self._in_flight:
                self._rejectors.add(queued)
                self._requeue(queued, Requeue.AFTER_BACKOFF, CHANGE_REPAIRED)
        self._in_flight.record(ObservedEvent(ClusterEvent(ANY, Action.ALL, CHANGE_REPAIRED), None, None))

    # Another configuration.

    def _sort_key(self, settings: QueueSettings) -> SortKey:
        return sort_key_of(settings.sort, self._faults)

    def use(self, settings: QueueSettings, changed: Collection[str]) -> None:
        """Use other settings from now on; `changed`: the profiles whose settings differ.

        Pods that wait stay where they are: see `ask_again`.
        """
        before, self._settings = self._settings, settings
        same_order = _sorts_as(before.sort, settings.sort)
        self.sort_key = self._sort_key(settings)
        for pods in (self._active, self._held):
            pods.use(self.sort_key, same_order=same_order)
        self._backoff.use(settings.backoff, self.sort_key, same_order=same_order)
        self._fairness.limit = settings.starvation_seconds
        self._gates = Gates(settings.pre_enqueue, self._metrics, self._now)
        self._rules.use(settings.rejector_events, changed)

    def ask_again(self, profiles: Collection[str]) -> Iterator[None]:
        """Run PreEnqueue for every waiting pod of these profiles; try those again that were refused or are held.

        Yields after each pod, so that other tasks can run; pods that come meanwhile are left out.
        """
        self._in_flight.record(ObservedEvent(ClusterEvent(ANY, Action.ALL, CONFIGURATION_CHANGED), None, None))
        places = (self._active, self._held, self._backoff, self._unschedulable)
        waiting = [queued.pod.uid for pods in places for queued in pods if queued.pod.spec.scheduler_name in profiles]
        for uid in waiting:
            self._ask_again(uid)
            yield

    def _ask_again(self, uid: str) -> None:
        refused = self._unschedulable.get(uid)
        if refused is not None:
            self._unschedulable.add(refused)  # among those that wait for what its plugins register for now
            self._requeue(refused, Requeue.AFTER_BACKOFF, CONFIGURATION_CHANGED)
            return
        held = self._held.remove(uid)
        if held is not None:  # its lane may be another one now, or none
            self._active.add(held)
            self._fairness.entered(held)
            self._arrived.set()
        queued = self._active.get(uid) or self._backoff.get(uid)
        refusal = self._gates.refusal(queued) if queued is not None else None
        if queued is not None and refusal is not None:
            for pods in (self._active, self._backoff):
                pods.remove(uid)
            queued.gating_plugin = refusal.plugin if refusal.gates else ""
            self._rejectors.blame(queued, refusal.plugin)
            self._park(queued, CONFIGURATION_CHANGED)

    def close(self) -> None:
        """Wake all waiting callers; nothing is popped any more."""
        self._closed = True
        self._in_flight.clear()
        self._arrived.set()

    # For metrics and debugging.

    def pending_counts(self) -> Mapping[str, int]:
        """Return the number of pods by queue, as the gauge `pending_pods` shows them."""
        return {
            "active": len(self._active) + len(self._held),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable) - self._unschedulable.gated_count,
            "gated": self._unschedulable.gated_count,
        }

    def unschedulable_counts(self) -> Mapping[tuple[str, str], int]:
        """Return (plugin, profile) → number of waiting pods that the plugin refused."""
        return self._rejectors.as_mapping()

    def pending_pods(self) -> Mapping[str, Sequence[QueuedPod]]:
        """Return the waiting pods by queue, in no particular order; for debugging."""
        return {
            "active": (*self._active, *self._held),
            "backoff": tuple(self._backoff),
            "unschedulable": tuple(filterfalse(_gate, self._unschedulable)),
            "gated": tuple(filter(_gate, self._unschedulable)),
        }

    def in_flight_pods(self) -> Sequence[QueuedPod]:
        """Return the pods that were popped and are not done, the first popped first; for debugging."""
        return tuple(flight.queued for flight in self._in_flight)

    def check_invariants(self) -> None:
        """Every pod is in one place; orders, gates and counts are right. For tests and `--paranoid`."""
        waiting = [queued for pods in self.pending_pods().values() for queued in pods]
        uids = [queued.pod.uid for queued in (*waiting, *self.in_flight_pods())]
        assert len(uids) == len(set(uids)), "a pod is in two places"
        assert not any(queued.gated for queued in (*self._active, *self._held, *self._backoff))
        for part in (self._active, self._held, self._fairness, self._backoff, self._unschedulable, self._in_flight):
            part.check_invariants()
        self._rejectors.check_invariants(waiting)

    def in_flight_event_counts(self) -> Mapping[str, int]:
        """Return the number of events stored for pods in flight, by label; the pods themselves as PodPopped."""
        return self._in_flight.event_counts()

    # Internals.

    def _ignores_events(self, pod: Pod) -> bool:
        """Return whether a pod is tried again after its backoff, whatever happens: kube-scheduler's rule for groups."""
        key = self._groups.key_of(pod)
        return key is not None and key.source == POD_GROUP

    def _waits(self, uid: str) -> bool:
        return uid in self._active or uid in self._backoff or uid in self._unschedulable or uid in self._held

    def _take_in(self, pod: Pod, event: ClusterEvent) -> None:
        self._nominator.add(pod)
        self._requeue(QueuedPod(pod, self._now()), Requeue.IMMEDIATELY, event.label)

    def _refresh(self, old: Pod | None, new: Pod) -> bool:
        """Give a known pod its new version, and move it if that may help; False if it is unknown."""
        uid = new.uid
        flight = self._in_flight.get(uid)
        if flight is not None:
            for event in pod_changes(old or flight.newest, new):
                self._in_flight.record(ObservedEvent(event, old, new))
            flight.newest, flight.deleted = new, False
            return True
        for heap in (self._active, self._backoff, self._held):
            queued = heap.get(uid)
            if queued is not None:
                self._replace(queued, new)
                heap.rekey(uid)
                return True
        queued = self._unschedulable.get(uid)
        if queued is None:
            return False
        old = old or queued.pod
        self._replace(queued, new)
        self._unschedulable.add(queued)
        for event in pod_changes(old, new):
            decision = self._rules.decide_own(queued, ObservedEvent(event, old, new))
            if decision is not Requeue.SKIP:
                self._requeue(queued, decision, event.label)
                break
        return True

    def _replace(self, queued: QueuedPod, new: Pod) -> None:
        self._nominator.update(queued.pod, new)
        self._rejectors.remove(queued)
        queued.pod = new
        self._rejectors.add(queued)

    def _count_failure(self, queued: QueuedPod) -> None:
        if queued.unschedulable_plugins or queued.pending_plugins:
            queued.unschedulable_count += 1
            queued.consecutive_errors_count = 0
        else:
            queued.consecutive_errors_count += 1
        queued.timestamp = self._now()
        queued.backoff_expiration = 0.0
        queued.was_flushed = False
        self._rejectors.add(queued)

    def _requeue(self, queued: QueuedPod, decision: Requeue, label: str) -> None:
        """Move a new or refused pod to activeQ or backoffQ, if the PreEnqueue plugins let it."""
        if decision is Requeue.SKIP:
            return
        refusal = self._gates.refusal(queued)
        gate = refusal.plugin if refusal is not None and refusal.gates else ""
        if gate and gate == queued.gating_plugin and queued.pod.uid in self._unschedulable:
            return  # it stays where it is; hot, as each deletion asks about all pods that wait for their victims
        queued.gating_plugin = gate
        if refusal is not None:
            self._rejectors.blame(queued, refusal.plugin)
            self._park(queued, label)
            return
        self._unschedulable.remove(queued.pod.uid)
        if decision is Requeue.AFTER_BACKOFF and self._backoff.is_backing_off(queued):
            self._backoff.add(queued, may_leave_early=self._groups.key_of(queued.pod) is None)
            self._count_incoming("backoff", label)
            self._arrived.set()
        else:
            self._activate(queued, label)

    def _activate(self, queued: QueuedPod, label: str) -> None:
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._now()
        self._active.add(queued)
        self._fairness.entered(queued)
        self._count_incoming("active", label)
        self._arrived.set()

    def _park(self, queued: QueuedPod, label: str) -> None:
        if queued.pod.uid not in self._unschedulable:
            self._count_incoming("unschedulable", label)
        self._unschedulable.add(queued)

    def _count_incoming(self, queue: str, label: str) -> None:
        counter = self._incoming_by_label.get((queue, label))
        if counter is None:
            counter = self._incoming_by_label[queue, label] = self._incoming.labels(queue, label)
        counter.inc()


def _sorts_as(a: QueueSortPlugin, b: QueueSortPlugin) -> bool:
    """Return whether both give a pod the same key. Keys of a plugin that is not in-tree may be of no use without it."""
    return is_of_tree(type(a)) and type(a) is type(b) and arguments_of(a) == arguments_of(b)
