"""Quota reserved for pods that have no node yet: it counts in the tree of quotas like the usage of pods that have one.

    there is space for a pending pod ─► WOKEN ──────┬─ placed: it is usage now
    victims go, or a node is nominated ─► NOMINATED ┴─ refused, gone, changed, or the nomination ended: free again

A request does not see what is reserved for itself, nor for those that it goes ahead of. Within one quota the more
important go first. Between quotas, requests within their quota's guarantee go first, or a borrower would get back at
once what it has had to give; then the more important. Quota that victims have freed for a pod is for no other.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from scheduler.api.pods.importance import created
from scheduler.api.pods.pod import Pod
from scheduler.quota.needs import Need
from scheduler.quota.tree import ShareTree


class Rank(NamedTuple):
    """The facts that decide which requests see a reservation."""

    share: str
    priority: int
    borrows: bool
    """Whether its share used more with it than it is guaranteed when it was made."""

    by_share: bool = False
    """Whether it goes ahead of all pods of other shares, except those that are guaranteed what it would borrow."""

    kept: int = 0
    """The number of the preemption by which it is freed: it is given to no other, except to those of earlier ones."""

    woken: int = 0
    """If it was woken, the number of the preemption that begins next: it goes ahead of those that are still pending."""

    def goes_ahead_of(self, other: "Rank") -> bool:
        """Say whether a request of this rank sees it: of equal ones the reservation was first."""
        if self.kept:
            return not 0 < other.kept < self.kept
        if self.share == other.share:
            return self.priority >= other.priority  # which of them borrows depends on who goes first
        if self.by_share and self.borrows <= other.borrows:
            return True
        return (self.borrows, -self.priority) <= (other.borrows, -other.priority)


GoesAhead: TypeAlias = Callable[[ShareTree, Rank, Rank], bool]
"""A rule by which a reservation goes ahead of a request."""


@dataclass(slots=True, eq=False)
class Reservation:
    """Amounts of one share, for one pod or for those that a group still needs."""

    rank: Rank
    need: Need
    amounts: dict[str, int]

    @property
    def pod(self) -> Pod:
        return self.need.pod

    @property
    def uids(self) -> Collection[str]:
        return self.need.uids

    @property
    def age(self) -> tuple[int, str]:
        return created(self.pod), self.pod.uid


class Reservations:
    """All reservations of one tree."""

    def __init__(self) -> None:
        self._of_pod: dict[str, Reservation] = {}
        """By UID; those of a group have the same."""
        self.by_rank: dict[Rank, dict[str, Reservation]] = {}
        """By the UID of their first pod; mostly empty, so that there is no need to ask."""
        self._totals: dict[Rank, Counter[str]] = {}

    def of(self, uid: str) -> Reservation | None:
        """Return the reservation of a pod, or of its group."""
        return self._of_pod.get(uid)

    def woken(self) -> Iterator[Reservation]:
        """Yield those with which pods were woken."""
        return (each for rank, found in self.by_rank.items() if rank.woken for each in found.values())

    def woken_behind(self, share: str, priority: int) -> list[Reservation]:
        """Return those with which less important pods of a share were woken."""
        ranks = [each for each in self.by_rank if each.woken and each.share == share and each.priority < priority]
        return [each for rank in ranks for each in self.by_rank[rank].values()]

    def make(self, tree: ShareTree, reservation: Reservation) -> None:
        """Count a reservation; its pods have no other."""
        rank = reservation.rank
        self.by_rank.setdefault(rank, {})[reservation.pod.uid] = reservation
        self._totals.setdefault(rank, Counter()).update(reservation.amounts)
        self._of_pod.update(dict.fromkeys(reservation.uids, reservation))
        _reserve(tree, rank.share, reservation.amounts, 1)

    def release(self, tree: ShareTree, uid: str) -> Reservation | None:
        """Count the reservation of a pod, or of its group, no longer."""
        reservation = self._of_pod.get(uid)
        if reservation is None:
            return None
        rank = reservation.rank
        for each in reservation.uids:
            del self._of_pod[each]
        del self.by_rank[rank][reservation.pod.uid]
        self._totals[rank].subtract(reservation.amounts)
        if not self.by_rank[rank]:
            del self.by_rank[rank], self._totals[rank]
        _reserve(tree, rank.share, reservation.amounts, -1)
        return reservation

    def use(self, tree: ShareTree, uid: str, used: Mapping[str, int]) -> None:
        """Count no longer what a pod of a group uses now; the rest stays for the others."""
        reservation = self._of_pod[uid]
        less = {each: min(amount, used.get(each, 0)) for each, amount in reservation.amounts.items()}
        for each, amount in less.items():
            reservation.amounts[each] -= amount
        self._totals[reservation.rank].subtract(less)
        _reserve(tree, reservation.rank.share, less, -1)

    def count_in(self, tree: ShareTree, sign: int = 1) -> None:
        """Count all in another tree of the same shares, or count none: 1 or -1."""
        for rank, amounts in self._totals.items():
            _reserve(tree, rank.share, amounts, sign)

    @contextmanager
    def seen_by(
        self, tree: ShareTree, need: Need, rank_of: Callable[[], Rank], goes_ahead: GoesAhead
    ) -> Iterator[None]:
        """Leave in the tree, within a `with` block, what a request sees.

        `rank_of` looks at the tree without what its pod goes ahead of if it does not borrow.
        """
        if not self.by_rank:
            yield
            return
        own = {self._of_pod[uid].pod.uid: self._of_pod[uid] for uid in need.uids if uid in self._of_pod}
        aside = [(each.rank.share, each.amounts) for each in own.values()]
        for share, amounts in aside:
            _reserve(tree, share, amounts, -1)
        mine = next((each for each in own.values()), None)
        hopeful = rank_of()._replace(borrows=False) if mine is None else mine.rank
        behind = [rank for rank in self.by_rank if not goes_ahead(tree, rank, hopeful)]
        left = {rank: self._without(rank, own) for rank in behind}
        for rank in behind:
            _reserve(tree, rank.share, left[rank], -1)
        request = rank_of() if mine is None else hopeful
        for rank in [each for each in behind if goes_ahead(tree, each, request)]:
            _reserve(tree, rank.share, left.pop(rank), 1)
        if mine is not None:
            # Of two of a share that are as important the older goes first: they never wait for each other.
            alike = mine.rank.share, mine.rank.priority, 0
            for rank in self.by_rank.keys() - left.keys():
                for each in self.by_rank[rank].values() if (rank.share, rank.priority, rank.kept) == alike else ():
                    if each.pod.uid not in own and each.age > mine.age:
                        _reserve(tree, rank.share, each.amounts, -1)
                        aside.append((rank.share, each.amounts))
        aside += [(rank.share, amounts) for rank, amounts in left.items()]
        try:
            yield
        finally:
            for share, amounts in aside:
                _reserve(tree, share, amounts, 1)

    def check_invariants(self, live: Callable[[str], bool]) -> None:
        """Every sum is that of its reservations, and each is for pods that are `live`. For tests and debugging."""
        for rank, found in self.by_rank.items():
            total: Counter[str] = Counter()
            for reservation in found.values():
                total.update(reservation.amounts)
                assert all(self._of_pod[uid] is reservation for uid in reservation.uids)
                assert any(map(live, reservation.uids)), reservation.pod
            assert {k: v for k, v in total.items() if v} == {k: v for k, v in self._totals[rank].items() if v}
        assert {id(each) for each in self._of_pod.values()} == {
            id(each) for found in self.by_rank.values() for each in found.values()
        }

    def _without(self, rank: Rank, own: Mapping[str, Reservation]) -> Counter[str]:
        total = self._totals[rank].copy()
        for each in own.values():
            if each.rank == rank:
                total.subtract(each.amounts)
        return total


def _reserve(tree: ShareTree, share: str, amounts: Mapping[str, int], sign: int) -> None:
    if share in tree.shares:
        tree.reserve(share, amounts, sign)
