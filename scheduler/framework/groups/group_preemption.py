"""Preemption for a group of pods as a whole: the framework's side of it."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from typing import Protocol

from scheduler.api.pods.pod import Pod
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.groups.pod_groups import PodGroup
from scheduler.framework.plugin import Plugin
from scheduler.framework.preemption.dry_run import Victims
from scheduler.framework.status import Status


class GroupWhatIf(Protocol):
    """All nodes as they were in the beginning, without the pods that were removed so far. Nothing is changed by it."""

    @property
    def decisions(self) -> int:
        """How many pods are decided about for each answer of `refusal`; 0 if what fits is counted."""

    def pods_by_node(self) -> Iterable[Collection[Pod]]:
        """Return the pods that each node had in the beginning; nodes may be missing from which none can leave."""

    def remove(self, pods: Sequence[Pod]) -> None:
        """Go on as if these pods, which have their nodes, were not there."""

    def put_back(self, pods: Sequence[Pod]) -> None:
        """Go on with these pods, which were removed."""

    def refusal(self) -> Status | None:
        """Return why the group does not fit now; None if it does."""

    def keeps_its_nodes(self) -> bool:
        """Return whether its pods fit now where they did when `refusal` returned None last."""

    def has_other_nodes(self) -> bool:
        """Return whether as many of its pods fit now on any nodes; then these count for `keeps_its_nodes`."""


class PodGroupPostFilterPlugin(Plugin):
    """Makes space for a group of pods."""

    def may_leave(self, group: PodGroup, pods: Sequence[Pod]) -> Callable[[Pod], bool]:
        """Return what says of a pod whether it might have to leave: `what_if` may lack nodes without such pods."""
        return lambda pod: True

    @abstractmethod
    def pod_group_victims(
        self, group: PodGroup, pods: Sequence[Pod], what_if: GroupWhatIf
    ) -> Generator[None, None, Victims | Status]:
        """Choose who is to leave for `group`, whose `pods` are without a node; return them, or why there are none.

        A Status of the code SUCCESS says that those of an earlier choice are still leaving.

        It yields every few microseconds, and others may have their turn then: it goes by nothing but `what_if`, and
        evicts none yet.
        """

    @abstractmethod
    def evict_for_pod_group(self, group: PodGroup, pods: Sequence[Pod], victims: Victims) -> None:
        """Begin to evict those that were chosen and are still there; `pods`: those that get what the victims free."""


class PodGroupReleasePlugin(Plugin):
    """Gives back devices that pods of a group hold, and that keep them from fitting."""

    @abstractmethod
    def release_for_pod_group(self, group: PodGroup, members: Sequence[tuple[CycleState, Pod]]) -> Status:
        """Do so for the pods of a group that does not fit, and say `unschedulable(…)`: it is tried again later."""
