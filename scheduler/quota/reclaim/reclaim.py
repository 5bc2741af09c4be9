"""The units that give quota back: those that are evicted so that a claim fits.

    reclaim = Reclaim(tree, running, preemptions, fair=None)     once; the three are looked at as they are at each call
    victims = reclaim.victims(Claim(share=…, request=…, priority=…, queued_at=…), fits, budgets)

`fits(units)` says whether the pod, or the whole group, finds its nodes if these units are gone; `budgets`
begins to count what PodDisruptionBudgets allow. No victims means that nothing helps, or is needed: nobody
is to be evicted. What is promised:

- units are taken from shares that use more than they are guaranteed, or from the claim's own share; a share has less
  than it is guaranteed afterwards only if one unit, which goes as a whole, was more than it borrowed, and the claim is
  within what its own share, or a subtree that holds it, is guaranteed;
- the claim fits without the victims, by quota and by `fits`, and does not without all but one of them (if more
  victims never hinder it);
- a unit whose eviction breaks a budget is a victim only if the claim does not fit otherwise.

Kueue's classical preemption (`classical.py`) chooses the candidates, or its fair sharing (`fair.py`).
"""

from collections.abc import Callable, Generator, Mapping

import msgspec

from scheduler.quota.reclaim.classical import Classical, sources_of
from scheduler.quota.reclaim.fair import Fair, FairSharing
from scheduler.quota.reclaim.minimal import Fits, minimal_victims, quota_is_all
from scheduler.quota.reclaim.units import NOTHING_EVICTED, Budgets, Claim, NoBudgets, Preemption, Runs, Victim
from scheduler.quota.tree import ShareTree


class Reclaim:
    """Decides about victims, by what is in a tree and runs."""

    def __init__(
        self,
        tree: ShareTree,
        running: Runs,
        preemptions: Mapping[str, Preemption],
        fair: FairSharing | None = None,
    ) -> None:
        """`preemptions` is by the share of the claim; with `fair`, dominant resource shares decide, else priorities."""
        self._tree = tree
        self._running = running
        self._preemptions = preemptions
        self._fair = fair

    def victims(
        self, claim: Claim, fits: Fits = quota_is_all, budgets: Callable[[], Budgets] = NoBudgets
    ) -> list[Victim]:
        """Return those that have to go, least important first; nobody if the claim does not fit in any case.

        The tree is changed meanwhile, and is as it was in the end, whatever `fits` raises. A claim's share that is
        not in the tree is a KeyError.
        """
        tree, running = self._tree, self._running
        claim = contesting(tree, claim)
        preemption = self._preemptions.get(claim.share, NOTHING_EVICTED)
        if self._fair is not None:
            return by_fair_share(tree, claim, Fair(tree, running, claim, preemption, self._fair), fits, budgets)
        classical = Classical(tree, running, claim, preemption, sources_of(tree, claim, preemption))
        return by_priority(tree, claim, classical, fits, budgets)


def by_priority(
    tree: ShareTree, claim: Claim, classical: Classical, fits: Fits, budgets: Callable[[], Budgets]
) -> list[Victim]:
    """Return what `victims` does, by classical preemption."""
    for borrows in classical.plans():
        if victims := _fewest(tree, claim, classical.candidates(budgets, borrows=borrows), fits, borrows=borrows):
            return victims
    return []


def by_fair_share(
    tree: ShareTree, claim: Claim, fair: Fair, fits: Fits, budgets: Callable[[], Budgets]
) -> list[Victim]:
    """Return what `victims` does, by fair sharing."""
    return _fewest(tree, claim, fair.candidates(budgets), fits, borrows=True)


def _fewest(
    tree: ShareTree, claim: Claim, candidates: Generator[Victim, None, None], fits: Fits, *, borrows: bool
) -> list[Victim]:
    def quota_fits() -> bool:
        return tree.fits(claim.share, claim.request) and (borrows or tree.guarantees(claim.share, claim.request))

    return minimal_victims(tree, candidates, quota_fits, fits)


def contesting(tree: ShareTree, claim: Claim) -> Claim:
    """Return a claim that names what it contests."""
    if claim.contested:
        return claim
    asked = {resource: amount for resource, amount in claim.request.items() if amount > 0}
    short = [each for each, amount in asked.items() if amount > tree.available(claim.share, each)]
    return msgspec.structs.replace(claim, contested=frozenset(short or asked))
