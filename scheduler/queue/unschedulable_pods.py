"""Refused pods, which wait for the cluster, or themselves, to change.

    rejection (which plugins refused) ──► key (what their hints look at) ──► group of pods

An event is looked up once per rejection and its hints run once per group: its cost does not grow with the pods.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from scheduler.framework.queued import QueuedPod
from scheduler.queue.in_flight import ObservedEvent
from scheduler.queue.requeueing import Rejection, Requeue, RequeueRules

Group: TypeAlias = dict[str, QueuedPod]
"""Pods by UID that get the same answer at every event, in the order in which they came. Never empty."""


@dataclass(slots=True)
class _GroupRef:
    rejection: Rejection
    key: Hashable
    is_gated: bool


@dataclass(slots=True)
class UnschedulablePods:
    """Refused pods; those gated by a PreEnqueue plugin are counted separately from those that found no node."""

    rules: RequeueRules
    gated_count: int = 0
    _pods: dict[str, QueuedPod] = field(default_factory=dict)
    _refs: dict[str, _GroupRef] = field(default_factory=dict)
    _groups: dict[Rejection, dict[Hashable, Group]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def get(self, uid: str) -> QueuedPod | None:
        return self._pods.get(uid)

    def helped_by(self, observed: ObservedEvent) -> list[tuple[Group, Requeue]]:
        """Return the pods that an event may help, and what it means for them. Hints run for one pod of each group."""
        is_timed = self.rules.start()
        helped: list[tuple[Group, Requeue]] = []
        for rejection, groups in self._groups.items():
            hints = rejection.hints(observed.event)
            if not hints:
                continue
            for group in groups.values():
                for queued in group.values():
                    decision = self.rules.answer(hints, queued.pod, observed, is_timed=is_timed)
                    if decision is not Requeue.SKIP:
                        helped.append((group, decision))
                    break
        return helped

    def add(self, queued: QueuedPod) -> None:
        """Store a pod. A stored one moves to its new group: it, its gate or its rejectors have changed."""
        uid = queued.pod.uid
        self.remove(uid)
        rejection = self.rules.rejection_of(queued)
        ref = _GroupRef(rejection, rejection.key_of(queued.pod), queued.gated)
        self._pods[uid] = queued
        self._refs[uid] = ref
        self._groups.setdefault(rejection, {}).setdefault(ref.key, {})[uid] = queued
        self.gated_count += ref.is_gated

    def remove(self, uid: str) -> QueuedPod | None:
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        ref = self._refs.pop(uid)
        self.gated_count -= ref.is_gated
        groups = self._groups[ref.rejection]
        group = groups[ref.key]
        del group[uid]
        if not group:
            del groups[ref.key]
            if not groups:
                del self._groups[ref.rejection]
        return queued

    def clear(self) -> None:
        """Forget all pods."""
        self.gated_count = 0
        for each in (self._pods, self._refs, self._groups):
            each.clear()

    def check_invariants(self) -> None:
        """Every pod is in the group where its next event looks for it, and a plugin refused it."""
        grouped = [queued for groups in self._groups.values() for group in groups.values() for queued in group.values()]
        assert len(grouped) == len(self._pods) == len(self._refs)
        assert all(groups and all(groups.values()) for groups in self._groups.values()), "an empty group"
        assert self.gated_count == sum(queued.gated for queued in self)
        for uid, queued in self._pods.items():
            rejection = self.rules.rejection_of(queued)
            assert queued.pod.uid == uid
            assert queued.unschedulable_plugins or queued.pending_plugins
            assert self._groups[rejection][rejection.key_of(queued.pod)][uid] is queued
