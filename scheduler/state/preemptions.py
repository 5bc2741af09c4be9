"""The preemptions under way: the preemptors and their victims.

    begin ─► VICTIMS LEAVE ─the last is gone─► DUE: tried once ─► placed, or refused ─► (ended)
                   └─ placed, gone, another nomination, or evictions failed ──────────► (ended)

While a preemption lives, its preemptor begins no other one. If it *keeps* what it frees, no other pod gets that,
whatever its priority: the nominations of its pods count against all. If the preemptor does not fit although its victims
are gone, what was kept is free for all again.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from scheduler.api.pods.pod import Pod
from scheduler.framework.groups.pod_groups import GroupKey
from scheduler.framework.handle import PodActivator
from scheduler.framework.preemption import preemptions
from scheduler.framework.queued import EntityKey
from scheduler.state.nominator import Nominator


@dataclass(slots=True, eq=False)
class Preemption:
    """Implements framework.preemptions.Preemption."""

    key: EntityKey
    pods: Sequence[Pod]
    """The pod, or those of the group that had no node."""

    victims: set[str]
    """The UIDs of those that still have their node."""

    others: set[str]
    """The UIDs of victims of other preemptions that still have their node, and that counted as gone when these were
    chosen. Without them it may not fit."""

    keeps: bool
    beginning: set[str]
    """The UIDs of its pods whose attempt has not ended that began it."""

    due_since: float = inf
    """When the last of all these was gone."""

    kept_on: dict[str, str] = field(default_factory=dict)
    """UID of each of its pods → the node that was kept for it until this ended."""

    @property
    def is_due(self) -> bool:
        return not (self.victims or self.others)


class Preemptions(preemptions.Preemptions):
    """Those of one engine."""

    def __init__(
        self, pods: Mapping[str, Pod], nominator: Nominator, activator: PodActivator, now: Callable[[], float]
    ) -> None:
        """`pods`: UID → newest version of every pod that the watch has shown. `now`: the queue's clock."""
        self._pods = pods
        self._nominator = nominator
        self._activator = activator
        self._now = now
        self._live: dict[EntityKey, Preemption] = {}
        self._of_pod: dict[str, Preemption] = {}
        """UID of each of their pods → those that keep what they free."""
        self._of_victim: dict[str, dict[EntityKey, Preemption]] = {}
        """UID of a victim → the preemptions that wait for it."""
        self._leaving: set[str] = set()
        """The UIDs of all victims that still have their node, also of preemptions that have ended."""
        self._ended: list[Callable[[Preemption], None]] = []

    def subscribe(self, ended: Callable[[Preemption], None]) -> None:
        """Call `ended` for each preemption that ends without its preemptor having started."""
        self._ended.append(ended)

    def begin(self, key: EntityKey, pods: Sequence[Pod], victims: Sequence[Pod], *, keeps: bool) -> None:
        self._forget(key)
        own = {each.uid for each in victims}
        others = self._leaving - own if keeps else set()
        self._leaving |= own
        beginning = {pod.uid for pod in pods}
        preemption = self._live[key] = Preemption(key, tuple(pods), own, others, keeps, beginning)
        for each in own | others:
            self._of_victim.setdefault(each, {})[key] = preemption
        if keeps:
            self._of_pod.update(dict.fromkeys([pod.uid for pod in pods], preemption))
            self._nominator.keep(pod.uid for pod in pods)
        else:
            self._nominator.renew(pod.uid for pod in pods)

    def withdraw(self, key: EntityKey, *, victims_stay: bool = False) -> None:
        preemption = self._forget(key)
        if preemption is None:
            return
        for victim in preemption.victims if victims_stay else ():
            if not any(victim in each.victims for each in self._of_victim.get(victim, {}).values()):
                self._lost_its_node(victim)  # those who count on it are tried without
        if preemption.keeps:
            for each in self._ended:
                each(preemption)

    def made_again(self, key: GroupKey) -> None:
        """The object of a group was made again: its preemption goes on if it is for pods that stay."""
        preemption = self._live.get(key)
        newest = () if preemption is None else (self._pods.get(pod.uid) for pod in preemption.pods)
        if all(pod is None or pod.is_deleting for pod in newest):
            self.withdraw(key)

    def of(self, key: EntityKey) -> Preemption | None:
        found = self._of_any(key)
        return found if found is not None and found.keeps else None

    def kept(self) -> Iterator[Preemption]:
        """Yield those that keep what they free, the first that began first."""
        return (each for each in self._live.values() if each.keeps)

    def leaving(self) -> Collection[str]:
        return self._leaving

    def has_left(self, uid: str) -> bool:
        return uid not in self._leaving

    # What happens to pods.

    def gone(self, uid: str) -> None:
        """A pod is gone: a victim, or a preemptor."""
        self._lost_its_node(uid)
        preemption = self._of_any(uid)
        if preemption is not None and not any(pod.uid in self._pods for pod in preemption.pods):
            self.withdraw(preemption.key)

    def placed(self, uid: str) -> None:
        """A pod got its node: its preemption has served its purpose. Of a group all are placed in the same step."""
        preemption = self._of_any(uid)
        if preemption is not None:
            self._forget(preemption.key)

    def failed(self, uid: str, began: float) -> None:
        """An attempt for a pod has failed that began at this time; whether it is nominated still, is known."""
        self._lost_its_node(uid)  # a victim whose binding was cancelled
        preemption = self._of_pod.get(uid)
        if preemption is None:
            return
        if uid in preemption.beginning:
            preemption.beginning.remove(uid)
            return
        was_tried = preemption.is_due and began >= preemption.due_since
        if was_tried or not self._is_nominated(preemption):
            self.withdraw(preemption.key)

    def end_stale(self, uid: str) -> None:
        """End the preemption of a pod if no pod of it is nominated: in a replay, which knows nominations alone."""
        preemption = self._of_pod.get(uid)
        if preemption is not None and not self._is_nominated(preemption):
            self._forget(preemption.key)

    def check_invariants(self) -> None:
        """All tables name the same preemptions, and space is kept for these only. For tests and debugging."""
        kept = {pod.uid: each for each in self._live.values() if each.keeps for pod in each.pods}
        assert kept == self._of_pod
        assert set(kept) == set(self._nominator.kept)
        victims = [(victim, key) for victim, of in self._of_victim.items() for key in of]
        awaited = [(victim, each.key) for each in self._live.values() for victim in each.victims | each.others]
        assert Counter(victims) == Counter(awaited)
        assert self._leaving >= self._of_victim.keys()

    # Internals.

    def _lost_its_node(self, uid: str) -> None:
        self._leaving.discard(uid)
        highest = -inf
        for preemption in self._of_victim.pop(uid, {}).values():  # the first that began first
            if preemption.keeps and preemption.pods[0].priority >= highest:
                self._nominator.gain([pod.uid for pod in preemption.pods])
            highest = max(highest, preemption.pods[0].priority)
            preemption.victims.discard(uid)
            preemption.others.discard(uid)
            if preemption.is_due:
                preemption.due_since = self._now()
            if preemption.is_due and not preemption.keeps:
                self._forget(preemption.key)
            # No plugin that refused a group while they were leaving may find that their end helps.
            if not preemption.victims and (preemption.keeps or isinstance(preemption.key, GroupKey)):
                self._activator.activate([pod.uid for pod in preemption.pods])

    def _is_nominated(self, preemption: Preemption) -> bool:
        return any(self._nominator.node_of(pod.uid) for pod in preemption.pods)

    def _of_any(self, key: EntityKey) -> Preemption | None:
        """Return the preemption of a pod, its group, or a group."""
        return (self._of_pod.get(key) if isinstance(key, str) else None) or self._live.get(key)

    def _forget(self, key: EntityKey) -> Preemption | None:
        preemption = self._live.pop(key, None)
        if preemption is None:
            return None
        for victim in preemption.victims | preemption.others:
            del self._of_victim[victim][key]
            if not self._of_victim[victim]:
                del self._of_victim[victim]
        if preemption.keeps:
            uids = [pod.uid for pod in preemption.pods]
            for each in uids:
                del self._of_pod[each]
                preemption.kept_on[each] = self._nominator.kept_on(each)
            self._nominator.release(uids)
        return preemption
