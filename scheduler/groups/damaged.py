"""Gangs that have lost pods and find no nodes for new ones: which of them give way.

    refused, and fewer pods have a node than it needs ─► damaged ─ for long enough ─► gives way to a more important one
                                                            └─ placed, or no pod has a node any more ─► (forgotten)

Two such gangs may each hold the nodes that the other lacks, for ever. Those of a lower priority are evicted anyway.
Among equals in priority, the one gives way whose placed pods, which may have been created with another one, have the
lowest, then the one with the fewest of them, then the one that was damaged last.
"""

from collections.abc import Callable, Collection
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.config.types import LoadmasterSettings
from scheduler.framework.groups.pod_groups import GroupKey, PodGroup
from scheduler.state.group_members import MembersByGroup

MAX_GROUPS: Final = 1_000
"""Of which it is known since when they are damaged; of more, the last ones are left alone."""


class DamagedGroups:
    """The damaged groups of our own rules."""

    def __init__(self, members: MembersByGroup, of: Callable[[Pod], PodGroup | None], now: Callable[[], float]) -> None:
        """`of`: the group of a pod. `now`: the queue's clock."""
        self._members = members
        self._of = of
        self._now = now
        self._seconds = 0.0
        self._since: dict[GroupKey, float] = {}

    def use(self, settings: LoadmasterSettings) -> None:
        """Go by these settings from now on."""
        self._seconds = settings.damaged_group_seconds

    def refused(self, group: PodGroup, waited: Callable[[], float]) -> None:
        """A group was tried in vain; `waited`: for how many seconds its pods have waited already."""
        if not self._is_damaged(group):
            self.forget(group)
        elif group.key not in self._since and len(self._since) < MAX_GROUPS:
            self._since[group.key] = self._now() - waited()

    def forget(self, group: PodGroup) -> None:
        """A group has its nodes, or evicts others for them."""
        self._since.pop(group.key, None)

    def giving_way(self, to: PodGroup) -> Collection[GroupKey]:
        """Return the groups whose remaining pods may be evicted for another one."""
        rank = self._rank(to)
        if rank is None:
            return ()
        return frozenset(
            key
            for key in self._since
            if (pods := self._members.some_unscheduled(key, 1))
            and (group := self._of(pods[0])) is not None
            and group.priority == to.priority
            and (of_other := self._rank(group)) is not None
            and of_other < rank
            and of_other[0] <= to.priority
        )

    def _rank(self, group: PodGroup) -> tuple[int, int, float, GroupKey] | None:
        """Return how important a group is that has been damaged for long; None for all others."""
        since = self._since.get(group.key)
        if since is None or not self._seconds or self._now() < since + self._seconds or not self._is_damaged(group):
            return None
        placed = self._members.of(group.key).scheduled
        return max(pod.priority for pod in placed), len(placed), -since, group.key

    def _is_damaged(self, group: PodGroup) -> bool:
        return group.is_ours and not group.problem and 0 < self._members.of(group.key).scheduled_count < group.minimum
