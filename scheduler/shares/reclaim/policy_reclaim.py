"""The pods that give quota back to one pod by the policies of its share: Kueue's, also for declared shares."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.api.importance import created
from scheduler.api.pod import Pod
from scheduler.shares.adapter import Asked, counting_nominated
from scheduler.shares.ledger import Ledger
from scheduler.shares.reclaim.classical import Classical
from scheduler.shares.reclaim.pods import SECOND, PodReclaim
from scheduler.shares.reclaim.reclaim import Reclaim, contesting
from scheduler.shares.reclaim.units import Claim, Policy, Preemption, Running, Unit, may_evict

if TYPE_CHECKING:
    from scheduler.shares.places import Place

_PROTECTED: Final = {"protected": 1}
"""The budgets of a unit whose eviction breaks one: it allows none."""


class PolicyReclaim(PodReclaim):
    """Implements framework.shares.ShareReclaim."""

    def __init__(
        self,
        ledger: Ledger,
        share: str,
        asked: Asked,
        place_of: "Callable[[Pod], Place | None]",
        preemption: Preemption,
    ) -> None:
        """`preemption`: whom pods of the share may evict."""
        super().__init__(ledger, share, asked, place_of)
        pod = asked.need.pod
        self._preemption = preemption
        request = ledger.wanted(share, asked)
        self._claim = Claim(share=share, request=request, priority=pod.priority, queued_at=created(pod) / SECOND)
        with counting_nominated(self._tree, share, asked, request):
            claim = contesting(self._tree, self._claim)
            self._giving = Classical(self._tree, Running(), claim, preemption).giving

    @property
    def goes_by_nodes(self) -> bool:
        return False

    @property
    def helps(self) -> bool:
        return bool(self._giving)

    @property
    def takes_lower_only(self) -> bool:
        return all(policy is Policy.LOWER_PRIORITY for policy in self._giving.values())

    def may_give(self, pod: Pod) -> bool:
        policy = self._giving.get(self._share_of(pod) or "")
        if policy is None or (policy is Policy.LOWER_PRIORITY and pod.priority >= self._claim.priority):
            return False
        unit = self._unit(pod)
        return unit is not None and may_evict(policy, self._claim, unit)

    def candidates(self, pods: Iterable[Pod]) -> list[Pod]:
        return list(filter(self.may_give, pods))

    def is_leaving_for(self, pod: Pod) -> bool:
        return self.may_give(pod)

    def fewest(
        self, candidates: Sequence[Pod], violating: Collection[str], fits: Callable[[Sequence[Pod]], bool]
    ) -> list[Pod]:
        by_uid = {pod.uid: pod for pod in candidates}
        running = Running()
        for pod in candidates:
            unit = self._unit(pod)
            if unit is not None:
                running.add(msgspec.structs.replace(unit, budgets=_PROTECTED) if pod.uid in violating else unit)

        def pods_of(units: Iterable[Unit]) -> list[Pod]:
            return [by_uid[unit.uid] for unit in units]

        reclaim = Reclaim(self._tree, running, {self._share: self._preemption})
        with counting_nominated(self._tree, self._share, self._asked, self._claim.request):
            return pods_of(victim.unit for victim in reclaim.victims(self._claim, lambda gone: fits(pods_of(gone))))
