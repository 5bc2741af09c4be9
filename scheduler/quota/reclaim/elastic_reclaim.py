"""The pods that give quota back to one pod with an ElasticQuota, or make space for one without."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from scheduler.api.pod import Pod
from scheduler.framework.shares import DisruptionBudgets, ReclaimVictims
from scheduler.framework.victims import pods_of
from scheduler.quota.reclaim.elastic import elastic_candidates, elastic_victims, giving_shares
from scheduler.quota.reclaim.pods import PodReclaim, QuotaRequest
from scheduler.quota.reclaim.units import Preemptor, QuotaUnit

MAX_PODS: Final = 10_000
"""Possible victims that are considered in one attempt, if any node may have them: meanwhile nothing else happens."""


class ElasticReclaim(PodReclaim):
    """Implements framework.shares.ShareReclaim."""

    def __init__(self, request: QuotaRequest, counted: Callable[[], Iterable[Pod]]) -> None:
        """`counted` returns all pods with a node."""
        super().__init__(request)
        share, asked = request.share, request.asked
        self._counted = counted
        self._preemptor = Preemptor(share=share, request=asked.need.requests, priority=asked.need.pod.priority)
        with self._seen():
            self._giving = giving_shares(self._tree, self._preemptor) or ({""} if not share else set())

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
        return unit.priority < self._preemptor.priority if unit.share == self._share else unit.share in self._giving

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
        tree, preemptor, units = self._tree, self._preemptor, self._wholes(pods)

        def fits_all(gone: Sequence[QuotaUnit]) -> bool:
            return self._fits() and fits(pods_of(gone))

        tried = list[QuotaUnit]()
        for largest_first in (False, True):
            candidates = elastic_candidates(tree, preemptor, units, largest_first=largest_first)
            if {unit.uid for unit in candidates} == {unit.uid for unit in tried}:
                break
            tried, violating = candidates, self._violating(candidates, budgets)
            found = elastic_victims(tree, preemptor, candidates, violating, fits_all)
            if found:
                return self._victims(found, violating)
        return self._victims((), ())
