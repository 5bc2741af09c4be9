"""Pods that come, change and go, the groups that they join or leave, and events that help those that wait.

    pod of a group ───┬─ the group's object is missing ────────► INCOMPLETE ── it comes ──► joins the entry
                      ├─ the group is IN FLIGHT ───────────────► PENDING ── group_tried ──► joins the entry
                      └─ otherwise ────────────────────────────► joins the entry, or is the first of a new one

A pod that comes brings a refused group back. So does one that changes, if a plugin that refused it finds that this may
help. A waiting group is known by its key.

An event that helps one member moves its group. Members are asked by kinds, so an event costs as much as there are kinds
of them.
"""

from collections.abc import Callable, Iterable
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.framework.events import ASSIGNED_POD_DELETE, TARGET_POD_UPDATE, UNSCHEDULED_POD_ADD, ClusterEvent
from scheduler.framework.groups.pod_groups import GroupKey, entry_key
from scheduler.framework.queued import EntityKey, Entry, QueuedGroup, QueuedPod, pods_of
from scheduler.queue.in_flight import ObservedEvent
from scheduler.queue.places import Places
from scheduler.queue.requeueing import Requeue
from scheduler.runtime.changes import pod_changes

CONFIGURATION_CHANGED: Final = "ConfigurationChanged"
MEMBER_GONE: Final = "PodGroupMemberDelete"


class Incoming(Places):
    """Stores the pods that the watch shows, and moves the refused ones that an event may help."""

    def add(self, pod: Pod) -> None:
        """Add a pod, or update it if it is known already."""
        if not self._refresh(None, pod):
            self._take_in(pod)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Store a new version; a refused pod moves if a plugin that refused it finds that the change may help.

        Without `old` the change is measured from the version that the queue has. An unknown pod is added.
        """
        if not self._refresh(old, new):
            self._take_in(new)

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

    def _take_in(self, pod: Pod) -> None:
        self._nominator.add(pod)
        queued = QueuedPod(pod, self._now())
        if self._groups.key_of(pod) is None:
            self._requeue(queued, Requeue.IMMEDIATELY, UNSCHEDULED_POD_ADD.label)
        else:
            self._admit(queued, Requeue.IMMEDIATELY, UNSCHEDULED_POD_ADD.label)

    def _admit(self, queued: QueuedPod, decision: Requeue, label: str) -> None:
        """Let a pod wait that is in no place: by itself, in the entry of its group, or apart from it."""
        key, queued.group = entry_key(self._groups, queued.pod), None
        if key is None:
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
        """Make an entry for a group, with the history of its first pod, if its object is there.

        Nothing is kept for a pod as long as it is not.
        """
        tree = self._groups.tree_of(queued.pod)
        if tree is None:
            self._end_nomination(queued.pod)
            self._entries.put(self._entries.incomplete, key, queued)
            self._ask(queued)
            return
        group = QueuedGroup(queued.pod, queued.timestamp, queued.attempts, group_key=key)
        group.group_priority = None if tree.group.is_ours else tree.group.priority
        group.initial_attempt_timestamp = queued.initial_attempt_timestamp
        group.unschedulable_count = queued.unschedulable_count
        group.consecutive_errors_count = queued.consecutive_errors_count
        self._entries.add(group, (queued,))
        self._move(group, decision, label)

    def _joined(self, group: QueuedGroup, member: QueuedPod, decision: Requeue, label: str) -> None:
        """Have a waiting group go on with a further pod: it is tried if the pod was not refused before."""
        if self._refused(group.key) is not None:
            if decision is not Requeue.SKIP:
                self._ask(member)
                self._requeue(group, Requeue.AFTER_BACKOFF, label)
            else:
                self.ask_quota_again(group.key, label)
            if self._refused(group.key) is not None:
                if group.key in self._unschedulable and (member.unschedulable_plugins or member.pending_plugins):
                    self._unschedulable.ask(member, group)
                self._count("unschedulable", label, 1)
        elif (refusal := self._ask(member)) is not None:
            self._keep_out(group, refusal, label)
        else:
            member.initial_attempt_timestamp = member.initial_attempt_timestamp or group.initial_attempt_timestamp
            if member.consecutive_errors_count > group.consecutive_errors_count:
                self._pause(group, member)
            self._count(self._place_of(group), label, 1)

    def _pause(self, group: QueuedGroup, member: QueuedPod) -> None:
        """Have a group wait for the backoff of a member whose binding failed, or it would be tried all the time."""
        group.consecutive_errors_count = member.consecutive_errors_count
        group.backoff_expiration = self._backoff.expiration(member)
        if group.key in self._active and self._backoff.is_backing_off(group):
            self._active.remove(group.key)
            self._backoff.add(group)

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

    def _replace(self, queued: Entry, new: Pod) -> None:
        if new.uid not in self._entries.incomplete:
            self._nominator.update(queued.pod, new)
        self._rejectors.remove(queued)
        queued.pod = new
        self._rejectors.add(queued)

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

    def nomination_ended(self, pod: Pod) -> None:
        """Move the pods of the same or lower priority that yielded to `pod`, on its node or the one in its status."""
        self.move_all(ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= pod.priority)

    def _end_nomination(self, pod: Pod) -> None:
        node_name = self._nominator.node_of(pod.uid)
        if self._nominator.delete(pod.uid):
            self.nomination_ended(pod.bound_to(node_name))

    def group_moved(self, pods: Iterable[Pod]) -> None:
        """Pods may be of another tree of groups than before, or of none."""
        for pod in pods:
            if (member := self._members.get(pod.uid)) is not None:
                self._regroup(member)

    def group_changed(self, key: GroupKey) -> None:
        """The object of a group has come or gone, or has another priority."""
        for queued in self._entries.incomplete.of(key):
            self._move_member(queued, UNSCHEDULED_POD_ADD.label)
        group = self._entries.get(key)
        if group is None or group.is_tried:
            return
        tree = self._groups.tree_of(group.pod)
        if tree is None:
            self._take_out(key)
            for queued in self._entries.drop(group):
                self._admit(queued, Requeue.IMMEDIATELY, TARGET_POD_UPDATE.label)
        elif group.group_priority not in (None, tree.group.priority):
            group.group_priority = tree.group.priority
            for heap in (self._active, self._backoff):
                if key in heap:
                    heap.rekey(key)

    def regroup(self) -> None:
        """Other pods have groups now: let each wait as a pod or as a member."""
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
        if entry_key(self._groups, member.pod) == self._entries.key_of(member):
            return False
        self._move_member(member, TARGET_POD_UPDATE.label)
        return True

    def _move_member(self, member: QueuedPod, label: str) -> None:
        """Have a waiting member of a group wait elsewhere; an incomplete one may be nominated again."""
        was_incomplete = member.pod.uid in self._entries.incomplete
        self._leave(member.pod.uid)
        if was_incomplete:
            member.gating_plugin = ""
            self._nominator.add(member.pod)
        self._admit(member, Requeue.IMMEDIATELY, label)

    def done(self, uid: str) -> None:
        """Forget a popped pod that will not come back: it is bound, or not to be scheduled. Repeating it is harmless.

        A failed binding brings the pod back too. Until its outcome is known, the pod is best left in flight: here its
        updates and its deletion are remembered.
        """
        flight = self.in_flight.finish(uid)
        if flight is not None and flight.deleted:
            # It may have been nominated after it was deleted.
            self._nominator.delete(uid)
