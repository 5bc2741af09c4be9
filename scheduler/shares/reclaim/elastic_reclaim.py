"""The pods that give quota back to one pod with an ElasticQuota, or make space for one without."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from scheduler.api.pod import Pod
from scheduler.shares.adapter import Asked
from scheduler.shares.apis.elastic_quotas import is_over_minimum
from scheduler.shares.ledger import Ledger
from scheduler.shares.reclaim.elastic import ElasticClaim, elastic_candidates, elastic_victims, giving_shares
from scheduler.shares.reclaim.pods import PodReclaim
from scheduler.shares.reclaim.units import Unit

if TYPE_CHECKING:
    from scheduler.shares.places import Place


class ElasticReclaim(PodReclaim):
    """Implements framework.shares.ShareReclaim."""

    def __init__(self, ledger: Ledger, share: str, asked: Asked, place_of: "Callable[[Pod], Place | None]") -> None:
        """`share`: that of the pod, empty if it has none."""
        super().__init__(ledger, share, asked, place_of)
        tree = self._tree
        priority = asked.need.pod.priority
        own = [each for each in asked.nominated if each.share == share and each.pod.priority >= priority]
        elsewhere = [
            each
            for each in asked.nominated
            if each.share != share and each.share in tree.shares and not is_over_minimum(tree, each.share)
        ]
        self._claim = ElasticClaim(
            share=share,
            request=asked.need.requests,
            priority=priority,
            nominated=_total(each.amounts for each in own),
            nominated_elsewhere=_total(each.amounts for each in elsewhere),
        )
        self._giving = giving_shares(tree, self._claim) or ({""} if not share else set())

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

    def candidates(self, pods: Iterable[Pod]) -> list[Pod]:
        by_uid = {pod.uid: pod for pod in pods if self.may_give(pod)}
        units = [unit for pod in by_uid.values() if (unit := self._unit(pod)) is not None]
        return [by_uid[unit.uid] for unit in elastic_candidates(self._tree, self._claim, units)]

    def is_leaving_for(self, pod: Pod) -> bool:
        unit = self._unit(pod)
        if unit is None:
            return False
        return unit.priority < self._claim.priority if unit.share == self._share else unit.share in self._giving

    def fewest(
        self, candidates: Sequence[Pod], violating: Collection[str], fits: Callable[[Sequence[Pod]], bool]
    ) -> list[Pod]:
        by_uid = {pod.uid: pod for pod in candidates}
        units = [unit for pod in candidates if (unit := self._unit(pod)) is not None]

        def fits_all(gone: Sequence[Unit]) -> bool:
            return self.fits() and fits([by_uid[unit.uid] for unit in gone])

        found = elastic_victims(self._tree, self._claim, units, violating, fits_all)
        return [by_uid[victim.unit.uid] for victim in found]


def _total(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in amounts:
        for resource, amount in each.items():
            total[resource] = total.get(resource, 0) + amount
    return total
