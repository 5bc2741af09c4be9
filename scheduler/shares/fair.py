"""Candidates of a claim by dominant resource share: Kueue's preemption under fair sharing.

Source: pkg/scheduler/preemption/fair_strategy.go and preemption/fairsharing/ of Kueue, with the gate
FairSharingPreemptWithinNominal, which is on by default there. The next victim is looked for from the root down: the
child with the largest dominant resource share, then its child, and so on. Whether a unit of that share may be evicted
depends on the two children of the lowest common ancestor that hold the claim's share and the unit's: by the first
strategy the former, with the claim, must not have more than the latter is left with; by the second, it must have less
than the latter has now. A claim that its share's guarantee covers takes back without comparing. All dominant resource
shares are reckoned with the claim on the tree. Candidates whose eviction would break a PodDisruptionBudget come last,
which Kueue does not know.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import Final

import msgspec

from scheduler.shares.dominant import dominant_share
from scheduler.shares.tree import ShareTree
from scheduler.shares.units import Budgets, Claim, Policy, Preemption, Reason, Running, Unit, Victim

Key = tuple[float, float]
"""The type of `DominantShare.key`."""

NO_KEY: Final[Key] = (-1.0, 0.0)
"""Below that of any share."""


class Strategy(StrEnum):
    """When a unit of another share may be evicted."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
    LESS_THAN_INITIAL_SHARE = "LessThanInitialShare"


class FairSharing(msgspec.Struct, frozen=True, kw_only=True):
    """How dominant resource shares decide who is evicted."""

    strategies: tuple[Strategy, ...] = (
        Strategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
        Strategy.LESS_THAN_INITIAL_SHARE,
    )
    """Tried one after the other; the second one can only be the one that is second here."""

    reevaluates: bool = False
    """Whether the first is tried again if units of the claim's own share are gone.

    Kueue's gate FairSharingReevaluatePreemptionCandidates.
    """


class Piles:
    """Candidates by share, least important first; those that would break a budget are put aside."""

    def __init__(self, find: Callable[[str], Iterable[Unit]], budgets: Budgets | None = None) -> None:
        """Without budgets nothing is put aside."""
        self.aside: dict[str, list[Unit]] = {}
        self._find = find
        self._budgets = budgets
        self._left: dict[str, tuple[deque[Unit], Iterator[Unit]]] = {}

    def head(self, share: str) -> Unit | None:
        if share not in self._left:
            self._left[share] = deque(), iter(self._find(share))
        seen, unseen = self._left[share]
        while not seen or not (self._budgets is None or self._budgets.allow(seen[0])):
            if seen:
                self.aside.setdefault(share, []).append(seen.popleft())
            unit = next(unseen, None)
            if unit is None:
                return None
            seen.append(unit)
        return seen[0]

    def pop(self, share: str) -> Unit:
        """Take the head off; raise IndexError if `head` found none."""
        return self._left[share][0].popleft()

    def use(self, unit: Unit) -> None:
        """Count a unit that was popped as evicted."""
        if self._budgets is not None:
            self._budgets.use(unit)

    def again(self, refused: Mapping[str, list[Iterable[Unit]]]) -> "Piles":
        """Return piles of what was refused; whatever would break a budget joins those that are aside already."""
        piles = Piles(lambda share: chain.from_iterable(refused.get(share, ())), self._budgets)
        piles.aside = self.aside
        return piles

    def take_all(self, share: str) -> Iterator[Unit]:
        """Return whatever is left of a share's pile, which is empty then."""
        seen, unseen = self._left[share]
        self._left[share] = deque(), iter(())
        return chain(seen, unseen)


class Targets:
    """The shares that victims come from: those that borrow most first.

    Between two looks the head of the share's pile has to go, or the share itself.
    """

    def __init__(self, tree: ShareTree, share: str, piles: Piles) -> None:
        self._tree = tree
        self._piles = piles
        self._share = share
        self._path = [share]
        while parent := tree.shares[self._path[-1]].parent:
            self._path.append(parent)
        self._pruned: set[str] = set()
        self._keys: dict[str, Key] = {}

    def __iter__(self) -> Iterator[str]:
        root = self._path[-1]
        if root == self._share:
            while self._piles.head(root) is not None and root not in self._pruned:
                yield root
            return
        while root not in self._pruned:
            target = self._next(root)
            if target:
                yield target

    def drop(self, share: str) -> None:
        self._pruned.add(share)

    def key(self, share: str) -> Key:
        """Return what orders shares by their dominant resource share; kept until `forget`."""
        found = self._keys.get(share)
        if found is None:
            found = self._keys[share] = dominant_share(self._tree, share).key
        return found

    def forget(self, share: str) -> None:
        """Have a share's dominant resource share reckoned again, and its ancestors'."""
        while share:
            self._keys.pop(share, None)
            share = self._tree.shares[share].parent

    def below_common_ancestor(self, share: str) -> tuple[str, str]:
        """Return the two children of the lowest common ancestor of the claim's share and another that hold these."""
        while (parent := self._tree.shares[share].parent) not in self._path:
            share = parent
        return self._path[self._path.index(parent) - 1], share

    def _next(self, node: str) -> str:
        """Return the share that borrows most below a node; empty if there was none, and something was pruned."""
        while True:
            leaf, leaf_key = self._highest_leaf(node)
            inner, inner_key = self._highest_inner(node)
            if not inner and not leaf:
                self._pruned.add(node)
                return ""
            if inner_key < leaf_key:
                return leaf
            node = inner

    def _highest_leaf(self, node: str) -> tuple[str, Key]:
        """Return a node's child that has candidates and borrows most; of equal ones that with the first candidate."""
        highest, highest_key = "", NO_KEY
        for child in self._tree.children[node]:
            if child in self._pruned or self._tree.children[child]:
                continue
            if self._piles.head(child) is None:
                self._pruned.add(child)
                continue
            key = self.key(child)
            if key[0] == 0 and child != self._share:
                self._pruned.add(child)
            elif key > highest_key or (key == highest_key and self._goes_before(child, highest)):
                highest, highest_key = child, key
        return highest, highest_key

    def _highest_inner(self, node: str) -> tuple[str, Key]:
        """Return a node's child with children that borrows most; one that holds the claim need not borrow."""
        highest, highest_key = "", NO_KEY
        for child in self._tree.children[node]:
            if child in self._pruned or not self._tree.children[child]:
                continue
            key = self.key(child)
            if key[0] == 0 and child not in self._path:
                self._pruned.add(child)
            elif key >= highest_key:
                highest, highest_key = child, key
        return highest, highest_key

    def _goes_before(self, share: str, other: str) -> bool:
        """Say which of two shares that borrow alike has the candidate that comes first."""
        head, rival = self._piles.head(share), self._piles.head(other)
        if head is None or rival is None:
            return rival is None
        mine, theirs = share == self._share, other == self._share
        return (not head.is_evicted, mine, *head.order) < (not rival.is_evicted, theirs, *rival.order)


class Fair:
    """The candidates of one claim; the tree changes while they are taken off."""

    def __init__(self, tree: ShareTree, running: Running, claim: Claim, preemption: Preemption) -> None:
        self._tree = tree
        self._running = running
        self._claim = claim
        self._preemption = preemption

    def candidates(self, fair: FairSharing, allowed: Mapping[str, int]) -> Generator[Victim, None, None]:
        """Yield candidates in order; each is off the tree before the next one is asked for."""
        claim, tree = self._claim, self._tree
        tree.add(claim.share, claim.request)
        try:
            piles = Piles(self._units, Budgets(allowed))
            those_aside = Piles(lambda share: piles.aside.get(share, ()))
            for victim in chain(self._by_strategies(fair, piles), self._by_strategies(fair, those_aside)):
                tree.remove(claim.share, claim.request)
                try:
                    yield victim
                finally:
                    tree.add(claim.share, claim.request)
        finally:
            tree.remove(claim.share, claim.request)

    def _units(self, share: str) -> Iterator[Unit]:
        """Return the candidates of a share; none of one that does not borrow what is contested."""
        policy, tree, claim = self._preemption.within_share, self._tree, self._claim
        if share != claim.share:
            policy = self._preemption.reclaim_within_cohort
            if all(tree.usage(share, each) <= tree.quota(share, each) for each in claim.contested):
                policy = Policy.NEVER
        return chain.from_iterable(
            self._running.candidates(share, policy, claim, evicted=evicted) for evicted in (True, False)
        )

    def _by_strategies(self, fair: FairSharing, piles: Piles) -> Iterator[Victim]:
        refused: dict[str, list[Iterable[Unit]]] = {}
        own_are_gone = False
        for victim in self._by_first(fair.strategies[0], piles, refused):
            own_are_gone = own_are_gone or victim.reason is Reason.IN_SHARE
            yield victim
        if fair.reevaluates and own_are_gone:
            again: dict[str, list[Iterable[Unit]]] = {}
            yield from self._by_first(fair.strategies[0], piles.again(refused), again)
            refused = again
        if len(fair.strategies) > 1:
            yield from self._by_second(piles.again(refused))

    def _by_first(self, strategy: Strategy, piles: Piles, refused: dict[str, list[Iterable[Unit]]]) -> Iterator[Victim]:
        claim = self._claim
        targets = Targets(self._tree, claim.share, piles)
        is_guaranteed = all(
            self._tree.usage(claim.share, r) <= self._tree.quota(claim.share, r) for r in claim.contested
        )
        for share in targets:
            if share == claim.share or is_guaranteed:
                unit = piles.pop(share)
                piles.use(unit)
                yield Victim(unit, Reason.IN_SHARE if share == claim.share else Reason.RECLAMATION)
                targets.forget(share)
                continue
            ours, theirs = targets.below_common_ancestor(share)
            limit, before = targets.key(ours), targets.key(theirs)
            # Usage that goes makes no share larger: if even what it has now is too little, no unit has to be tried.
            if not (limit < before or (limit == before and strategy is not Strategy.LESS_THAN_INITIAL_SHARE)):
                refused.setdefault(share, []).append(piles.take_all(share))
                continue
            outcomes: dict[frozenset[tuple[str, int]], bool] = {}
            while piles.head(share) is not None:
                unit = piles.pop(share)
                kind = frozenset(unit.usage.items())
                if kind not in outcomes:
                    is_less = strategy is Strategy.LESS_THAN_INITIAL_SHARE or limit <= self._key_without(theirs, unit)
                    outcomes[kind] = is_less
                if outcomes[kind]:
                    piles.use(unit)
                    yield Victim(unit, Reason.FAIR_SHARING)
                    targets.forget(share)
                    break
                refused.setdefault(share, []).append((unit,))

    def _by_second(self, piles: Piles) -> Iterator[Victim]:
        """Yield at most one unit of each share."""
        targets = Targets(self._tree, self._claim.share, piles)
        for share in targets:
            ours, theirs = targets.below_common_ancestor(share)
            targets.drop(share)
            if targets.key(ours) < targets.key(theirs):
                yield Victim(piles.pop(share), Reason.FAIR_SHARING)
                targets.forget(share)

    def _key_without(self, share: str, unit: Unit) -> Key:
        """Return a share's key if a unit of its subtree were gone."""
        self._tree.remove(unit.share, unit.usage)
        try:
            return dominant_share(self._tree, share).key
        finally:
            self._tree.add(unit.share, unit.usage)
