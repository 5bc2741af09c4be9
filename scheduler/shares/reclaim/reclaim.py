"""The units that give quota back: those that are evicted so that a claim fits.

    reclaim = Reclaim(tree, running, preemptions, fair=None)     once; the three are looked at as they are at each call
    victims = reclaim.victims(Claim(share=…, request=…, priority=…, queued_at=…), fits, allowed)

`fits(units)` says whether the pod, or the whole group, finds its nodes if these units are gone; `allowed` has the
disruptions that each PodDisruptionBudget still allows. No victims means that nothing helps, or is needed: nobody
is to be evicted. What is promised:

- units are taken from shares that use more than they are guaranteed, or from the claim's own share; a share has less
  than it is guaranteed afterwards only if one unit, which goes as a whole, was more than it borrowed, and the claim is
  within what its own share, or a subtree that holds it, is guaranteed;
- the claim fits without the victims, by quota and by `fits`, and does not without all but one of them (if more
  victims never hinder it);
- a unit whose eviction breaks a budget is a victim only if the claim does not fit otherwise.

Kueue's classical preemption (`classical.py`) chooses the candidates, or its fair sharing (`fair.py`).
"""

from collections.abc import Generator, Mapping

import msgspec

from scheduler.shares.reclaim.classical import Classical
from scheduler.shares.reclaim.fair import Fair, FairSharing
from scheduler.shares.reclaim.minimal import Fits, minimal_victims, quota_is_all
from scheduler.shares.reclaim.units import NO_LIMITS, NOTHING_EVICTED, Claim, Preemption, Running, Victim
from scheduler.shares.tree import ShareTree


class Reclaim:
    """Decides about victims, by what is in a tree and runs."""

    def __init__(
        self,
        tree: ShareTree,
        running: Running,
        preemptions: Mapping[str, Preemption],
        fair: FairSharing | None = None,
    ) -> None:
        """`preemptions` is by the share of the claim; with `fair`, dominant resource shares decide, else priorities."""
        self._tree = tree
        self._running = running
        self._preemptions = preemptions
        self._fair = fair

    def victims(self, claim: Claim, fits: Fits = quota_is_all, allowed: Mapping[str, int] = NO_LIMITS) -> list[Victim]:
        """Return those that have to go, least important first; nobody if the claim does not fit in any case.

        The tree is changed meanwhile, and is as it was in the end, whatever `fits` raises. A claim's share that is
        not in the tree is a KeyError.
        """
        claim = contesting(self._tree, claim)
        preemption = self._preemptions.get(claim.share, NOTHING_EVICTED)
        if self._fair is not None:
            candidates = Fair(self._tree, self._running, claim, preemption, self._fair).candidates(allowed)
            return self._fewest(claim, candidates, fits, borrows=True)
        classical = Classical(self._tree, self._running, claim, preemption)
        for borrows in classical.plans():
            candidates = classical.candidates(allowed, borrows=borrows)
            if victims := self._fewest(claim, candidates, fits, borrows=borrows):
                return victims
        return []

    def _fewest(
        self, claim: Claim, candidates: Generator[Victim, None, None], fits: Fits, *, borrows: bool
    ) -> list[Victim]:
        tree = self._tree

        def quota_fits() -> bool:
            return tree.fits(claim.share, claim.request) and (
                borrows
                or all(
                    tree.usage(claim.share, resource) + amount <= tree.quota(claim.share, resource)
                    for resource, amount in claim.request.items()
                )
            )

        return minimal_victims(tree, candidates, quota_fits, fits)


def contesting(tree: ShareTree, claim: Claim) -> Claim:
    """Return a claim that names what it contests."""
    if claim.contested:
        return claim
    asked = {resource: amount for resource, amount in claim.request.items() if amount > 0}
    short = [each for each, amount in asked.items() if amount > tree.available(claim.share, each)]
    return msgspec.structs.replace(claim, contested=frozenset(short or asked))
