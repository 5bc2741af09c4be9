"""The order in which waiting pods of several shares get free quota: the argument `order` of CapacityScheduling.

In every order, pods within their share's guarantee go first, then shares of higher priority. Where neither shares nor
usage are compared, next come those for which a smaller subtree has enough, as in Kueue (makeClassicalIterator in
pkg/scheduler/scheduler.go). As there, each share competes with the most important of its pods that have space.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from scheduler.api.pods.requests import CPU
from scheduler.framework.events import ELASTIC_QUOTA
from scheduler.quota.decay import DecayedUsage
from scheduler.quota.dominant import dominant_share
from scheduler.quota.ledger import Ledger
from scheduler.quota.order import FairOrder, Head, height_of, is_guaranteed
from scheduler.quota.share_refs import ShareRef


class Candidate(NamedTuple):
    """The first of the pending pods of a kind."""

    kind: Any
    """Whatever the caller knows it by."""

    ledger: Ledger | None
    """None for a pod without a share."""

    head: Head
    age: Any
    """Its rank in the queue: the least goes first."""

    @property
    def share(self) -> "_Share":
        return self.ledger, self.head.share

    @property
    def by_share(self) -> tuple[bool, float]:
        """Comes first in every order; the least goes first. It grows as others of the share are taken."""
        return not self.is_guaranteed, -self.head.share_priority

    @property
    def is_guaranteed(self) -> bool:
        return self.ledger is None or (
            self.head.share in self.ledger.tree.shares and is_guaranteed(self.ledger.tree, self.head)
        )

    @property
    def height(self) -> int:
        """How many levels up it has to borrow."""
        if self.ledger is None or self.head.share not in self.ledger.tree.shares:
            return 0
        return height_of(self.ledger.tree, self.head)


HasSpace: TypeAlias = Callable[[Candidate], bool]

_Share: TypeAlias = tuple[Ledger | None, str]

_Offered: TypeAlias = tuple[Any, int, Candidate]
"""A rank or an age, a number that no other has, and whose they are."""


class Ranked:
    """Pods by a rank that only grows as others are taken.

        the best by rank ─► is it the first of its share by age? ─yes─► it goes first
                             └─no─► does the first one have space? ─no──► that takes part no longer
                                                                   └yes─► only that one stands for the share

    So few are asked whether they have space: those ahead of the best. That a rank has grown shows when it is the least.
    """

    def __init__(self, rank: Callable[[Candidate], Any], has_space: HasSpace) -> None:
        self._rank = rank
        self._has_space = has_space
        self._by_rank: list[_Offered] = []
        self._by_age: defaultdict[_Share, list[_Offered]] = defaultdict(list)
        """Those of each share, also as a heap."""
        self._numbers = count()
        self._gone = set[int]()
        """The numbers of those in `_by_rank` that take part no longer."""

    def offer(self, candidate: Candidate) -> None:
        """Let one take part."""
        number = next(self._numbers)
        heapq.heappush(self._by_rank, (self._rank(candidate), number, candidate))
        heapq.heappush(self._by_age[candidate.share], (candidate.age, number, candidate))

    def best(self) -> Candidate | None:
        """Return the one that goes first by its rank; None if there is none."""
        return self._best((), [])

    def first(self) -> Candidate | None:
        """Return the one that goes first, which goes on taking part; None if there is none."""
        asked, passed_over = set[_Share](), list[_Offered]()
        while (best := self._best(asked, passed_over)) is not None and not self._is_first_of_share(best):
            asked.add(best.share)
        for each in passed_over:
            heapq.heappush(self._by_rank, each)
        return best

    def take(self) -> Candidate | None:
        """Return the one that goes first; None if there is none."""
        candidate = self.first()
        if candidate is not None:
            self._drop_first(self._by_age[candidate.share])
        return candidate

    def _best(self, asked: Collection[_Share], passed_over: list[_Offered]) -> Candidate | None:
        """Return the best one by rank; of the shares that were `asked`, all but the first are `passed_over`."""
        while self._by_rank:
            rank, number, candidate = self._by_rank[0]
            if number in self._gone:
                heapq.heappop(self._by_rank)
            elif candidate.share in asked and self._by_age[candidate.share][0][1] != number:
                passed_over.append(heapq.heappop(self._by_rank))
            elif (newest := self._rank(candidate)) <= rank:
                return candidate
            else:
                heapq.heapreplace(self._by_rank, (newest, number, candidate))
        return None

    def _is_first_of_share(self, candidate: Candidate) -> bool:
        """Say whether no more important one of its share has space; drop those that have none."""
        queue = self._by_age[candidate.share]
        while (first := queue[0][-1]) is not candidate and not self._has_space(first):
            self._drop_first(queue)
        return first is candidate

    def _drop_first(self, queue: list[_Offered]) -> None:
        self._gone.add(heapq.heappop(queue)[1])


class ShareOrder:
    """An order of shares; in this one, that of the queue counts among pods that borrow as far: priority and age."""

    name = "Priority"
    """As in the plugin's arguments."""

    by_share = False
    """Whether the share decides before the pod's priority, also against pods that come now."""

    def heads(self, has_space: HasSpace) -> "Heads":
        """Begin to choose among pods. `has_space` says whether there is still space for one: taken ones leave less."""
        return Ranked(lambda candidate: (candidate.by_share, candidate.height, candidate.age), has_space)

    def standing(self, ledger: Ledger, name: str) -> float:
        """Return the number by which a share of the tree is compared, the least goes first; 0 if shares are not."""
        return 0.0

    def used(self, ref: ShareRef) -> None:
        """Take note that less or more of a share is used."""

    def renewed(self, ledger: Ledger) -> None:
        """Take note that the tree was made again: of other shares perhaps, which use something else."""


class ByDecayedUsage(ShareOrder):
    """The share goes first that has used least lately, by its weight.

    A share of which nothing is known, as after a restart, is charged for the first interval of all that it runs.
    """

    name = "DecayedUsage"
    by_share = True

    def __init__(self, half_life: float, weights: Mapping[str, float], now: Callable[[], float]) -> None:
        """`half_life` in seconds; `weights` of resources, 1 for others. Raises ValueError for a half-life of 0."""
        self._make = partial(DecayedUsage, half_life, half_life / 100, weights)
        self._make()
        self._now = now
        self._usages: dict[str, DecayedUsage] = {}
        """By source: other arguments make other ledgers, and change nothing of what was used."""

    def heads(self, has_space: HasSpace) -> "Heads":
        now = self._now()
        return Ranked(lambda candidate: (candidate.by_share, self._key(candidate, now), candidate.age), has_space)

    def standing(self, ledger: Ledger, name: str) -> float:
        return self._of_share(ledger, name, self._now())

    def used(self, ref: ShareRef) -> None:
        if ref.name in ref.ledger.tree.shares:
            ledger, name, _ = ref
            self._of(ledger).run(_whose(ledger, name), _running(ledger, name), self._now())

    def renewed(self, ledger: Ledger) -> None:
        running = {_whose(ledger, name): _running(ledger, name) for name in ledger.tree.shares}
        self._of(ledger).renew(running, self._now())

    def _key(self, candidate: Candidate, now: float) -> float:
        ledger, name = candidate.ledger, candidate.head.share
        return 0.0 if ledger is None or name not in ledger.tree.shares else self._of_share(ledger, name, now)

    def _of_share(self, ledger: Ledger, name: str, now: float) -> float:
        weight, running = ledger.tree.shares[name].weight, _running(ledger, name, reserved=True)
        return self._of(ledger).key(_whose(ledger, name), weight, now, running)

    def _of(self, ledger: Ledger) -> DecayedUsage:
        if ledger.source not in self._usages:
            self._usages[ledger.source] = self._make()
        return self._usages[ledger.source]


def _running(ledger: Ledger, share: str, *, reserved: bool = False) -> Mapping[str, float]:
    """Return the usage of a share's own pods, by the names and in the units of the weights: cores of cpu, as in Kueue.

    `reserved`: with what is reserved for them.
    """
    running: dict[str, float] = {}
    for key in ledger.tree.resources:
        resource, tree = ledger.resource_of(key), ledger.tree
        amount = (tree.used_by_own_pods if reserved else tree.held_by_own_pods)(share, key)
        if amount:
            running[resource] = running.get(resource, 0) + (amount / 1000 if resource == CPU else amount)
    return running


def _whose(ledger: Ledger, share: str) -> str:
    """Return who is charged for a share: of an elastic quota its namespace, or a quota of another name had no past."""
    return share.partition("/")[0] if ledger.source == ELASTIC_QUOTA else share


class ByDominantShare(ShareOrder):
    """The share goes first that borrows the smallest part of what it could, by its weight."""

    name = "DominantShare"
    by_share = True

    def heads(self, has_space: HasSpace) -> "Heads":
        return _Tournaments(has_space)

    def standing(self, ledger: Ledger, name: str) -> float:
        return dominant_share(ledger.tree, name, resource_of=ledger.resource_of).weighted


class _Tournaments:
    """One tournament for each tree; pods without a share go after these."""

    def __init__(self, has_space: HasSpace) -> None:
        self._has_space = has_space
        self._tournaments: dict[Ledger, _Tournament] = {}
        self._others = Ranked(lambda candidate: candidate.age, has_space)

    def offer(self, candidate: Candidate) -> None:
        ledger = candidate.ledger
        if ledger is None or candidate.head.share not in ledger.tree.shares:
            self._others.offer(candidate)
            return
        if ledger not in self._tournaments:
            self._tournaments[ledger] = _Tournament(ledger, self._has_space)
        self._tournaments[ledger].offer(candidate)

    def take(self) -> Candidate | None:
        for tournament in self._tournaments.values():
            if (candidate := tournament.take()) is not None:
                return candidate
        return self._others.take()


class _Tournament:
    """Has a pod of each share compete, as the shares are compared by what they would use with it.

    A share enters with its best one, which needs no question about space. If that wins and a more important one of the
    share has space, the share enters again with that one.
    """

    def __init__(self, ledger: Ledger, has_space: HasSpace) -> None:
        self._order = FairOrder(ledger.tree, ledger.resource_of)
        self._has_space = has_space
        self._offered: dict[str, Ranked] = {}
        """By share."""
        self._winners = set[str]()
        """The shares that won when the last one was taken: their best pod may be another one now."""

    def offer(self, candidate: Candidate) -> None:
        share = candidate.head.share
        if share not in self._offered:
            self._offered[share] = Ranked(lambda each: (not each.is_guaranteed, each.age), self._has_space)
        self._offered[share].offer(candidate)
        self._enter(share)

    def take(self) -> Candidate | None:
        for share in self._winners:
            self._enter(share)  # what was taken last may be counted by now
        self._winners.clear()
        while (winner := self._order.first()) is not None:
            self._winners.add(winner.share)
            offered = self._offered[winner.share]
            first = offered.first()
            if first is not None and first.head.uid == winner.uid:
                return offered.take()
            if first is not None:
                self._order.offer(first.head)
        return None

    def _enter(self, share: str) -> None:
        best = self._offered[share].best()
        if best is None:
            self._order.withdraw(share)
        else:
            self._order.offer(best.head)


Heads: TypeAlias = Ranked | _Tournaments
"""Pods that are offered."""
