"""The places of the scheduling queue where entries wait, the ways between them, and their sizes.

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
    PENDING FOR ───┬─ space, reserved for it ─► PreEnqueue ────► ACTIVE
    QUOTA          ├─ evictions may help, activate ► PreEnqueue ► ACTIVE, or BACKOFF
                   └─ it asks for less, or of another quota ───► ACTIVE, or BACKOFF
    anywhere ──────── delete ──────────────────────────────────► gone

An entry that is pending for quota lacks space in it: no event of the cluster helps, and quota wakes it. One that has
space and lacks a node is unschedulable like any other. An entry is in one place at a time.

All pods of a group that have no node are one entry, which is tried as a whole. One gated member gates the group.

Rule: pkg/scheduler/backend/queue/scheduling_queue.go at v1.37.2 with its feature gates at the defaults.
"""

import asyncio
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from scheduler.framework.groups.pod_groups import NO_POD_GROUPS, PodGroups
from scheduler.framework.handle import PodNominator
from scheduler.framework.queued import EntityKey, Entry, QueuedGroup, QueuedPod, pods_of
from scheduler.process.instruments import Counter
from scheduler.process.metrics import Metrics
from scheduler.queue.backoff_queue import BackoffQueue
from scheduler.queue.entity_heap import EntityHeap
from scheduler.queue.fairness import Fairness
from scheduler.queue.gates import GateRefusal, Gates
from scheduler.queue.group_entries import GroupEntries
from scheduler.queue.held_pods import HeldPods
from scheduler.queue.in_flight import InFlightPods
from scheduler.queue.pending_for_quota import NO_QUOTA, PendingForQuota, Quota
from scheduler.queue.rejectors import RejectorCounts
from scheduler.queue.requeueing import Requeue, RequeueRules
from scheduler.queue.settings import QueueSettings
from scheduler.queue.sorting import SortKey, sort_key_of
from scheduler.queue.unschedulable import Unschedulable
from scheduler.runtime.guards.plugin_faults import PluginFaults


class Places:
    """The places, and the moves between them."""

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
        self.sort_key: SortKey = sort_key_of(settings.sort, self._faults)
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
        self.pending_for_quota.tried(key)
        queued = self._active.remove(key) or self._backoff.remove(key) or self._unschedulable.remove(key)
        return queued or self.pending_for_quota.remove(key) or self._held.remove(key)

    def _key_of_entry(self, key: EntityKey) -> EntityKey:
        member = self._members.get(key) if isinstance(key, str) else None
        return key if member is None or member.group is None else member.group.key

    def is_refused(self, key: EntityKey) -> bool:
        """Return whether a pod, its group, or a group waits for an event, or for its gate to open."""
        return self._refused(self._key_of_entry(key)) is not None

    def _place_of(self, group: QueuedGroup) -> str:
        if self._refused(group.key) is not None:
            return "gated" if group.gated else "unschedulable"
        return "backoff" if group.key in self._backoff else "active"

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

    def _keep_out(self, queued: Entry, refusal: GateRefusal, label: str) -> None:
        """Take one out of activeQ or backoffQ that a PreEnqueue plugin has refused."""
        self._take_out(queued.key)
        queued.gating_plugin = refusal.plugin if refusal.gates else ""
        self._park(queued, label)

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

    def oldest_ages(self) -> Iterator[tuple[tuple[str], float]]:
        """Yield (queue,) → seconds since its oldest pod came into the queue; 0 if it has none.

        Looks at every pod. Which one is the oldest changes with nearly every pop, so keeping track of it would cost
        more, on every pop and add, than one pass per scrape.
        """
        now = self._now()
        for name, pods in self.pending_pods().items():
            yield (name,), max(0.0, now - min([each.created for each in pods], default=now))

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


def _all_pods(entries: Iterable[Entry]) -> tuple[QueuedPod, ...]:
    return tuple([each for entry in entries for each in pods_of(entry)])
