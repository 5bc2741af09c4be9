"""The pods that give quota back to one pod with an ElasticQuota, or make space for one without.

Rule: SelectVictimsOnNode in pkg/capacityscheduling/capacity_scheduling.go of scheduler-plugins. A quota is a share
whose root's quota is the sum of all minimums. If the preemptor takes its quota over its minimum, units of the same
quota and of lower priority may go; otherwise units of other quotas that use more than their minimum, whatever their
priority. Units without quota (their share is not in the tree) may go for preemptors without quota only, if their
priority is lower. Those that break a PodDisruptionBudget are spared first, then the important ones.

scheduler-plugins considers one node at a time. Units of several nodes may be given here: what a quota borrowed is often
spread over them.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.api.pods.requests import CPU, MEMORY
from scheduler.framework.preemption.victims import pods_of
from scheduler.framework.shares import DisruptionBudgets, ReclaimVictims
from scheduler.quota.policies import Policy
from scheduler.quota.reclaim.minimal import Fits, minimal_victims
from scheduler.quota.reclaim.pods import PodReclaim, QuotaRequest
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit, gives_back
from scheduler.quota.tree import ShareTree

NOTHING_ASKED: Final = {CPU: 0, MEMORY: 0}
"""Compared with the minimum even if a pod asks for none of it, as scheduler-plugins does."""

MAX_PODS: Final = 10_000
"""Possible victims that are considered in one attempt, if any node may have them: meanwhile nothing else happens."""


class ElasticReclaim(PodReclaim):
    """Implements framework.shares.ShareReclaim."""

    goes_by_nodes = True

    def __init__(self, request: QuotaRequest, counted: Callable[[], Iterable[Pod]]) -> None:
        """`counted` returns all pods with a node."""
        super().__init__(request)
        share, asked = request.share, request.asked
        self._counted = counted
        self._preemptor = Preemptor(share=share, request=asked.need.requests, priority=asked.need.pod.priority)
        with self._seen():
            self._giving = giving_shares(self._tree, self._preemptor)

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
            return self._fewest(self._wholes(pods), budgets, lambda gone: self._fits() and fits(pods_of(gone)))

    def _fewest(
        self, units: Sequence[QuotaUnit], budgets: Callable[[], DisruptionBudgets], fits: Fits
    ) -> ReclaimVictims:
        tried = list[QuotaUnit]()
        for largest_first in (False, True):
            candidates = elastic_candidates(self._tree, self._preemptor, units, budgets, largest_first=largest_first)
            if {unit.uid for unit in candidates} == {unit.uid for unit in tried}:
                break
            tried, violating = candidates, self._violating(candidates, budgets)
            if found := elastic_victims(self._tree, self._preemptor, candidates, violating, fits):
                return self._victims(found, violating)
        return self._victims((), ())


def elastic_candidates(
    tree: ShareTree,
    preemptor: Preemptor,
    units: Iterable[QuotaUnit],
    budgets: Callable[[], DisruptionBudgets],
    *,
    largest_first: bool = False,
) -> list[QuotaUnit]:
    """Return the units that may go, least important first; none: "No victims found on node".

    A quota gives only what it borrows, so those that break a budget come after all others.

    `largest_first`: begin with those that have most of what is asked for. Small ones may have given all that their
    quota borrows, where only a large one leaves enough on a node.
    """
    contested = [each for each, amount in preemptor.request.items() if amount > 0]
    ordered = sorted(units, key=attrgetter("order"))
    if largest_first:
        ordered.sort(key=lambda unit: [-unit.usage.get(each, 0) for each in contested])
    if preemptor.share not in tree.shares:
        return [unit for unit in ordered if unit.share not in tree.shares and unit.priority < preemptor.priority]
    if _exceeds_minimum(tree, preemptor):
        return [unit for unit in ordered if unit.share == preemptor.share and unit.priority < preemptor.priority]
    others = [unit for unit in ordered if unit.share != preemptor.share and unit.share in tree.shares]
    found, breaking, tally = list[QuotaUnit](), list[QuotaUnit](), budgets()
    try:
        for some in (others, breaking):
            for unit in some:
                # scheduler-plugins compares all resources, and takes the cpu of a quota that has borrowed memory only.
                if not (
                    gives_back(tree, (unit.share,), unit, contested) if contested else _has_borrowed(tree, unit.share)
                ):
                    continue
                if some is others and not tally.allow(unit.pods):
                    breaking.append(unit)
                    continue
                tally.use(unit.pods)
                found.append(unit)
                tree.remove(unit.share, unit.usage)
    finally:
        for unit in found:
            tree.add(unit.share, unit.usage)
    return found


def giving_shares(tree: ShareTree, preemptor: Preemptor) -> dict[str, Policy]:
    """Return the shares of which units may have to go; for a preemptor without quota, those without."""
    if preemptor.share not in tree.shares:
        return {"": Policy.LOWER_PRIORITY}
    if _exceeds_minimum(tree, preemptor):
        return {preemptor.share: Policy.LOWER_PRIORITY}
    others = (name for name, share in tree.shares.items() if share.parent and name != preemptor.share)
    return {name: Policy.ANY for name in others if _has_borrowed(tree, name)}


def elastic_victims(
    tree: ShareTree,
    preemptor: Preemptor,
    candidates: Sequence[QuotaUnit],
    violating: Collection[str] = frozenset(),
    fits: Fits = lambda gone: True,
) -> list[QuotaUnit]:
    """Return the fewest candidates that have to go; none if the preemptor does not fit with all of them gone.

    `violating`: the UIDs of those that break a budget. The tree is changed meanwhile, and is as it was in the end,
    whatever `fits` raises.
    """
    asked = {each: amount for each, amount in preemptor.request.items() if amount > 0}
    share = tree.shares.get(preemptor.share)

    def quota_fits() -> bool:
        return share is None or (
            tree.fits(share.name, preemptor.request) and tree.guarantees(share.parent or share.name, asked)
        )

    # The least important first, those that break a budget last: what is spared first is taken last.
    ordered = (unit for breaks in (False, True) for unit in candidates if (unit.uid in violating) is breaks)
    return minimal_victims(tree, ordered, quota_fits, fits)


def _exceeds_minimum(tree: ShareTree, preemptor: Preemptor) -> bool:
    """Say whether a preemptor's quota would use more than its minimum, which is 0 of what it does not name."""
    return not tree.guarantees(preemptor.share, {**NOTHING_ASKED, **preemptor.request})


def _has_borrowed(tree: ShareTree, share: str) -> bool:
    return tree.holds_more(share, tree.resources)
