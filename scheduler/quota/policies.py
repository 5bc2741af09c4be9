"""The pods that a share's pods may evict to get quota, or to get it back, as the APIs declare."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from scheduler.quota.tree import ShareTree


class Policy(StrEnum):
    """The units that may be evicted, by their priority and age compared with the preemptor's."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"
    ANY = "Any"


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """The units that pods of one share may evict: `spec.preemption` of a ClusterQueue."""

    within_share: Policy = Policy.NEVER
    reclaim_within_cohort: Policy = Policy.NEVER
    borrow_within_cohort: bool = False
    """Whether units of other shares may be evicted although the preemptor's share then borrows."""

    max_priority_threshold: int | None = None
    """The highest priority of such units; None: any that is lower than the preemptor's."""

    needs_quota: bool = False
    """Whether no unit is evicted for a pod that fits only while its share borrows: see `may_free`."""

    @property
    def evicts(self) -> bool:
        """Whether any unit may be evicted."""
        return self.within_share is not Policy.NEVER or self.reclaim_within_cohort is not Policy.NEVER

    def reclaims(self, *, is_lower: bool) -> bool:
        """Say whether units of other shares may be evicted: of lower priority, or whatever theirs is."""
        policy = self.reclaim_within_cohort
        return policy is Policy.ANY or (is_lower and policy is not Policy.NEVER)


NOTHING_EVICTED: Final = Preemption()
"""For shares that say nothing: Kueue's default."""

BY_MINIMUM: Final = Preemption(within_share=Policy.LOWER_PRIORITY, reclaim_within_cohort=Policy.ANY)
"""For elastic quotas: above its minimum one evicts its own pods, below it those of others."""


def may_free(tree: ShareTree, preemption: Preemption, share: str, lacking: Mapping[str, int]) -> bool:
    """Say whether any unit may be evicted: if what is lacking is no more than the share is guaranteed by itself.

    Or if a subtree with that share, but not the whole tree, has enough; or if pods that borrow may evict. Rule:
    fitsResourceQuota in pkg/scheduler/flavorassigner of Kueue.
    """
    minimum = tree.shares[share].minimum
    return preemption.borrow_within_cohort or all(
        amount <= minimum.get(resource, 0) or tree.shares[tree.holder(share, resource, amount)].parent
        for resource, amount in lacking.items()
    )
