"""Reservations of pods: made here, and released here. `reservations.py` says what they are.

A pod has one: the one with which it was woken, alone or for its group, or else that of its nomination. Each question
about quota first compares the nominations with those known before.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from scheduler.api.pods.pod import Pod
from scheduler.quota.adapter import Asked
from scheduler.quota.needs import Need
from scheduler.quota.share_refs import Root, ShareRef
from scheduler.state.nominator import Nominator

if TYPE_CHECKING:  # loaded once there are shares
    from scheduler.quota.ledger import Ledger


class Reserving:
    """The reservation of each pod."""

    def __init__(
        self,
        nominator: Nominator,
        counted: Collection[str],
        question: Callable[[Pod], tuple[ShareRef, Need] | None],
    ) -> None:
        """`counted`: the UIDs of pods that are usage already. `question`: what a pod asks for by itself; None without
        a share."""
        self._nominator = nominator
        self._counted = counted
        self._question = question
        self._woken: dict[str, Ledger] = {}
        """By the UIDs of pods."""
        self._nominated: dict[str, Ledger] = {}
        """By the UIDs of pods."""
        self._on_node: dict[str, set[str]] = {}
        """The same UIDs by the nodes to which the pods were nominated; some may have no reservation any more."""
        self._seen = 0
        """The position in the nominator's changes up to which nominations were compared."""
        self._freed = set[Root]()
        self._again = set[str]()
        """The UIDs of pods whose nominations are to be compared in any case."""
        self._is_fair = False
        self.changes = 0
        """Another number after each change."""

    def wake(self, ref: ShareRef, need: Need, *, by_share: bool) -> None:
        """Reserve the needs of a woken pod or group; space that is kept for it is reserved already."""
        self.compare()
        if any(uid in self._nominated and uid in self._nominator.kept for uid in need.uids):
            return
        for uid in need.uids:
            self.release(uid)
            self._drop(uid)
        self._make(ref, need, by_share=by_share, woken=self._nominator.kept_so_far + 1)
        self._woken.update(dict.fromkeys(need.uids, ref.ledger))

    def woken(self) -> Collection[str]:
        """The UIDs of pods that were woken, or whose group was, and that were not tried since."""
        return self._woken.keys()

    def is_woken(self, uid: str) -> bool:
        """Say whether a pod, or its group, was woken and not tried since."""
        return uid in self._woken

    def kept(self, uids: Iterable[str]) -> int:
        """Return the number of the preemption that keeps what it frees for these pods, nominated still or not; or 0."""
        kept = self._nominator.kept
        return min((kept[uid] for uid in uids if uid in kept), default=0) if kept else 0

    def is_live(self, uid: str) -> bool:
        """Say whether something may be reserved for a pod. For tests and debugging."""
        return uid in self._woken or uid in self._nominated

    def is_for(self, uid: str, ref: ShareRef | None, need: Need) -> bool:
        """Say whether a pod, or its group, was woken for a need."""
        reservation = None if ref is None else ref.ledger.reservations.of(uid)
        return (
            ref is not None
            and reservation is not None
            and reservation.rank.share == ref.name
            and reservation.need._replace(pod=need.pod, uids=need.uids) == need
        )

    def release(self, uid: str) -> None:
        """Release what a pod, or its group, was woken with, if it was."""
        root = self._release(uid)
        if root is not None:
            self._freed.add(root)

    def _release(self, uid: str) -> Root | None:
        ledger = self._woken.get(uid)
        if ledger is None:
            return None
        released = ledger.reservations.release(ledger.tree, uid)
        assert released is not None
        for each in released.uids:
            del self._woken[each]
        self._again.update(released.uids)
        self.changes += 1
        return Root(ledger, ledger.root_of(released.rank.share))

    def placed(self, uid: str, ref: ShareRef | None, amounts: Mapping[str, int]) -> None:
        """A pod counts now as usage: what was reserved for it is free if it has not used it."""
        self._drop(uid)
        ledger = self._woken.get(uid)
        reservation = None if ledger is None else ledger.reservations.of(uid)
        if ledger is None or reservation is None:
            return
        used: Mapping[str, int] = {}
        if ref is not None and (ref.ledger, ref.name) == (ledger, reservation.rank.share):
            used = ledger.amounts(ref.said, amounts, 1)
        ledger.reservations.use(ledger.tree, uid, used)
        self.changes += 1
        is_left = any(reservation.amounts.values())
        if not is_left:
            self._release(uid)
        elif len(reservation.uids) == 1:  # else the rest is for the others of its group
            self.release(uid)

    def counts(self, uid: str, *, is_usage: bool) -> None:
        """A pod counts as usage for a moment, or does so no longer."""
        if is_usage:
            self._drop(uid)
        elif self._nominator.nodes:
            self._again.add(uid)

    def compare(self) -> None:
        """Take over nominations that have begun, ended or changed."""
        changes = self._nominator.changes
        if self._seen == changes.position and not self._again:
            return
        nodes, self._seen = changes.since(self._seen), changes.position
        if nodes is None:
            nodes = [*self._on_node, *self._nominator.nodes]
        uids, self._again = self._again, set()
        for node in set(nodes):
            uids |= self._on_node.pop(node, set()) | {pod.uid for pod in self._nominator.nominated_pods(node)}
        for uid in uids:
            before = self._drop(uid)
            pods = self._nominator.nominated_pods(self._nominator.node_of(uid))
            pod = next((each for each in pods if each.uid == uid), None)
            if pod is not None and uid not in self._woken and uid not in self._counted:
                self._nominate(pod)
            elif before is not None and uid not in self._woken and uid not in self._counted:
                self._freed.add(before)

    def take_freed(self) -> set[Root]:
        """Return where reservations were released, or nominations ended, since this was asked last."""
        self.compare()
        freed, self._freed = self._freed, set()
        return freed

    def again(self) -> None:
        """Reserve again what nominated pods ask for: they may have other shares, or ask for something else."""
        self._again.update(self._nominated)

    def clear(self, *, is_fair: bool) -> None:
        """Forget all: there are other trees. `is_fair`: whether nominated pods, too, go ahead of those of others."""
        self._is_fair = is_fair
        self._again.update(self._nominated)
        self._woken.clear()
        self._nominated.clear()
        self.changes += 1

    def _nominate(self, pod: Pod) -> None:
        found = self._question(pod)
        if found is not None:
            ref, need = found
            self._make(ref, need, by_share=self._is_fair, kept=self._nominator.kept.get(pod.uid, 0))
            self._nominated[pod.uid] = ref.ledger
            self._on_node.setdefault(self._nominator.node_of(pod.uid), set()).add(pod.uid)

    def _make(self, ref: ShareRef, need: Need, *, by_share: bool, kept: int = 0, woken: int = 0) -> None:
        from scheduler.quota.reservations import Reservation

        ledger, asked = ref.ledger, Asked(need, ref.said)
        rank = ledger.rank_of(ref.name, asked)._replace(by_share=by_share, kept=kept, woken=woken)
        amounts = ledger.wanted(ref.name, asked)
        ledger.reservations.make(ledger.tree, Reservation(rank, need, dict(amounts)))
        self.changes += 1

    def _drop(self, uid: str) -> Root | None:
        """Release the reservation of a nominated pod; return the root of its tree, None without one."""
        ledger = self._nominated.pop(uid, None)
        reservation = None if ledger is None else ledger.reservations.release(ledger.tree, uid)
        if ledger is None or reservation is None:
            return None
        self.changes += 1
        return Root(ledger, ledger.root_of(reservation.rank.share))
