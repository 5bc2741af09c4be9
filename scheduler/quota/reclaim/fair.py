"""Candidates of a preemptor by dominant resource share: Kueue's preemption under fair sharing.

Source: pkg/scheduler/preemption/fair_strategy.go and preemption/fairsharing/ of Kueue, with the gate
FairSharingPreemptWithinNominal, which is on by default there. The next victim is looked for from the root down: the
child with the largest dominant resource share, then its child, and so on. Whether a unit of that share may be evicted
depends on the two children of the lowest common ancestor that hold the preemptor's share and the unit's: first, the
preemptor's must not end up with more than the unit's has left; if that frees too little, it must have less than the
unit's has now. A preemptor that its share's guarantee covers takes back without comparing. All dominant resource shares
are computed with the preemptor on the tree. Four things differ from Kueue: a unit is safe from a preemptor that
borrows if its share would have less than it is guaranteed without it, as that share could take back at once; none goes
if the comparison no longer holds with those that are put back, as the two shares would evict each other's forever;
what a share has given up, it takes back for its guarantee only while the unit runs that got it, for the same reason;
and those whose eviction breaks a PodDisruptionBudget come last.
"""

from collections.abc import Callable, Generator, Iterator, Sequence

from scheduler.framework.shares import DisruptionBudgets
from scheduler.quota.dominant import Ancestry
from scheduler.quota.expenses import Expenses
from scheduler.quota.policies import Policy, Preemption
from scheduler.quota.reclaim.fair_targets import Key, Piles, Reckon, Targets
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit, Running, cuts_guarantee, gives_back
from scheduler.quota.tree import ShareTree


class Fair:
    """The candidates of one preemptor; the tree changes while they are taken off."""

    def __init__(
        self,
        tree: ShareTree,
        running: Running,
        preemptor: Preemptor,
        preemption: Preemption,
        reckon: Reckon,
        expenses: Expenses,
    ) -> None:
        self._tree = tree
        self._running = running
        self._preemptor = preemptor
        self._preemption = preemption
        self._ancestry = Ancestry(tree, preemptor.share)
        self._reckon = reckon
        self._expenses = expenses
        self._compared: dict[str, tuple[str, Key, bool]] = {}
        """UID of a unit → the share that was compared for it, what that may have, and whether it must have less."""
        self._gave: set[str] = set()
        """The shares that have given a unit because they borrow more now: each gives one."""

    def candidates(self, begun: Callable[[], DisruptionBudgets]) -> Generator[QuotaUnit, None, None]:
        """Yield candidates in order; each is off the tree before the next one is asked for."""
        preemptor, tree, budgets = self._preemptor, self._tree, begun()
        tree.add(preemptor.share, preemptor.request)
        try:
            for unit in self._in_order(budgets):
                budgets.use(unit.pods)
                tree.remove(preemptor.share, preemptor.request)
                try:
                    # Space on nodes is no reason to cut a guarantee, only quota is.
                    is_due = not self._cuts(unit) or not tree.fits(preemptor.share, preemptor.request)
                    if is_due and self._gives_back(unit):
                        yield unit
                finally:
                    tree.add(preemptor.share, preemptor.request)
        finally:
            tree.remove(preemptor.share, preemptor.request)

    def may_all_go(self, victims: Sequence[QuotaUnit]) -> bool:
        """Say whether the comparisons still hold for those that go: some of its own share may stay after all."""
        tree, preemptor = self._tree, self._preemptor
        tree.add(preemptor.share, preemptor.request)
        for unit in victims:
            tree.remove(unit.share, unit.usage)
        try:
            compared = [self._compared[unit.uid] for unit in victims if unit.uid in self._compared]
            keys = {ours: self._reckon(tree, ours).key for ours, _, _ in compared}
            return all(keys[ours] < limit or (keys[ours] == limit and not less) for ours, limit, less in compared)
        finally:
            for unit in victims:
                tree.add(unit.share, unit.usage)
            tree.remove(preemptor.share, preemptor.request)

    def _units(self, share: str) -> Iterator[QuotaUnit]:
        """Return the candidates of a share; none of one that does not borrow what is contested."""
        policy, tree, preemptor = self._preemption.within_share, self._tree, self._preemptor
        if share != preemptor.share:
            policy = self._preemption.reclaim_within_cohort
            if not tree.holds_more(share, preemptor.contested):
                policy = Policy.NEVER
        return self._running.candidates(share, policy, preemptor)

    def _in_order(self, budgets: DisruptionBudgets) -> Iterator[QuotaUnit]:
        """Yield those that come last after all others; what was refused of their shares may go then, before them."""

        def last(unit: QuotaUnit) -> tuple[bool, bool]:
            return not budgets.allow(unit.pods), self._cuts(unit)

        left = yield from self._by_strategies(Piles(self._units, lambda unit: any(last(unit))))
        yield from self._by_strategies(left.of_aside(last))

    def _by_strategies(self, piles: Piles) -> Generator[QuotaUnit, None, Piles]:
        yield from self._by_final_share(piles)
        left = piles.again()
        yield from self._by_initial_share(left)
        return left

    def _by_final_share(self, piles: Piles) -> Iterator[QuotaUnit]:
        """Kueue's LessThanOrEqualToFinalShare."""
        preemptor = self._preemptor
        targets = Targets(self._tree, self._ancestry, piles, self._reckon)
        is_guaranteed = not self._tree.uses_more(preemptor.share, preemptor.contested)
        for share in targets:
            if share == preemptor.share or is_guaranteed:
                unit = piles.pop(share)
                yield unit
                targets.forget(share)
                continue
            ours, path = self._ancestry.below_common_ancestor(share)
            limit, before = targets.key(ours), targets.key(path[-1])
            # Usage that goes makes no share larger: if even what it has now is too little, no unit has to be tried.
            if limit > before:
                piles.refuse_all(share)
                continue
            outcomes: dict[frozenset[tuple[str, int]], Key | None] = {}
            while piles.head(share) is not None:
                unit = piles.pop(share)
                kind = frozenset(unit.usage.items())
                if kind not in outcomes:
                    after = self._key_without(path[-1], unit)
                    outcomes[kind] = after if limit <= after and self._may_go(limit, unit) else None
                if (most := outcomes[kind]) is not None and not self._has_paid(limit, ours, unit):
                    self._compared[unit.uid] = ours, most, False
                    yield unit
                    targets.forget(share)
                    break
                piles.refuse(share, (unit,))

    def _by_initial_share(self, piles: Piles) -> Iterator[QuotaUnit]:
        """Yield at most one unit of each share: Kueue's LessThanInitialShare."""
        targets = Targets(self._tree, self._ancestry, piles, self._reckon)
        for share in targets:
            ours, path = self._ancestry.below_common_ancestor(share)
            limit, before = targets.key(ours), targets.key(path[-1])
            targets.drop(share)
            if limit < before and share not in self._gave:
                unit = piles.pop(share)
                if self._may_go(limit, unit) and not self._has_paid(limit, ours, unit):
                    self._gave.add(share)
                    self._compared[unit.uid] = ours, before, True
                    yield unit
                    targets.forget(share)
                else:
                    piles.refuse(share, (unit,))
            piles.refuse_all(share)

    def _may_go(self, limit: Key, unit: QuotaUnit) -> bool:
        """Say whether a unit may go: if the preemptor borrows (its key is above 0), no share could take it back."""
        return limit[0] == 0 or not self._cuts(unit)

    def _has_paid(self, limit: Key, ours: str, unit: QuotaUnit) -> bool:
        """Say whether a unit got what the preemptor's share borrowed before, and would borrow again."""
        return limit[0] > 0 and self._expenses.include(ours, [pod.uid for pod in unit.pods])

    def _gives_back(self, unit: QuotaUnit) -> bool:
        if unit.share == self._preemptor.share:
            return True
        _, path = self._ancestry.below_common_ancestor(unit.share)
        return gives_back(self._tree, path, unit, self._preemptor.contested)

    def _cuts(self, unit: QuotaUnit) -> bool:
        """Say whether a share would have less than it is guaranteed without a unit."""
        if unit.share == self._preemptor.share:
            return False
        _, path = self._ancestry.below_common_ancestor(unit.share)
        return cuts_guarantee(self._tree, path, unit, self._preemptor.contested)

    def _key_without(self, share: str, unit: QuotaUnit) -> Key:
        """Return a share's key if a unit of its subtree were gone."""
        self._tree.remove(unit.share, unit.usage)
        try:
            return self._reckon(self._tree, share).key
        finally:
            self._tree.add(unit.share, unit.usage)
