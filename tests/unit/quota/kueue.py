"""The shares, units and claims of the tables that were taken from Kueue's tests."""

from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.quota.policies import Policy, Preemption
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit
from scheduler.quota.tree import Share, ShareTree


def tree_of(shares: Mapping[str, Sequence[Any]], units: Sequence[QuotaUnit]) -> ShareTree:
    """`shares`: name → [parent, resource → [nominal, borrowing limit, lending limit], weight]."""
    tree = ShareTree([_share(name, *declared) for name, declared in shares.items()])
    for unit in units:
        tree.add(unit.share, unit.usage)
    return tree


def units_of(declared: Sequence[Sequence[Any]]) -> list[QuotaUnit]:
    """`declared`: [name, share, priority, usage, other fields]."""
    return [
        QuotaUnit(uid=name, share=share, priority=priority, usage=usage, **(others[0] if others else {}))
        for name, share, priority, usage, *others in declared
    ]


def preemptions_of(declared: Mapping[str, Sequence[Any]]) -> dict[str, Preemption]:
    """`declared`: share → [within the share, reclaim within the cohort, highest priority for borrowing]."""
    return {
        share: Preemption(
            within_share=Policy(within),
            reclaim_within_cohort=Policy(reclaim),
            borrow_within_cohort=bool(threshold),
            max_priority_threshold=threshold[0] if threshold else None,
        )
        for share, (within, reclaim, *threshold) in declared.items()
    }


def preemptor_of(case: Mapping[str, Any]) -> Preemptor:
    share, priority, request, queued_at = case["preemptor"]
    return Preemptor(share=share, priority=priority, request=request, queued_at=queued_at)


def _share(name: str, parent: str, quotas: Mapping[str, Sequence[int | None]], weight: float = 1.0) -> Share:
    amounts: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
    for resource, quota in quotas.items():
        for kind, amount in zip(amounts, quota, strict=False):
            if amount is not None:
                kind[resource] = amount
    minimum, borrowing, lending = amounts
    return Share(
        name=name, parent=parent, minimum=minimum, borrowing_limit=borrowing, lending_limit=lending, weight=weight
    )
