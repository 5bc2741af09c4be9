"""The scheduling queue: where a pod, or a group of pods, waits between its attempts.

    new entry ────────► PreEnqueue ─┬─ lets it in ─────────────► ACTIVE
                                    └─ refuses ────────────────► UNSCHEDULABLE (gated)
    UNSCHEDULABLE ─┬─ event ──────────► PreEnqueue ────────────► ACTIVE, or BACKOFF if it has not waited enough
                   └─ 5 min, activate ► PreEnqueue ────────────► ACTIVE
    BACKOFF ───────┬─ waited enough, activate ─────────────────► ACTIVE
                   └─ pop, while activeQ is empty ─────────────► IN FLIGHT
    ACTIVE ────────── pop ─────────────────────────────────────► IN FLIGHT
    IN FLIGHT ─────┬─ its lane is full ────────────────────────► HELD
                   ├─ refused, and its quota has no space ─────► PENDING FOR QUOTA
                   ├─ otherwise refused ───────────────────────► UNSCHEDULABLE
                   ├─ refused, but an event came ► PreEnqueue ─► BACKOFF, or ACTIVE if it need not wait
                   ├─ error ─────────────────────► PreEnqueue ─► BACKOFF
                   └─ done, or deleted meanwhile ──────────────► gone
    HELD ──────────── its turn in the lane ────────────────────► IN FLIGHT
    PENDING FOR ───┬─ space, reserved for it ─► PreEnqueue ────► ACTIVE, or BACKOFF
    QUOTA          ├─ evictions may help, activate ► PreEnqueue ► ACTIVE, or BACKOFF
                   └─ it asks for less, or of another quota ───► ACTIVE, or BACKOFF
    anywhere ──────── delete ──────────────────────────────────► gone

An entry that is pending for quota lacks space in it: no event of the cluster helps, and quota wakes it. One that has
space and lacks a node is unschedulable like any other. An entry is in one place at a time. After `pop` a pod must be
handed back (`add_unschedulable_if_not_present`) or be `done`. All pods of a group that have no node are one entry,
which is tried as a whole:

    pod of a group ───┬─ the group's object is missing ────────► INCOMPLETE ── it comes ──► joins the entry
                      ├─ the group is IN FLIGHT ───────────────► PENDING ── group_tried ──► joins the entry
                      └─ otherwise ────────────────────────────► joins the entry, or is the first of a new one
    group IN FLIGHT ──┬─ a member is refused, or fails ────────► comes back to the group, which files it in the end
                      └─ group_tried ─┬─ some got a node ──────► ACTIVE, with its old timestamp, if pods are left
                                      └─ refused, or an error ─► as a pod

One gated member gates the group. An event that helps one member moves it, and so does a pod that comes. Members are
asked by kinds, so an event costs as much as there are kinds of them. A waiting group is known by its key.

Rule: pkg/scheduler/backend/queue/scheduling_queue.go at v1.37.2 with its feature gates at the defaults.
"""

import asyncio
import logging
import time
from collections import Counter as Counts
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from scheduler.api.pod import Pod
from scheduler.framework.arguments import arguments_of
from scheduler.framework.events import (
    ANY,
    POD_GROUP,
    TARGET_POD_UPDATE,
    UNSCHEDULED_POD_ADD,
    Action,
    ClusterEvent,
)
from scheduler.framework.handle import PodNominator
from scheduler.framework.plugin import QueueSortPlugin
from scheduler.framework.pod_groups import NO_POD_GROUPS, GroupKey, PodGroups
from scheduler.framework.queued import EntityKey, Entry, QueuedGroup, QueuedPod, pods_of
from scheduler.framework.status import Code
from scheduler.process.instruments import Counter
from scheduler.process.metrics import Metrics
from scheduler.queue.backoff_queue import BackoffQueue, seconds_to_next_window
from scheduler.queue.entity_heap import EntityHeap
from scheduler.queue.fairness import Fairness
from scheduler.queue.gates import GateRefusal, Gates
from scheduler.queue.group_entries import GroupEntries
from scheduler.queue.held_pods import HeldPods
from scheduler.queue.in_flight import InFlightPods, ObservedEvent
from scheduler.queue.pending_for_quota import PendingForQuota
from scheduler.queue.quota import NO_QUOTA, Quota
from scheduler.queue.rejectors import RejectorCounts
from scheduler.queue.requeueing import Requeue, RequeueRules
from scheduler.queue.settings import QueueSettings
from scheduler.queue.sorting import SortKey, sort_key_of
from scheduler.queue.unschedulable import Unschedulable, asked_of
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
MEMBER_GONE: Final = "PodGroupMemberDelete"


class SchedulingQueue:
    """kube-scheduler's PriorityQueue. The caller keeps pods away that are bound, assumed or not ours."""

    def __init__(
        self,
        settings: QueueSettings,
        metrics: Metrics,
        nominator: PodNominator,
        now: Callable[[], float] = time.monotonic,
        groups: PodGroups = NO_POD_GROUPS,
        quota: Quota = NO_QUOTA,
    ) -> None:
        self._now = now
        self._quota = quota
        self._groups = groups
        self._metrics = metrics
        self._nominator = nominator
        self._settings = settings
        self._faults = PluginFaults(metrics)
        self.sort_key: SortKey = self._sort_key(settings)
        """Orders its pods."""
        self._active = EntityHeap[Entry](self.sort_key)
        self._backoff = BackoffQueue(settings.backoff, self.sort_key, now)
        self._fairness = Fairness(self._active, now, settings.starvation_seconds)
        self.in_flight = InFlightPods()
        self._held = HeldPods(self.sort_key)
        self._gates = Gates(settings.pre_enqueue, metrics, now)
        self._rules = RequeueRules(settings.rejector_events, metrics)
        self._unschedulable = Unschedulable(self._rules)
        self.pending_for_quota = PendingForQuota[Any](self.sort_key, self._is_nominated)
        self._entries = GroupEntries()
        self._members = self._entries.members
        self._rejectors = RejectorCounts()
        self._incoming = metrics.queue_incoming_pods
        self._incoming_by_label: dict[tuple[str, str], Counter] = {}
        self._incoming_groups: Counts[tuple[str, str]] = Counts()
        self._incoming_members: Counts[tuple[str, str]] = Counts()
        self._arrived = asyncio.Event()
        self._closed = False

    def __contains__(self, uid: str) -> bool:
        """Return whether a pod waits or is in flight, and was not deleted."""
        flight = self.in_flight.get(uid)
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
        flight = self.in_flight.get(uid)
        if flight is not None:
            flight.deleted = True
            if flight.on_delete is not None:
                flight.on_delete()
            return
        queued = self._take_out(uid) or (self._leave(uid) if uid in self._members else None)
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
        groups = set[EntityKey]()
        for kind, decision in self._unschedulable.helped_by(observed):
            for queued in tuple(kind.values()):
                if pre_check is None or pre_check(queued.pod):
                    group = queued.group if isinstance(queued, QueuedPod) else queued
                    if group is None:
                        self._requeue(queued, decision, event.label)
                    elif self._unschedulable.asks(queued) and group.key not in groups:  # it has not moved yet
                        groups.add(group.key)
                        self._requeue(group, decision, event.label)
        self.in_flight.record(observed)

    # Called by the scheduling loop.

    async def pop(self) -> Entry | None:
        """Take the next pod or group to try, waiting for one if need be; None once the queue is closed.

        Does not give the event loop back while there are any.
        """
        while not self._closed:
            if (queued := self.pop_nowait()) is not None:
                return queued
            self._arrived.clear()
            await self._arrived.wait()
        return None

    def pop_nowait(self) -> Entry | None:
        """Take the next one to try; None if there is none. When activeQ is empty, a refused pod need not wait.

        Of a group, `group_tried` has to be called.
        """
        if self._closed:
            return None
        queued = self._fairness.pop()
        if queued is None:
            queued = self._backoff.pop_early()
            if queued is None:
                return None
            self._count_incoming("active", POP_FROM_BACKOFF_Q, queued)
        queued.attempts += 1
        if self.pending_for_quota.due:
            self.pending_for_quota.due.pop(queued.key, None)
        if isinstance(queued, QueuedGroup):
            for each in self._entries.begin(queued):
                each.attempts += 1
                self._rejectors.remove(each)
                self.in_flight.start(each)
        else:
            self._rejectors.remove(queued)
            self.in_flight.start(queued)
        return queued

    def add_unschedulable_if_not_present(self, queued: QueuedPod) -> None:
        """Take a popped pod back, in its newest version. The caller has recorded which plugins refused it, if any.

        If none did, the attempt ended in an error. A pod that was deleted meanwhile is dropped: check `uid in queue`.
        """
        uid = queued.pod.uid
        flight = self.in_flight.get(uid)
        if self._waits(uid) or (flight is not None and flight.queued is not queued):
            _log.warning("Pod came back although it is in the queue already", extra={"pod": str(queued.pod)})
            return
        decision = Requeue.AFTER_BACKOFF
        if flight is not None:
            if queued.group is not None and queued.group.is_tried:
                queued.group.add(queued)  # until `group_tried`
                return
            observed_events = self.in_flight.since(flight)
            self.done(uid)
            if flight.deleted:
                return
            queued.pod = flight.newest
            decision = self._rules.decide_all(queued, observed_events)
        queued.group = None
        self._count_failure(queued)
        if self._groups.key_of(queued.pod) is not None:
            self._admit(queued, decision, SCHEDULE_ATTEMPT_FAILURE)
        elif decision is Requeue.SKIP:
            self._park(queued, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._requeue(queued, decision, SCHEDULE_ATTEMPT_FAILURE)

    def group_tried(self, group: QueuedGroup, code: Code, plugins: Collection[str] = ()) -> None:
        """Take a popped group back, once its attempt is over: those of its pods that came back, and those that are new.

        `code`: of the attempt, SUCCESS if some got their node. `plugins`: those that refused the group as a whole.
        """
        if not self._entries.end(group):
            return
        group.unschedulable_plugins = set(plugins)
        decision = self._decide_about_group(group, code)
        back = [each for each in self._entries.drop(group) if self._come_back(each)]
        arrived = self._entries.take(self._entries.pending, group.group_key)
        if arrived and decision is Requeue.SKIP:
            decision = Requeue.AFTER_BACKOFF
        _count_attempt(group, code, self._now(), keeps_timestamp=code is Code.SUCCESS and bool(back))
        self._restore(group, (*back, *arrived), decision)

    def _restore(self, group: QueuedGroup, members: Sequence[QueuedPod], decision: Requeue) -> None:
        """Have a group wait again with these pods, except those that are not of it any more."""
        stay, leave = list[QueuedPod](), list[QueuedPod]()
        for each in members:
            (stay if self._groups.key_of(each.pod) == group.group_key else leave).append(each)
        if stay and self._groups.of(stay[0].pod) is None:
            stay, leave = [], list(members)
        if stay:
            self._entries.add(group, stay)
            self._move(group, decision, SCHEDULE_ATTEMPT_FAILURE)
        for each in leave:
            self._admit(each, Requeue.AFTER_BACKOFF, SCHEDULE_ATTEMPT_FAILURE)

    def _decide_about_group(self, group: QueuedGroup, code: Code) -> Requeue:
        """Return what the events since its pop mean for a group."""
        if code is Code.SUCCESS:
            return Requeue.IMMEDIATELY
        flights = [flight for each in group.members if (flight := self.in_flight.get(each.pod.uid)) is not None]
        if code is Code.ERROR or group.is_woken or self._quota.has_come_free(group):
            return Requeue.AFTER_BACKOFF
        if any(flight.own_events for flight in flights):
            return Requeue.AFTER_BACKOFF
        events = self.in_flight.since(flights[0]) if flights else ()
        best, kinds = Requeue.SKIP, set[Hashable]()
        for each in asked_of(group) if events else ():
            kind = self._rules.kind_of(each)
            if kind not in kinds:
                kinds.add(kind)
                decision = self._rules.decide_all(each, events)
                if decision is Requeue.IMMEDIATELY:
                    return decision
                best = decision if best is Requeue.SKIP else best
        return best

    def _come_back(self, member: QueuedPod) -> bool:
        """Have a member back whose attempt is over; return whether it was not deleted meanwhile."""
        flight = self.in_flight.get(member.pod.uid)
        self.done(member.pod.uid)
        if flight is None or flight.deleted:
            return False
        if flight.newest is not member.pod:
            self._nominator.update(member.pod, flight.newest)
        member.pod = flight.newest
        member.timestamp = self._now()
        member.was_flushed, member.flushed_at = False, 0.0
        self._rejectors.add(member)
        return True

    def done(self, uid: str) -> None:
        """Forget a popped pod that will not come back: it is bound, or not to be scheduled. Repeating it is harmless.

        A failed binding brings the pod back too. Until its outcome is known, the pod is best left in flight: here its
        updates and its deletion are remembered.
        """
        flight = self.in_flight.finish(uid)
        if flight is not None and flight.deleted:
            # It may have been nominated after it was deleted.
            self._nominator.delete(uid)

    def drop(self, popped: Entry) -> None:
        """Forget a popped pod or group that is not tried."""
        for each in pods_of(popped):
            self.done(each.pod.uid)
        if isinstance(popped, QueuedGroup):
            popped.take_all()
            self.group_tried(popped, Code.UNSCHEDULABLE)

    def hold(self, queued: QueuedPod, lane: Hashable) -> None:
        """Hold a popped pod that was not tried, as too many attempts of its lane are under way.

        Until `pop_held` it counts as one of activeQ.
        """
        uid = queued.pod.uid
        flight = self.in_flight.get(uid)
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
            self.in_flight.start(queued)
        return queued

    def when_deleted(self, uid: str, end: Callable[[], None]) -> None:
        """Call `end` if a pod in flight is deleted, or bound by others, so that its attempt has become pointless."""
        flight = self.in_flight.get(uid)
        if flight is not None:
            flight.on_delete = end

    def activate(self, uids: Iterable[str]) -> None:
        """Bring pods, with their groups, to activeQ in spite of backoff; for one in flight it counts as an event."""
        for uid in uids:
            key = self._key_of_entry(uid)
            if (refused := self._refused(key)) is not None:
                self._requeue(refused, Requeue.IMMEDIATELY, FORCE_ACTIVATE.label)
            elif (waiting := self._backoff.remove(key)) is not None:
                self._activate(waiting, FORCE_ACTIVATE.label)
            elif (flight := self.in_flight.get(uid)) is not None:
                flight.own_events.append(ObservedEvent(FORCE_ACTIVATE, None, None))

    def wake(self, key: EntityKey, label: str) -> bool:
        """Bring a refused pod or group back as an event called `label` does that helps it; return whether it has moved.

        `key`: UID of a pod, also of one in a group, or the key of a group.
        """
        key = self._key_of_entry(key)
        refused = self._refused(key)
        if refused is not None:
            self._requeue(refused, Requeue.AFTER_BACKOFF, label)
            return self._refused(key) is None
        if isinstance(key, str):
            if (flight := self.in_flight.get(key)) is not None:
                flight.own_events.append(ObservedEvent(ClusterEvent(ANY, Action.ALL, label), None, None))
            return flight is not None
        group = self._entries.get(key)
        if group is not None and group.is_tried:
            group.is_woken = True
        return group is not None and group.is_tried

    def is_refused(self, key: EntityKey) -> bool:
        """Return whether a pod, its group, or a group waits for an event, or for its gate to open."""
        return self._refused(self._key_of_entry(key)) is not None

    def ask_quota_again(self, key: EntityKey, label: str) -> bool:
        """Move an entry that is pending for quota if there is space for it now; return whether it was pending.

        It may ask for something else, or of another quota.
        """
        queued = self.pending_for_quota.get(key)
        if queued is None:
            return False
        request = self._quota.lacking(queued)
        if request is None:
            self._requeue(queued, Requeue.AFTER_BACKOFF, label)
        else:
            self.pending_for_quota.add(queued, request)
        return True

    def entry_of(self, key: EntityKey) -> Entry | None:
        """Return the entry that a waiting pod belongs to, or the waiting group of this key; None if there is none."""
        key = self._key_of_entry(key)
        for place in (self._active, self._backoff, self._unschedulable, self.pending_for_quota):
            if (entry := place.get(key)) is not None:
                return entry
        return self._held.get(key)

    def _key_of_entry(self, key: EntityKey) -> EntityKey:
        member = self._members.get(key) if isinstance(key, str) else None
        return key if member is None or member.group is None else member.group.key

    # What happens to groups.

    def group_changed(self, key: GroupKey) -> None:
        """The object of a group has come or gone, or has another priority."""
        for queued in self._entries.take(self._entries.incomplete, key):
            queued.gating_plugin = ""
            self._admit(queued, Requeue.IMMEDIATELY, UNSCHEDULED_POD_ADD.label)
        group = self._entries.get(key)
        if group is None or group.is_tried:
            return
        found = self._groups.of(group.pod)
        if found is None:
            self._take_out(key)
            for queued in self._entries.drop(group):
                self._admit(queued, Requeue.IMMEDIATELY, TARGET_POD_UPDATE.label)
        elif group.group_priority not in (None, found.priority):
            group.group_priority = found.priority
            for heap in (self._active, self._backoff):
                if key in heap:
                    heap.rekey(key)

    def regroup(self) -> None:
        """Other pods have groups now: have each wait as what it is."""
        for entry in self._waiting_entries():
            if isinstance(entry, QueuedPod) and self._groups.key_of(entry.pod) is not None:
                self._take_out(entry.key)
                self._admit(entry, Requeue.IMMEDIATELY, CONFIGURATION_CHANGED)
        for group in self._entries.waiting():
            for member in group.members:
                self._regroup(member)
        for member in (*self._entries.incomplete, *self._entries.pending):
            self._regroup(member)

    def _regroup(self, member: QueuedPod) -> bool:
        """Have a waiting member of a group wait elsewhere if it is of that group no more; return whether it was so."""
        if self._groups.key_of(member.pod) == self._entries.key_of(member):
            return False
        self._leave(member.pod.uid)
        self._admit(member, Requeue.IMMEDIATELY, TARGET_POD_UPDATE.label)
        return True

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
        """Move those to activeQ that have waited long enough."""
        for queued in self._backoff.pop_completed():
            self._activate(queued, BACKOFF_COMPLETE)

    def flush_unschedulable_leftover(self) -> None:
        """Try those again that have been refused for too long, and ask about gates whether they are still closed."""
        now = self._now()
        before = now - self._settings.leftover_seconds
        leftovers = [each for each in self._unschedulable if max(each.timestamp, each.flushed_at) < before]
        for queued in leftovers:
            queued.flushed_at = now
            self._requeue(queued, Requeue.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT.label)
            queued.was_flushed = not queued.gating_plugin
            for each in pods_of(queued):
                each.was_flushed = queued.was_flushed
        if leftovers:
            self.in_flight.record(ObservedEvent(UNSCHEDULABLE_TIMEOUT, None, None))

    def rebuild(self) -> None:
        """Move everything that waits to its place again, and retry the refused ones: a change has failed half way.

        It may have lost an event that would have helped some. Costs as much as taking them all in.
        """
        waiting = {queued.key: queued for queued in (*self._waiting_entries(), *self._entries.waiting())}
        for place in (self._active, self._backoff, self._unschedulable, self.pending_for_quota, self._held):
            place.clear()
        self._fairness.clear()
        self._rejectors.clear()
        for each in (*self._entries.incomplete, *self._entries.pending):
            self._rejectors.add(each)
        for key, queued in waiting.items():
            if key not in self.in_flight:
                for each in pods_of(queued):
                    self._rejectors.add(each)
                self._requeue(queued, Requeue.AFTER_BACKOFF, CHANGE_REPAIRED)
        self.in_flight.record(ObservedEvent(ClusterEvent(ANY, Action.ALL, CHANGE_REPAIRED), None, None))

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
        self._active.use(self.sort_key, same_order=same_order)
        self._held.use(self.sort_key, same_order=same_order)
        self._backoff.use(settings.backoff, self.sort_key, same_order=same_order)
        self.pending_for_quota.use(self.sort_key)
        self._fairness.limit = settings.starvation_seconds
        self._gates = Gates(settings.pre_enqueue, self._metrics, self._now)
        self._rules.use(settings.rejector_events, changed)

    def ask_again(self, profiles: Collection[str]) -> Iterator[None]:
        """Run PreEnqueue for every waiting pod of these profiles; try those again that were refused or are held.

        Yields after each pod, so that other tasks can run; pods that come meanwhile are left out.
        """
        self.in_flight.record(ObservedEvent(ClusterEvent(ANY, Action.ALL, CONFIGURATION_CHANGED), None, None))
        waiting = [each.key for each in self._waiting_entries() if each.pod.spec.scheduler_name in profiles]
        for key in waiting:
            self._ask_again(key)
            yield
        for queued in self._entries.incomplete:
            self._ask(queued)

    def _ask_again(self, key: EntityKey) -> None:
        refused = self._unschedulable.get(key)
        if refused is not None:
            self._unschedulable.add(refused)  # among those that wait for what its plugins register for now
            self._requeue(refused, Requeue.AFTER_BACKOFF, CONFIGURATION_CHANGED)
            return
        if self.ask_quota_again(key, CONFIGURATION_CHANGED):
            return
        held = self._held.remove(key)
        if held is not None:  # its lane may be another one now, or none
            self._active.add(held)
            self._fairness.entered(held)
            self._arrived.set()
        queued = self._active.get(key) or self._backoff.get(key)
        if queued is None:
            return
        refusal = self._ask(queued) if isinstance(queued, QueuedPod) else self._refusal(queued)
        if refusal is not None:
            self._keep_out(queued, refusal, CONFIGURATION_CHANGED)

    def _keep_out(self, queued: Entry, refusal: GateRefusal, label: str) -> None:
        """Take one out of activeQ or backoffQ that a PreEnqueue plugin has refused."""
        self._take_out(queued.key)
        queued.gating_plugin = refusal.plugin if refusal.gates else ""
        self._park(queued, label)

    def close(self) -> None:
        """Wake all waiting callers; nothing is popped any more."""
        self._closed = True
        self.in_flight.clear()
        self._arrived.set()

    # For metrics and debugging.

    def pending_counts(self) -> Mapping[str, int]:
        """Return the number of pods by queue, as the gauge `pending_pods` shows them."""
        counts = {
            "active": len(self._active) + len(self._held),
            "backoff": len(self._backoff),
            "unschedulable": len(self._unschedulable) - len(self._unschedulable.gated) + len(self.pending_for_quota),
            "gated": len(self._unschedulable.gated),
            "incomplete": len(self._entries.incomplete),
            "pending": len(self._entries.pending),
        }
        for group in self._entries.waiting():
            counts[self._place_of(group)] += group.size - 1
        return counts

    def entity_counts(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield (queue, type) → number of entries, as the gauge `queued_entities` shows them."""
        groups = Counts(map(self._place_of, self._entries.waiting()))
        yield ("active", "pod"), len(self._active) + len(self._held) - groups["active"]
        yield ("backoff", "pod"), len(self._backoff) - groups["backoff"]
        gated = len(self._unschedulable.gated)
        refused = len(self._unschedulable) - gated + len(self.pending_for_quota)
        yield ("unschedulable", "pod"), refused - groups["unschedulable"]
        yield ("gated", "pod"), gated - groups["gated"]
        for place in ("active", "backoff", "unschedulable", "gated"):
            yield (place, "podgroup"), groups[place]

    def incoming_entities(self) -> Iterator[tuple[tuple[str, str, str], float]]:
        """Yield (queue, event, type) → how many entries came, as the counter `queue_incoming_entities` shows them."""
        for (place, label), pods in self._incoming_by_label.items():
            alone = pods.value - self._incoming_members[place, label]
            if alone:
                yield (place, label, "pod"), alone
            if groups := self._incoming_groups[place, label]:
                yield (place, label, "podgroup"), groups

    def _place_of(self, group: QueuedGroup) -> str:
        if self._refused(group.key) is not None:
            return "gated" if group.gated else "unschedulable"
        return "backoff" if group.key in self._backoff else "active"

    def unschedulable_counts(self) -> Mapping[tuple[str, str], int]:
        """Return (plugin, profile) → number of waiting pods that the plugin refused."""
        return self._rejectors.as_mapping()

    def pending_pods(self) -> Mapping[str, Sequence[QueuedPod]]:
        """Return the waiting pods by queue, in no particular order; for debugging."""
        refused = (*self._unschedulable, *self.pending_for_quota)
        return {
            "active": (*_all_pods(self._active), *self._held),
            "backoff": _all_pods(self._backoff),
            "unschedulable": _all_pods(each for each in refused if not each.gating_plugin),
            "gated": _all_pods(each for each in refused if each.gating_plugin),
            "incomplete": tuple(self._entries.incomplete),
            "pending": tuple(self._entries.pending),
        }

    def in_flight_pods(self) -> Sequence[QueuedPod]:
        """Return the pods that were popped and are not done, the first popped first; for debugging."""
        return tuple(flight.queued for flight in self.in_flight)

    def check_invariants(self) -> None:
        """Every pod is in one place; orders, gates and counts are right. For tests and `--paranoid`."""
        parts = self.pending_pods()
        assert {name: len(pods) for name, pods in parts.items()} == self.pending_counts()
        waiting = [queued for pods in parts.values() for queued in pods]
        uids = [queued.pod.uid for queued in (*waiting, *self.in_flight_pods())]
        assert len(uids) == len(set(uids)), "a pod is in two places"
        assert not any(each.gated for each in (*self._active, *self._held, *self._backoff, *self.pending_for_quota))
        places = (self._active, self._held, self._fairness, self._backoff, self._unschedulable, self.in_flight)
        for part in (*places, self.pending_for_quota, self._entries):
            part.check_invariants()
        assert all(key in self._active or key in self._backoff for key in self.pending_for_quota.due)
        groups = [queued for queued in self._waiting_entries() if isinstance(queued, QueuedGroup)]
        assert set(groups) == set(self._entries.waiting())
        self._rejectors.check_invariants(waiting)

    def in_flight_event_counts(self) -> Mapping[str, int]:
        """Return the number of events stored for pods in flight, by label; the pods themselves as PodPopped."""
        return self.in_flight.event_counts()

    # Internals.

    def _waits(self, uid: str) -> bool:
        is_alone = uid in self._active or uid in self._backoff or self._refused(uid) is not None or uid in self._held
        return is_alone or uid in self._members

    def _waiting_entries(self) -> Sequence[Entry]:
        return (*self._active, *self._held, *self._backoff, *self._unschedulable, *self.pending_for_quota)

    def _refused(self, key: EntityKey) -> Entry | None:
        """Return an entry that waits for an event, for its gate to open, or for quota."""
        queued = self._unschedulable.get(key)
        return self.pending_for_quota.get(key) if queued is None and self.pending_for_quota.requests else queued

    def _is_nominated(self, uid: str) -> bool:
        return bool(self._nominator.node_of(uid))

    def _take_out(self, key: EntityKey) -> Entry | None:
        """Take an entry out of its place."""
        self.pending_for_quota.due.pop(key, None)
        queued = self._active.remove(key) or self._backoff.remove(key) or self._unschedulable.remove(key)
        return queued or self.pending_for_quota.remove(key) or self._held.remove(key)

    def _take_in(self, pod: Pod, event: ClusterEvent) -> None:
        self._nominator.add(pod)
        queued = QueuedPod(pod, self._now())
        if self._groups.key_of(pod) is None:
            self._requeue(queued, Requeue.IMMEDIATELY, event.label)
        else:
            self._admit(queued, Requeue.IMMEDIATELY, event.label)

    def _admit(self, queued: QueuedPod, decision: Requeue, label: str) -> None:
        """Let a pod wait that is in no place: by itself, in the entry of its group, or apart from it."""
        key = self._groups.key_of(queued.pod)
        if key is None:
            queued.group = None
            self._move(queued, decision, label)
            return
        group = self._entries.get(key)
        if group is None:
            self._admit_first(queued, key, decision, label)
        elif group.is_tried:
            self._entries.put(self._entries.pending, key, queued)
        else:
            self._entries.add(group, (queued,))
            self._joined(group, queued, decision, label)

    def _admit_first(self, queued: QueuedPod, key: GroupKey, decision: Requeue, label: str) -> None:
        """Make an entry for a group, with what is known of its first pod, if its object is there."""
        found = self._groups.of(queued.pod)
        if found is None:
            self._entries.put(self._entries.incomplete, key, queued)
            self._ask(queued)
            return
        group = QueuedGroup(queued.pod, queued.timestamp, queued.attempts, group_key=key)
        group.group_priority = found.priority if key.source == POD_GROUP else None
        group.initial_attempt_timestamp = queued.initial_attempt_timestamp
        group.unschedulable_count = queued.unschedulable_count
        group.consecutive_errors_count = queued.consecutive_errors_count
        self._entries.add(group, (queued,))
        self._move(group, decision, label)

    def _joined(self, group: QueuedGroup, member: QueuedPod, decision: Requeue, label: str) -> None:
        """Have a waiting group go on with a further pod: it is tried if the pod was not refused before."""
        if group.key in self._unschedulable:
            if decision is not Requeue.SKIP:
                self._ask(member)
                self._requeue(group, Requeue.AFTER_BACKOFF, label)
            if group.key in self._unschedulable:
                if member.unschedulable_plugins or member.pending_plugins:
                    self._unschedulable.ask(member, group)
                self._count("unschedulable", label, 1)
        elif group.key in self.pending_for_quota:
            if self.ask_quota_again(group.key, label):
                self._count("unschedulable", label, 1)
        elif (refusal := self._ask(member)) is not None:
            self._keep_out(group, refusal, label)
        else:
            member.initial_attempt_timestamp = member.initial_attempt_timestamp or group.initial_attempt_timestamp
            self._count(self._place_of(group), label, 1)

    def _leave(self, uid: str) -> QueuedPod:
        """Take a pod out of its group, or from those that wait apart."""
        member = self._members[uid]
        group = member.group
        was_gating = group is not None and group.gated and group.gating_member is member
        self._entries.leave(member)
        if group is None:
            return member
        if not group:
            self._take_out(group.key)
        elif group.key in self._unschedulable:
            self._unschedulable.member_left(uid, group)
            if was_gating:
                self._requeue(group, Requeue.AFTER_BACKOFF, MEMBER_GONE)
        elif group.key in self.pending_for_quota:
            self.ask_quota_again(group.key, MEMBER_GONE)
        return member

    def _refresh(self, old: Pod | None, new: Pod) -> bool:
        """Give a known pod its new version, and move it if that may help; False if it is unknown."""
        uid = new.uid
        flight = self.in_flight.get(uid)
        if flight is not None:
            for event in pod_changes(old or flight.newest, new):
                self.in_flight.record(ObservedEvent(event, old, new))
            flight.newest, flight.deleted = new, False
            return True
        for heap in (self._active, self._backoff, self._held):
            queued = heap.get(uid)
            if queued is not None:
                self._replace(queued, new)
                if self._groups.key_of(new) is None:
                    heap.rekey(uid)
                else:
                    self._join(queued)
                return True
        if self.pending_for_quota.requests and (pending := self.pending_for_quota.get(uid)) is not None:
            self._replace(pending, new)
            if self._groups.key_of(new) is None:
                self.ask_quota_again(uid, TARGET_POD_UPDATE.label)
            else:
                self._join(pending)
            return True
        queued = self._unschedulable.get(uid)
        if queued is None:
            return uid in self._members and self._refresh_member(old, self._members[uid], new)
        old = old or queued.pod
        self._replace(queued, new)
        self._unschedulable.add(queued)
        if self._groups.key_of(new) is None:
            self._move_changed(queued, queued, old)
        else:
            self._join(queued)
        return True

    def _join(self, queued: Entry) -> None:
        """Have a pod wait in its group, as it names one now."""
        self._take_out(queued.key)
        for each in pods_of(queued):
            self._admit(each, Requeue.IMMEDIATELY, TARGET_POD_UPDATE.label)

    def _move_changed(self, changed: Entry, entry: Entry, old: Pod) -> None:
        """Move a refused pod, or its group, if a plugin that refused it finds that the pod's change may help.

        If none did, as it waits for others of its group, any change may.
        """
        is_refused = changed.unschedulable_plugins or changed.pending_plugins
        for event in pod_changes(old, changed.pod):
            observed = ObservedEvent(event, old, changed.pod)
            decision = self._rules.decide_own(changed, observed) if is_refused else Requeue.AFTER_BACKOFF
            if decision is not Requeue.SKIP:
                self._requeue(entry, decision, event.label)
                break

    def _refresh_member(self, old: Pod | None, member: QueuedPod, new: Pod) -> bool:
        """Do the same for a pod that waits in or apart from its group."""
        old = old or member.pod
        self._replace(member, new)
        group = member.group
        if self._regroup(member):
            return True
        if group is None:
            if new.uid in self._entries.incomplete:
                self._ask(member)
            return True
        group.renew(member)
        if group.key in self._unschedulable:
            is_open = not member.gated or self._ask(member) is None
            self._unschedulable.member_changed(member, group)
            if is_open and group.gated:
                self._requeue(group, Requeue.AFTER_BACKOFF, TARGET_POD_UPDATE.label)
            elif is_open:
                self._move_changed(member, group, old)
        else:
            self.ask_quota_again(group.key, TARGET_POD_UPDATE.label)
        return True

    def _replace(self, queued: Entry, new: Pod) -> None:
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
        queued.was_flushed, queued.flushed_at = False, 0.0
        self._rejectors.add(queued)

    def _ask(self, queued: QueuedPod) -> GateRefusal | None:
        """Ask the PreEnqueue plugins about a pod, and note which one gates it."""
        refusal = self._gates.refusal(queued)
        queued.gating_plugin = refusal.plugin if refusal is not None and refusal.gates else ""
        if refusal is not None:
            self._rejectors.blame(queued, refusal.plugin)
        if queued.group is not None:
            queued.group.note_gate(queued)
        return refusal

    def _refusal(self, queued: QueuedGroup) -> GateRefusal | None:
        """Ask the PreEnqueue plugins about members of a group until one is refused: first those that were before."""
        asked = set[EntityKey]()
        while (member := queued.gating_member) is not None:
            asked.add(member.key)
            if (refusal := self._ask(member)) is not None:
                return refusal
        for member in queued.members:
            if member.key not in asked and (refusal := self._ask(member)) is not None:
                return refusal
        return None

    def _move(self, queued: Entry, decision: Requeue, label: str) -> None:
        """Let one that is in no place wait for an event, or move it."""
        if decision is Requeue.SKIP:
            self._park(queued, label)
        else:
            self._requeue(queued, decision, label)

    def _requeue(self, queued: Entry, decision: Requeue, label: str) -> None:
        """Move a new or refused one to activeQ or backoffQ, if the PreEnqueue plugins let it."""
        if decision is Requeue.SKIP:
            return
        before = queued.gating_member if isinstance(queued, QueuedGroup) else None
        refusal = self._gates.refusal(queued) if isinstance(queued, QueuedPod) else self._refusal(queued)
        gate = refusal.plugin if refusal is not None and refusal.gates else ""
        if gate and gate == queued.gating_plugin and queued.key in self._unschedulable:
            if isinstance(queued, QueuedGroup):
                self._unschedulable.gating_member_is(queued, before)
            return  # it stays where it is; hot, as each deletion asks about all pods that wait for their victims
        queued.gating_plugin = gate
        if refusal is not None:
            if isinstance(queued, QueuedPod):
                self._rejectors.blame(queued, refusal.plugin)
            self._park(queued, label)
            return
        self._unschedulable.remove(queued.key)
        if self.pending_for_quota.requests:
            self.pending_for_quota.leave(queued.key)
        if decision is Requeue.AFTER_BACKOFF and self._backoff.is_backing_off(queued):
            self._backoff.add(queued)
            self._count_incoming("backoff", label, queued)
            self._arrived.set()
        else:
            self._activate(queued, label)

    def _activate(self, queued: Entry, label: str) -> None:
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._now()
        if isinstance(queued, QueuedGroup):
            for each in queued.members:
                each.initial_attempt_timestamp = each.initial_attempt_timestamp or self._now()
        self._active.add(queued)
        self._fairness.entered(queued)
        self._count_incoming("active", label, queued)
        self._arrived.set()

    def _park(self, queued: Entry, label: str) -> None:
        """Have one wait that is refused: for quota if that is what it lacks."""
        if self._refused(queued.key) is None:
            self._count_incoming("unschedulable", label, queued)
        request = None if queued.gated else self._quota.lacking(queued)
        if request is None:
            self.pending_for_quota.remove(queued.key)
            self._unschedulable.add(queued)
        else:
            self._unschedulable.remove(queued.key)
            self.pending_for_quota.add(queued, request)

    def _count_incoming(self, queue: str, label: str, queued: Entry) -> None:
        if isinstance(queued, QueuedGroup):
            self._incoming_groups[queue, label] += 1
            self._count(queue, label, queued.size)
            return
        counter = self._incoming_by_label.get((queue, label))
        if counter is None:
            counter = self._incoming_by_label[queue, label] = self._incoming.labels(queue, label)
        counter.inc()

    def _count(self, queue: str, label: str, members: int) -> None:
        """Count members of a group that came into a part of the queue."""
        self._incoming_members[queue, label] += members
        if (queue, label) not in self._incoming_by_label:
            self._incoming_by_label[queue, label] = self._incoming.labels(queue, label)
        self._incoming_by_label[queue, label].inc(members)


def _all_pods(entries: Iterable[Entry]) -> tuple[QueuedPod, ...]:
    return tuple([each for entry in entries for each in pods_of(entry)])


def _count_attempt(group: QueuedGroup, code: Code, now: float, *, keeps_timestamp: bool) -> None:
    """Note how an attempt for a group has ended."""
    if code is Code.SUCCESS:
        group.unschedulable_count = group.consecutive_errors_count = 0
    elif code is Code.ERROR:
        group.consecutive_errors_count += 1
    else:
        group.unschedulable_count += 1
        group.consecutive_errors_count = 0
    if not keeps_timestamp:
        group.timestamp = now
    group.backoff_expiration = 0.0
    group.was_flushed, group.flushed_at = False, 0.0


def _sorts_as(a: QueueSortPlugin, b: QueueSortPlugin) -> bool:
    """Return whether both give a pod the same key. Keys of a plugin that is not in-tree may be of no use without it."""
    return is_of_tree(type(a)) and type(a) is type(b) and arguments_of(a) == arguments_of(b)
