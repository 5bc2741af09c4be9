"""The victims of an ElasticQuota's pod, by the rule of scheduler-plugins.

Source: SelectVictimsOnNode in pkg/capacityscheduling/capacity_scheduling.go of scheduler-plugins. A quota is a share
whose root's quota is the sum of all minimums. If the preemptor takes its quota over its minimum, units of the same
quota and of lower priority may go; otherwise units of other quotas that use more than their minimum, whatever their
priority. Units without quota (their share is not in the tree) may go for preemptors without quota only, if their
priority is lower. Those that break a PodDisruptionBudget are spared first, then the important ones.

scheduler-plugins considers one node at a time. Units of several nodes may be given here: what a quota borrowed is often
spread over them.
"""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from scheduler.quota.reclaim.minimal import Fits, minimal_victims, quota_is_all
from scheduler.quota.reclaim.units import Preemptor, QuotaUnit
from scheduler.quota.tree import ShareTree

ALWAYS: Final = frozenset({"cpu", "memory"})
"""Compared with the minimum even if a pod asks for none of it, as scheduler-plugins does."""


def elastic_candidates(
    tree: ShareTree, preemptor: Preemptor, units: Iterable[QuotaUnit], *, largest_first: bool = False
) -> list[QuotaUnit]:
    """Return the units that may go, least important first; none: "No victims found on node".

    `largest_first`: begin with those that have most of what is asked for. Small ones may have given all that their
    quota borrows, where only a large one leaves enough on a node.
    """
    ordered = sorted(units, key=attrgetter("order"))
    if largest_first:
        asked = [each for each, amount in preemptor.request.items() if amount > 0]
        ordered.sort(key=lambda unit: [-unit.usage.get(each, 0) for each in asked])
    if preemptor.share not in tree.shares:
        return [unit for unit in ordered if unit.share not in tree.shares and unit.priority < preemptor.priority]
    if _is_over_minimum(tree, preemptor.share, preemptor.request):
        return [unit for unit in ordered if unit.share == preemptor.share and unit.priority < preemptor.priority]
    found: list[QuotaUnit] = []
    try:
        for unit in ordered:
            is_other = unit.share != preemptor.share and unit.share in tree.shares
            if is_other and _holds_more(tree, unit.share) and _gives(tree, preemptor, unit):
                found.append(unit)
                tree.remove(unit.share, unit.usage)
    finally:
        for unit in found:
            tree.add(unit.share, unit.usage)
    return found


def giving_shares(tree: ShareTree, preemptor: Preemptor) -> set[str]:
    """Return the shares whose units may have to go; of a preemptor without quota the units are in none."""
    if preemptor.share not in tree.shares:
        return set()
    if _is_over_minimum(tree, preemptor.share, preemptor.request):
        return {preemptor.share}
    others = (name for name, share in tree.shares.items() if share.parent and name != preemptor.share)
    return {name for name in others if _holds_more(tree, name)}


def elastic_victims(
    tree: ShareTree,
    preemptor: Preemptor,
    candidates: Sequence[QuotaUnit],
    violating: Collection[str] = frozenset(),
    fits: Fits = quota_is_all,
) -> list[QuotaUnit]:
    """Return the fewest candidates that have to go; none if the preemptor does not fit with all of them gone.

    The tree is changed meanwhile, and is as it was in the end, whatever `fits` raises.
    """
    root = preemptor.share
    while root in tree.shares and tree.shares[root].parent:
        root = tree.shares[root].parent

    def quota_fits() -> bool:
        return root not in tree.shares or (
            tree.fits(preemptor.share, preemptor.request)
            and tree.guarantees(root, {each: amount for each, amount in preemptor.request.items() if amount > 0})
        )

    return minimal_victims(tree, _in_order(candidates, violating), quota_fits, fits)


def _in_order(candidates: Sequence[QuotaUnit], violating: Collection[str]) -> Generator[QuotaUnit, None, None]:
    """Yield the least important first, those that break a budget last: what is spared first is taken last."""
    for breaks in (False, True):
        for unit in candidates:
            if (unit.uid in violating) is breaks:
                yield unit


def _is_over_minimum(tree: ShareTree, share: str, more: Mapping[str, int]) -> bool:
    """Say whether a quota would use more than its minimum, which is 0 of what it does not name, with these amounts."""
    minimum = tree.shares[share].minimum
    return any(tree.usage(share, each) + more.get(each, 0) > minimum.get(each, 0) for each in {*ALWAYS, *more})


def _holds_more(tree: ShareTree, share: str) -> bool:
    """Say whether the pods of a quota hold more of some resource than its minimum."""
    minimum = tree.shares[share].minimum
    return any(tree.held(share, each) > minimum.get(each, 0) for each in {*ALWAYS, *tree.resources})


def _gives(tree: ShareTree, preemptor: Preemptor, unit: QuotaUnit) -> bool:
    """Say whether a unit uses something that its share has borrowed and that the preemptor, if it asks for any, needs.

    scheduler-plugins compares all resources, and takes the cpu of a quota that has borrowed memory only.
    """
    minimum = tree.shares[unit.share].minimum
    wanted = [each for each, amount in preemptor.request.items() if amount > 0]
    return not wanted or any(
        unit.usage.get(each, 0) > 0 and tree.held(unit.share, each) > minimum.get(each, 0) for each in wanted
    )
