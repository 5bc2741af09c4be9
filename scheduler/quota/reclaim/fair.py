"""Candidates of a claim by dominant resource share: Kueue's preemption under fair sharing.

Source: pkg/scheduler/preemption/fair_strategy.go and preemption/fairsharing/ of Kueue, with the gate
FairSharingPreemptWithinNominal, which is on by default there. The next victim is looked for from the root down: the
child with the largest dominant resource share, then its child, and so on. Whether a unit of that share may be evicted
depends on the two children of the lowest common ancestor that hold the claim's share and the unit's: first the former,
with the claim, must not have more than the latter is left with; where that gives too little, it must have less than the
latter has now. A claim that its share's guarantee covers takes back without comparing. All dominant resource shares are
reckoned with the claim on the tree. Two things differ from Kueue: a unit is safe from a claim that borrows if its share
would have less than it is guaranteed without it, as that share could take back at once; and those whose eviction breaks
a PodDisruptionBudget come last.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain

from scheduler.framework.shares import DisruptionBudgets
from scheduler.quota.policies import Policy, Preemption
from scheduler.quota.reclaim.fair_targets import Ancestry, Key, Piles, Reckon, Targets
from scheduler.quota.reclaim.units import Claim, Runs, Unit, cuts_guarantee, gives_back
from scheduler.quota.tree import ShareTree


class Fair:
    """The candidates of one claim; the tree changes while they are taken off."""

    def __init__(self, tree: ShareTree, running: Runs, claim: Claim, preemption: Preemption, reckon: Reckon) -> None:
        self._tree = tree
        self._running = running
        self._claim = claim
        self._preemption = preemption
        self._ancestry = Ancestry(tree, claim.share)
        self._reckon = reckon

    def candidates(self, begun: Callable[[], DisruptionBudgets]) -> Generator[Unit, None, None]:
        """Yield candidates in order; each is off the tree before the next one is asked for."""
        claim, tree, budgets = self._claim, self._tree, begun()
        piles = Piles(self._units, lambda unit: not budgets.allow(unit.pods) or self._cuts(unit))
        those_aside = Piles(lambda share: sorted(piles.aside.get(share, ()), key=self._cuts))
        tree.add(claim.share, claim.request)
        try:
            for unit in chain(self._by_strategies(piles), self._by_strategies(those_aside)):
                budgets.use(unit.pods)
                tree.remove(claim.share, claim.request)
                try:
                    # Space on nodes is no reason to cut a guarantee, only quota is.
                    is_due = not self._cuts(unit) or not tree.fits(claim.share, claim.request)
                    if is_due and self._gives_back(unit):
                        yield unit
                finally:
                    tree.add(claim.share, claim.request)
        finally:
            tree.remove(claim.share, claim.request)

    def _units(self, share: str) -> Iterator[Unit]:
        """Return the candidates of a share; none of one that does not borrow what is contested."""
        policy, tree, claim = self._preemption.within_share, self._tree, self._claim
        if share != claim.share:
            policy = self._preemption.reclaim_within_cohort
            if not tree.holds_more(share, claim.contested):
                policy = Policy.NEVER
        return self._running.candidates(share, policy, claim)

    def _by_strategies(self, piles: Piles) -> Iterator[Unit]:
        refused: dict[str, list[Iterable[Unit]]] = {}
        yield from self._by_final_share(piles, refused)
        yield from self._by_initial_share(piles.again(refused))

    def _by_final_share(self, piles: Piles, refused: dict[str, list[Iterable[Unit]]]) -> Iterator[Unit]:
        """Kueue's LessThanOrEqualToFinalShare."""
        claim = self._claim
        targets = Targets(self._tree, self._ancestry, piles, self._reckon)
        is_guaranteed = not self._tree.uses_more(claim.share, claim.contested)
        for share in targets:
            if share == claim.share or is_guaranteed:
                unit = piles.pop(share)
                yield unit
                targets.forget(share)
                continue
            ours, path = self._ancestry.below_common_ancestor(share)
            limit, before = targets.key(ours), targets.key(path[-1])
            # Usage that goes makes no share larger: if even what it has now is too little, no unit has to be tried.
            if limit > before:
                refused.setdefault(share, []).append(piles.take_all(share))
                continue
            outcomes: dict[frozenset[tuple[str, int]], bool] = {}
            while piles.head(share) is not None:
                unit = piles.pop(share)
                kind = frozenset(unit.usage.items())
                if kind not in outcomes:
                    outcomes[kind] = self._may_go(limit, unit) and limit <= self._key_without(path[-1], unit)
                if outcomes[kind]:
                    yield unit
                    targets.forget(share)
                    break
                refused.setdefault(share, []).append((unit,))

    def _by_initial_share(self, piles: Piles) -> Iterator[Unit]:
        """Yield at most one unit of each share: Kueue's LessThanInitialShare."""
        targets = Targets(self._tree, self._ancestry, piles, self._reckon)
        for share in targets:
            ours, path = self._ancestry.below_common_ancestor(share)
            limit = targets.key(ours)
            targets.drop(share)
            if limit < targets.key(path[-1]):
                unit = piles.pop(share)
                if self._may_go(limit, unit):
                    yield unit
                    targets.forget(share)

    def _may_go(self, limit: Key, unit: Unit) -> bool:
        """Say whether a unit may go: if the claim borrows (its key is above 0), not one that could be claimed back."""
        return limit[0] == 0 or not self._cuts(unit)

    def _gives_back(self, unit: Unit) -> bool:
        if unit.share == self._claim.share:
            return True
        _, path = self._ancestry.below_common_ancestor(unit.share)
        return gives_back(self._tree, path, unit, self._claim.contested)

    def _cuts(self, unit: Unit) -> bool:
        """Say whether a share that borrows would have less than it is guaranteed without a unit."""
        if unit.share == self._claim.share:
            return False
        _, path = self._ancestry.below_common_ancestor(unit.share)
        return cuts_guarantee(self._tree, path, unit, self._claim.contested)

    def _key_without(self, share: str, unit: Unit) -> Key:
        """Return a share's key if a unit of its subtree were gone."""
        self._tree.remove(unit.share, unit.usage)
        try:
            return self._reckon(self._tree, share).key
        finally:
            self._tree.add(unit.share, unit.usage)
