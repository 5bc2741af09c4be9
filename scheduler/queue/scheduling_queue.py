"""The scheduling queue: the pod or group to try next, and its place after its attempt.

After `pop` a pod must be handed back (`add_unschedulable_if_not_present`) or be `done`, a group be handed back by
`group_tried`:

    group IN FLIGHT ──┬─ a member is refused, or fails ────────► comes back to the group, which files it in the end
                      └─ group_tried ─┬─ some got a node ──────► ACTIVE, with its old timestamp, if pods are left
                                      └─ refused, or an error ─► as a pod

Where entries wait meanwhile is in `places.py`, what the watch shows in `incoming.py`.

Rule: pkg/scheduler/backend/queue/scheduling_queue.go at v1.37.2 with its feature gates at the defaults.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Final

from scheduler.framework.arguments import arguments_of
from scheduler.framework.groups.pod_groups import entry_key
from scheduler.framework.plugin import QueueSortPlugin
from scheduler.framework.queued import EntityKey, Entry, QueuedGroup, QueuedPod, pods_of
from scheduler.framework.status import Code
from scheduler.queue.backoff_queue import seconds_to_next_window
from scheduler.queue.gates import Gates
from scheduler.queue.in_flight import may_help_any
from scheduler.queue.incoming import CONFIGURATION_CHANGED, Incoming
from scheduler.queue.requeueing import Requeue
from scheduler.queue.settings import QueueSettings
from scheduler.queue.sorting import sort_key_of
from scheduler.queue.unschedulable import asked_of
from scheduler.runtime.guards.plugin_faults import is_of_tree

_log = logging.getLogger(__name__)

LEFTOVER_INTERVAL: Final = 30.0
"""Seconds between two searches for such pods."""

UNSCHEDULABLE_TIMEOUT: Final = "UnschedulableTimeout"
FORCE_ACTIVATE: Final = "ForceActivate"
SCHEDULE_ATTEMPT_FAILURE: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"
POP_FROM_BACKOFF_Q: Final = "PopFromBackoffQ"
CHANGE_REPAIRED: Final = "ChangeRepaired"


class SchedulingQueue(Incoming):
    """kube-scheduler's PriorityQueue. The caller keeps pods away that are bound, assumed or not ours."""

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
            self.pending_for_quota.tried(queued.key)
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
        self._count_failure(queued)
        if queued.group is not None or self._groups.key_of(queued.pod) is not None:
            self._admit(queued, decision, SCHEDULE_ATTEMPT_FAILURE)
        elif decision is Requeue.SKIP:
            self._park(queued, SCHEDULE_ATTEMPT_FAILURE)
        else:
            self._requeue(queued, decision, SCHEDULE_ATTEMPT_FAILURE)

    def group_tried(self, group: QueuedGroup, code: Code, plugins: Collection[str] = ()) -> bool:
        """Take a popped group back, once its attempt is over: those of its pods that came back, and those that are new.

        `code`: of the attempt, SUCCESS if some got their node. `plugins`: those that refused the group as a whole.
        Return whether there are any.
        """
        if not self._entries.end(group):
            return False
        group.unschedulable_plugins = set(plugins)
        decision = self._decide_about_group(group, code)
        back = [each for each in self._entries.drop(group) if self._come_back(each)]
        arrived = self._entries.take_pending(group.group_key)
        if arrived and decision is Requeue.SKIP:
            decision = Requeue.AFTER_BACKOFF
        _count_attempt(group, code, self._now(), keeps_timestamp=code is Code.SUCCESS and bool(back))
        self._restore(group, (*back, *arrived), decision)
        return True

    def _restore(self, group: QueuedGroup, members: Sequence[QueuedPod], decision: Requeue) -> None:
        """Have a group wait again with these pods, except those that are not of it any more."""
        stay, leave = list[QueuedPod](), list[QueuedPod]()
        for each in members:
            (stay if entry_key(self._groups, each.pod) == group.group_key else leave).append(each)
        if stay and self._groups.tree_of(stay[0].pod) is None:
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
        if code is Code.ERROR or group.is_changed or self._quota.has_come_free(group):
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
                self._requeue(refused, Requeue.IMMEDIATELY, FORCE_ACTIVATE)
            elif (waiting := self._backoff.remove(key)) is not None:
                self._activate(waiting, FORCE_ACTIVATE)
            elif (flight := self.in_flight.get(uid)) is not None:
                flight.own_events.append(may_help_any(FORCE_ACTIVATE))

    def wake(self, key: EntityKey, label: str, *, at_once: bool = False) -> bool:
        """Bring a refused pod or group back as if an event called `label` helped it; return whether it has moved.

        `key`: UID of a pod, also of one in a group, or the key of a group. `at_once`: in spite of backoff.
        """
        key = self._key_of_entry(key)
        group = None if isinstance(key, str) else self._entries.get(key)
        if group is not None:
            group.is_changed = True
        refused = self._refused(key)
        if refused is not None:
            self._requeue(refused, Requeue.IMMEDIATELY if at_once else Requeue.AFTER_BACKOFF, label)
            return self._refused(key) is None
        if at_once and (waiting := self._backoff.remove(key)) is not None:
            self._activate(waiting, label)
            return True
        if isinstance(key, str):
            if (flight := self.in_flight.get(key)) is not None:
                flight.own_events.append(may_help_any(label))
            return flight is not None
        return group is not None and group.is_tried

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
            self._requeue(queued, Requeue.AFTER_BACKOFF, UNSCHEDULABLE_TIMEOUT)
            queued.was_flushed = not queued.gating_plugin
            for each in pods_of(queued):
                each.was_flushed = queued.was_flushed
        if leftovers:
            self.in_flight.record(may_help_any(UNSCHEDULABLE_TIMEOUT))

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
        self.in_flight.record(may_help_any(CHANGE_REPAIRED))

    def use(self, settings: QueueSettings, changed: Collection[str]) -> None:
        """Use other settings from now on; `changed`: the profiles whose settings differ.

        Pods that wait stay where they are: see `ask_again`.
        """
        before, self._settings = self._settings, settings
        same_order = _sorts_as(before.sort, settings.sort)
        self.sort_key = sort_key_of(settings.sort, self._faults)
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
        self.in_flight.record(may_help_any(CONFIGURATION_CHANGED))
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

    def close(self) -> None:
        """Wake all waiting callers; nothing is popped any more."""
        self._closed = True
        self.in_flight.clear()
        self._arrived.set()

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
