"""The pods that give quota back to one pod with an ElasticQuota, or make space for one without."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from scheduler.api.pod import Pod
from scheduler.framework.shares import DisruptionBudgets, ReclaimVictims
from scheduler.quota.reclaim.elastic import ElasticClaim, elastic_candidates, elastic_victims, giving_shares
from scheduler.quota.reclaim.pods import Claimant, PodReclaim, pods_of
from scheduler.quota.reclaim.units import Unit

MAX_PODS: Final = 10_000
"""Possible victims that are looked at in one attempt, if any node may have them: meanwhile nothing else happens."""


class ElasticReclaim(PodReclaim):
    """Implements framework.shares.ShareReclaim."""

    def __init__(self, claimant: Claimant, counted: Callable[[], Iterable[Pod]]) -> None:
        """`counted` returns all pods with a node."""
        super().__init__(claimant)
        share, asked = claimant.share, claimant.asked
        self._counted = counted
        self._claim = ElasticClaim(share=share, request=asked.need.requests, priority=asked.need.pod.priority)
        with self._seen():
            self._giving = giving_shares(self._tree, self._claim) or ({""} if not share else set())

    @property
    def goes_by_nodes(self) -> bool:
        return True

    @property
    def helps(self) -> bool:
        return bool(self._giving)

    @property
    def takes_lower_only(self) -> bool:
        return self._share in self._giving

    def may_give(self, pod: Pod) -> bool:
        return self._share_of(pod) in self._giving

    def is_leaving_for(self, pod: Pod) -> bool:
        unit = self._unit(pod)
        if unit is None:
            return False
        return unit.priority < self._claim.priority if unit.share == self._share else unit.share in self._giving

    def fewest(
        self,
        pods: Iterable[Pod] | None,
        budgets: Callable[[], DisruptionBudgets],
        fits: Callable[[Sequence[Pod]], bool],
    ) -> ReclaimVictims:
        pods = islice(filter(self.may_give, self._counted()), MAX_PODS) if pods is None else filter(self.may_give, pods)
        with self._seen():
            return self._fewest(pods, budgets, fits)

    def _fewest(
        self,
        pods: Iterable[Pod],
        budgets: Callable[[], DisruptionBudgets],
        fits: Callable[[Sequence[Pod]], bool],
    ) -> ReclaimVictims:
        candidates = elastic_candidates(self._tree, self._claim, self._wholes(pods))
        tally, violating = budgets(), set[str]()
        for unit in sorted(candidates, key=_importance):
            if not tally.allow(unit.pods):
                violating.add(unit.uid)
            tally.use(unit.pods)

        def fits_all(gone: Sequence[Unit]) -> bool:
            return self._fits() and fits(pods_of(gone))

        found = elastic_victims(self._tree, self._claim, candidates, violating, fits_all)
        return self._victims(found, violating)


def _importance(unit: Unit) -> tuple[int, float]:
    return -unit.priority, unit.reserved_at
