"""Refused pods and groups, which wait for the cluster, or themselves, to change.

    rejection (which plugins refused) ──► key (what their hints look at) ──► those that get the same answer

An event is looked up once per rejection and its hints run once per kind: its cost does not grow with the pods. For a
group, they run for each member that a plugin refused, and for the group itself if it was refused as a whole: if an
event helps one of them, the group moves. For a gated group they run at events that may open its gate.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from scheduler.framework.queued import EntityKey, Entry, QueuedGroup, QueuedPod
from scheduler.queue.in_flight import ObservedEvent
from scheduler.queue.requeueing import Rejection, Requeue, RequeueRules

Kind: TypeAlias = dict[EntityKey, Entry]
"""Those that get the same answer at every event, in the order in which they came. Never empty."""


@dataclass(slots=True)
class Unschedulable:
    """Refused pods and groups; those gated by a PreEnqueue plugin are counted apart from those that found no node."""

    rules: RequeueRules
    gated: dict[EntityKey, None] = field(default_factory=dict)
    _entities: dict[EntityKey, Entry] = field(default_factory=dict)
    _refs: dict[EntityKey, tuple[Rejection, Hashable]] = field(default_factory=dict)
    """Key of each that is asked → where it is in `_kinds`."""
    _kinds: dict[Rejection, dict[Hashable, Kind]] = field(default_factory=dict)
    _asked_of: dict[EntityKey, dict[EntityKey, None]] = field(default_factory=dict)
    """Group → those that are asked about it."""

    def __len__(self) -> int:
        return len(self._entities)

    def __contains__(self, key: object) -> bool:
        return key in self._entities

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entities.values())

    def get(self, key: EntityKey) -> Entry | None:
        return self._entities.get(key)

    def helped_by(self, observed: ObservedEvent) -> list[tuple[Kind, Requeue]]:
        """Return those that an event may help, and what it means for them. Hints run for one of each kind."""
        is_timed = self.rules.start()
        helped: list[tuple[Kind, Requeue]] = []
        for rejection, kinds in self._kinds.items():
            hints = rejection.hints(observed.event)
            if not hints:
                continue
            for kind in kinds.values():
                for queued in kind.values():
                    decision = self.rules.answer(hints, queued.pod, observed, is_timed=is_timed)
                    if decision is not Requeue.SKIP:
                        helped.append((kind, decision))
                    break
        return helped

    def asks(self, queued: Entry) -> bool:
        """Return whether this one is asked whether an event helps."""
        return queued.key in self._refs

    def add(self, queued: Entry) -> None:
        """Store a pod or group. A stored one moves to its new kind: it, its gate or its rejectors have changed."""
        self.remove(queued.key)
        self._entities[queued.key] = queued
        if queued.gating_plugin:
            self.gated[queued.key] = None
        if isinstance(queued, QueuedGroup):
            self._asked_of[queued.key] = {}
            for each in asked_of(queued):
                self.ask(each, queued)
        else:
            self._file(queued)

    def ask(self, queued: Entry, group: QueuedGroup) -> None:
        """Ask a member of a stored group from now on, or the group itself; one that was asked has changed."""
        self._unfile(queued.key)
        self._asked_of[group.key][queued.key] = None
        self._file(queued)

    def member_changed(self, member: QueuedPod, group: QueuedGroup) -> None:
        """A member of a stored group has another version."""
        for each in (member, group):  # the group is asked by its first pod
            if each.key in self._refs:
                self.ask(each, group)

    def gating_member_is(self, group: QueuedGroup, before: QueuedPod | None) -> None:
        """A stored group is gated as it was `before`, perhaps because of another member: that one is asked, too."""
        gating = group.gating_member
        if gating is not None and (gating is not before or not self.asks(gating)):
            self.ask(gating, group)

    def member_left(self, uid: str, group: QueuedGroup) -> None:
        """A stored group has lost a member."""
        if self._asked_of[group.key].pop(uid, "") is None:
            self._unfile(uid)
        if not self._asked_of[group.key] and len(group):
            self.add(group)
        elif group.key in self._refs:  # its first pod may be another one now
            self.ask(group, group)

    def remove(self, key: EntityKey) -> Entry | None:
        queued = self._entities.pop(key, None)
        if queued is None:
            return None
        self.gated.pop(key, None)
        if isinstance(queued, QueuedGroup):
            for each in self._asked_of.pop(key):
                self._unfile(each)
        else:
            self._unfile(key)
        return queued

    def clear(self) -> None:
        """Forget all entries."""
        for each in (self.gated, self._entities, self._refs, self._kinds, self._asked_of):
            each.clear()

    def _file(self, queued: Entry) -> None:
        rejection = self.rules.rejection_of(queued)
        key = rejection.key_of(queued.pod)
        self._refs[queued.key] = rejection, key
        self._kinds.setdefault(rejection, {}).setdefault(key, {})[queued.key] = queued

    def _unfile(self, key: EntityKey) -> None:
        ref = self._refs.pop(key, None)
        if ref is None:
            return
        rejection, of_kind = ref
        kinds = self._kinds[rejection]
        del kinds[of_kind][key]
        if not kinds[of_kind]:
            del kinds[of_kind]
            if not kinds:
                del self._kinds[rejection]

    def check_invariants(self) -> None:
        """All that are asked are where their next event looks for them, and a plugin refused them."""
        filed = {key: each for kinds in self._kinds.values() for kind in kinds.values() for key, each in kind.items()}
        asked = [each for queued in self for each in asked_of(queued)]
        assert all(kinds and all(kinds.values()) for kinds in self._kinds.values()), "an empty kind"
        assert filed.keys() == self._refs.keys()
        assert {each.key for each in asked} <= filed.keys()
        assert self.gated.keys() == {queued.key for queued in self if queued.gated}
        for each in asked:
            rejection = self.rules.rejection_of(each)
            assert each.unschedulable_plugins or each.pending_plugins or isinstance(each, QueuedGroup)
            assert self._kinds[rejection][rejection.key_of(each.pod)][each.key] is each


def asked_of(queued: Entry) -> Sequence[Entry]:
    """Return those that are asked whether an event helps a pod or group: of a group itself, any event does."""
    if not isinstance(queued, QueuedGroup):
        return (queued,)
    own = (queued,) if queued.unschedulable_plugins or queued.pending_plugins else ()
    asked = (*own, *(each for each in queued.members if each.unschedulable_plugins or each.pending_plugins))
    return asked or (queued,)
